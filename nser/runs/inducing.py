"""Where a run gets its rules from: at once from the symbolic learner, in the background from a language model.

The learner never waits for a model. An answer that comes late is taken at the next border between two rollouts. A model
that fails is warned of once; the symbolic learner takes over, and the model is asked again after a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from nser.background import Background
from nser.experience.trajectories import Trajectories
from nser.grounding.vocabulary import Vocabulary
from nser.induce.cassette import Cassette
from nser.induce.evidence import has_contrast
from nser.induce.loop import Induction, induce
from nser.induce.proposers import proposer_of
from nser.induce.proposing import Proposer
from nser.induce.settings import InductionSettings
from nser.induce.standing import carried
from nser.induce.symbolic import SymbolicProposer
from nser.rules.ruleset import RuleSet

PATIENCE = 5  # inductions that the symbolic learner makes before a model that failed is asked again


@dataclass(frozen=True)
class _Job:
    trajectories: Trajectories
    step: int
    previous: RuleSet | None


class Inducing:
    """Inductions of one run.

    llm:     word that names the proposer, see `nser.induce.proposers`
    replies: folder for recorded calls, None to record none
    redact:  regular expressions; what they match is not recorded in clear
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        settings: InductionSettings,
        llm: str = "symbolic",
        replies: Path | None = None,
        redact: Sequence[str] = (),
    ) -> None:
        self.vocabulary, self.settings = vocabulary, settings
        self.symbolic = SymbolicProposer()
        self.warnings: list[str] = []
        self._llm, self._replies, self._redact = llm, replies, redact
        self._slow = llm != "symbolic"
        self._background: Background[_Job, Induction] | None = None
        self._failures = 0
        self._waits = 0

    @cached_property
    def proposer(self) -> Proposer:
        """The proposer that the word names; a model is loaded here. Raises `ProposerError` and `ModelError`."""
        return proposer_of(self._llm, Cassette(self._replies, self._redact) if self._replies else None)

    def induce(self, trajectories: Trajectories, step: int, previous: RuleSet | None) -> Induction | None:
        """Rules from these episodes now, or None where a model thinks about them in the background.

        While there is neither good nor bad that a model could be shown, the symbolic learner proposes.
        """
        if self._slow and self._waits == 0 and has_contrast(trajectories):
            if self._background is None:
                self._background = Background(self._work, room=1)
            if self._background.figures().backlog == 0:
                self._background.submit(_Job(trajectories, step, previous))
            return None
        self._waits = max(0, self._waits - 1)
        return induce(trajectories, self.vocabulary, self.symbolic, self.settings, step=step, previous=previous)

    def finished(self, current: RuleSet | None) -> Induction | None:
        """What a model has come up with since the last time; its version follows that of `current`. Cheap."""
        if self._background is None:
            return None
        found = self._background.results()
        failed = self._background.figures().failed
        if failed > self._failures:
            self._failures = failed
            self._waits = PATIENCE
            self._warn()
        if not found:
            return None
        result = found[-1][1]
        version = (current.version if current else 0) + 1
        # A person may have edited the rules while the model was thinking about older ones.
        return replace(result, ruleset=replace(carried(result.ruleset, current), version=version))

    def model_seconds(self) -> float:
        """Seconds that a language model has thought so far, on its own thread; the learner did not wait for them."""
        return self._background.figures().total_seconds if self._background else 0.0

    def close(self) -> None:
        """Wait for nobody: an answer that is still to come is not needed any more."""
        if self._background is not None:
            self._background.close(timeout=0.1)

    def _work(self, job: _Job) -> Induction:
        return induce(
            job.trajectories, self.vocabulary, self.proposer, self.settings, step=job.step, previous=job.previous
        )

    def _warn(self) -> None:
        assert self._background is not None
        if self._failures == 1:
            self.warnings.append(
                f"{self._background.last_error}; the symbolic learner proposes meanwhile, and the model is asked again"
            )
