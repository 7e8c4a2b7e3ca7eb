"""What data make of the rules of one seed, whoever trains it."""

from __future__ import annotations

from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary
from nser.induce.evidence import has_contrast, label_for
from nser.induce.loop import induce
from nser.induce.proposing import Proposer
from nser.induce.settings import InductionSettings
from nser.induce.standing import in_force
from nser.induce.symbolic import SymbolicProposer
from nser.rules.ruleset import RuleSet


def renewed(
    trajectories: Trajectories,
    vocabulary: Vocabulary,
    proposer: Proposer,
    settings: InductionSettings,
    *,
    step: int,
    current: RuleSet | None,
) -> RuleSet | None:
    """The rules to put in force from here on; None where nothing changes, or nothing tells good from bad yet.

    Until there are good and bad episodes to show to a model, the symbolic learner proposes, as in `nser train`.
    """
    if label_for(trajectories, settings) is None:
        return None
    asked = proposer if has_contrast(trajectories) else SymbolicProposer()
    found = induce(trajectories, vocabulary, asked, settings, step=step, previous=current)
    return in_force(found.ruleset, current)
