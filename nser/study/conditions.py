"""The conditions of a study: who says what to replay, where rules come from, who chooses random actions.

>>> condition_of("induced+explore:label=return,eta=2").name
'induced+explore:eta=2,label=return'
>>> condition_of("induced:eta=2").law().eta
2.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from nser.induce.labels import LABELS, Label
from nser.induce.settings import InductionSettings
from nser.replay.law import Correct, Law
from nser.replay.presets import preset
from nser.study.errors import OverrideError, UnknownConditionError

Replay = Literal["uniform", "per", "freshper", "nser", "placebo", "vlm-rb"]
Rules = Literal["none", "hand", "wrong", "induced", "induced-llm"]
Explore = Literal["epsilon", "rules", "table", "less"]

EXPLORE = "+explore"


@dataclass(frozen=True)
class Condition:
    """One way to replay and explore. Fields that are None leave the preset's own value.

    name:    canonical text, what `condition_of` reads
    summary: one line for tables
    replay:  preset of the replay law; `placebo` is the law of `nser` with the rules' scores dealt out at random
    rules:   where rules come from: files shipped for the environment (`hand`, `wrong`; in force from the first step),
             or inductions during the run, by the symbolic learner or by a model beside it
    explore: `epsilon` uniform random actions; `rules` a share of them from those that rules in force call good;
             `table` the same share from a random table; `less` that share is not random but greedy
    share:   that share, in [0, 1]
    boosted: for `placebo`: relevance 1 for this share of transitions, in place of the rules' scores dealt at random
    eta, correct, tau, guard, mix, alpha, beta: of the law; the guard is `max_rule_share`
    audit:   whether data judge rules known beforehand as they judge a person's rules in `nser train`: they count for
             little in replay until they are supported, and leave when they are refuted
    induce_every: environment steps between two inductions, or two audits
    label, max_rules, curious: of the induction
    """

    name: str
    summary: str
    replay: Replay
    rules: Rules = "none"
    explore: Explore = "epsilon"
    share: float = 0.5
    boosted: float | None = None
    eta: float | None = None
    correct: Correct | None = None
    tau: float | None = None
    guard: float | None = None
    mix: float | None = None
    alpha: float | None = None
    beta: float | None = None
    audit: bool = False
    induce_every: int = 2_000
    label: Label = "progress"
    max_rules: int = 12
    curious: bool = True

    def law(self) -> Law:
        """The replay law. Raises `LawError` for values out of range."""
        given = {
            "eta": self.eta,
            "correct": self.correct,
            "tau": self.tau,
            "max_rule_share": self.guard,
            "mix": self.mix,
            "alpha": self.alpha,
            "beta": self.beta,
        }
        return preset(self.replay, **{name: value for name, value in given.items() if value is not None})

    def induction(self) -> InductionSettings:
        """Settings of its inductions."""
        curious = self.curious and self.induces
        return InductionSettings(label=self.label, max_rules=self.max_rules, curious=curious)

    @property
    def feedback(self) -> bool:
        """Whether TD errors go back to the index: not in uniform nor, as published for discrete actions, VLM replay."""
        return self.replay not in ("uniform", "vlm-rb")

    @property
    def induces(self) -> bool:
        """Whether rules are induced during the run."""
        return self.rules in ("induced", "induced-llm")

    @property
    def judges(self) -> bool:
        """Whether data decide on rules during the run, be they induced or known beforehand."""
        return self.induces or self.audit


def _table() -> dict[str, Condition]:
    plain = (
        Condition("uniform", "every transition alike", "uniform"),
        Condition("per", "by TD error", "per"),
        Condition("freshper", "by TD error, decaying with age", "freshper"),
        Condition(
            "placebo", "as induced, with the scores of the rules dealt to random transitions", "placebo", "induced"
        ),
        Condition("hand", "by TD error × rules written by hand, known from the first step", "nser", "hand", audit=True),
        Condition("induced", "by TD error × rules induced during the run", "nser", "induced"),
        Condition(
            "induced-llm", "as induced, with a language model beside the symbolic learner", "nser", "induced-llm"
        ),
        Condition("wrong", "by TD error × rules that praise the wrong actions, guard on", "nser", "wrong", audit=True),
        Condition(
            "wrong-unguarded", "as wrong, no cap, no uniform floor, no audit", "nser", "wrong", guard=1.0, mix=1.0
        ),
        Condition("vlm-rb", "clips before a scripted event, in a vision model's place", "vlm-rb"),
    )
    table = {}
    for condition in plain:
        table[condition.name] = condition
        rules = "induced" if condition.rules == "none" else condition.rules
        whose = "induced rules" if condition.rules == "none" else "the rules"
        summary = f"{condition.summary}; explores by {whose}"
        table[condition.name + EXPLORE] = replace(
            condition, name=condition.name + EXPLORE, summary=summary, rules=rules, explore="rules"
        )
    controls = (
        Condition("per+random-table", "by TD error; explores by a random table as often", "per", explore="table"),
        Condition("per+less-epsilon", "by TD error; explores half as often", "per", explore="less"),
    )
    return table | {condition.name: condition for condition in controls}


CONDITIONS: dict[str, Condition] = _table()
"""Every named condition; `+explore` stands for exploration by rules, induced ones where the name means none."""

SWITCHES = {"on": True, "off": False}
ON_OFF = ("audit", "curious")
READERS: dict[str, Callable[[str], Any]] = {
    "induce_every": int,
    "max_rules": int,
    "label": str,
    "correct": str,
    **dict.fromkeys(ON_OFF, SWITCHES.__getitem__),
}
CHOICES: dict[str, tuple[str, ...]] = {"label": LABELS, "correct": get_args(Correct)}
OVERRIDES = {
    "share": "of random actions, how many are drawn from those that rules call good, 0 to 1",
    "boosted": "for placebo: the share of transitions that have relevance 1, in place of the rules' scores",
    "eta": "η, the strength of the rules: a priority is multiplied by 1 + η · relevance",
    "correct": "what importance weights undo: full, signal (all but the rules' part) or none",
    "tau": "τ, gradient steps in which a TD error's worth falls to 1/e",
    "guard": "largest share of draws that is owed to rules, 0 to 1",
    "mix": "share of draws by the law, the rest being uniform, 0 to 1",
    "alpha": "α, exponent of a priority; 0 is uniform",
    "beta": "β, exponent of the importance weights",
    "audit": "on: data judge rules that were known beforehand, and take out those that they refute",
    "induce_every": "environment steps between two inductions, or two audits",
    "label": "what tells good steps from bad ones: " + ", ".join(LABELS),
    "max_rules": "most rules in force",
    "curious": "on: while few episodes are good, rules are judged by novelty",
}
"""What may be set behind a colon, and what it means."""


def condition_of(text: str) -> Condition:
    """Read `name[+explore][:key=value,…]`; keys are the fields of `Condition` that make sense to sweep.

    Raises `UnknownConditionError`, `OverrideError`, and `LawError` for values that the law refuses.
    """
    name, _, rest = (piece.strip() for piece in text.partition(":"))
    base = CONDITIONS.get(name)
    if base is None:
        raise UnknownConditionError(name, tuple(CONDITIONS))
    if not rest:
        return base
    given = dict(_override(text, part) for part in rest.split(","))
    said = ",".join(f"{key}={_plain(given[key])}" for key in sorted(given))
    condition = replace(base, name=f"{name}:{said}", summary=f"{base.summary} ({said})", **given)
    condition.law()
    return condition


def _override(text: str, part: str) -> tuple[str, Any]:
    key, equals, value = (piece.strip() for piece in part.partition("="))
    if not equals or key not in OVERRIDES:
        raise OverrideError(text, part, f"KEY=VALUE with one of the keys {', '.join(OVERRIDES)}")
    try:
        found = READERS.get(key, float)(value)
    except (ValueError, KeyError):
        kind = "on or off" if key in ON_OFF else "a whole number" if READERS.get(key) is int else "a number"
        raise OverrideError(text, part, f"{kind} for {key}") from None
    if key in CHOICES and found not in CHOICES[key]:
        raise OverrideError(text, part, f"one of {', '.join(CHOICES[key])}")
    if key in ("induce_every", "max_rules") and found < 1:
        raise OverrideError(text, part, f"at least 1 for {key}")
    if key in ("share", "boosted") and not 0 <= found <= 1:
        raise OverrideError(text, part, f"a share in [0, 1] for {key}")
    return key, found


def _plain(value: Any) -> str:
    """As short as names the very value."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
