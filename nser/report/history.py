"""The history of a run's rules: which version brought, changed or retired each one, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from nser.pages.sheets import Cell, Column, Row, Sheet, number, word
from nser.percent import percent
from nser.report.curves import Line
from nser.rules.diff import Change, diff
from nser.rules.errors import RuleFileError
from nser.rules.print_english import english
from nser.rules.printer import print_rule
from nser.rules.ruleset import Retired, RuleSet
from nser.rules.syntax import Rule
from nser.runs.directory import RunDirectory

Kind = Literal["brought", "brought back", "changed", "reweighed", "retired"]
COLUMNS = (
    Column("version", "the rule set that the change made"),
    Column("step", "environment step"),
    Column("rule", number=False),
    Column("what", number=False, choose=True),
    Column("why", number=False),
)


@dataclass(frozen=True)
class Event:
    """One change of one rule: in which version, at which step (None where the metrics don't tell), and why.

    `formerly` is the name before, of a rule that was named anew.
    """

    version: int
    step: int | None
    rule: str
    kind: Kind
    why: str
    text: str
    formerly: str = ""


@dataclass
class Life:
    """When a rule was in force: stretches from step to step, the last one open (None) if it is still."""

    rule: str
    stretches: list[tuple[int, int | None]] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Whether the rule is in force now."""
        return bool(self.stretches) and self.stretches[-1][1] is None


def versions_of(run: RunDirectory) -> list[RuleSet]:
    """Every version of the rules as it was in force, oldest first; files that can't be read are passed over."""
    found = []
    for file in run.numbered_rules():
        try:
            found.append(run.load_rules(int(file.stem)))
        except RuleFileError:
            continue
    return sorted(found, key=lambda ruleset: ruleset.version)


def steps_of(metrics: Iterable[Line]) -> dict[int, int]:
    """At which environment step each version came into force."""
    return {
        line["version"]: line["step"]
        for line in metrics
        if line["kind"] in ("rules", "edit") and isinstance(line.get("version"), int)
    }


def events_of(versions: Sequence[RuleSet], steps: dict[int, int]) -> list[Event]:
    """What changed from version to version, in their order."""
    events: list[Event] = []
    before = RuleSet()
    known: set[str] = set()
    for ruleset in versions:
        step = steps.get(ruleset.version)
        left = {one.name: one for one in ruleset.retired}
        for change in diff(before.rules, ruleset.rules):
            kind, why = _told(change, ruleset, left, known)
            formerly = change.before.name if change.before and change.before.name != change.name else ""
            events.append(Event(ruleset.version, step, change.name, kind, why, print_rule(_rule(change)), formerly))
        known.update(rule.name for rule in ruleset.rules)
        before = ruleset
    return events


def lives_of(events: Sequence[Event]) -> list[Life]:
    """When each rule was in force, in the order in which they came; events without a step tell nothing."""
    lives: dict[str, Life] = {}
    for event in events:
        if event.step is None:
            continue
        life = lives.pop(event.formerly, None) or lives.get(event.rule) or Life(event.rule)
        life.rule = event.rule
        lives[event.rule] = life
        if event.kind in ("brought", "brought back"):
            life.stretches.append((event.step, None))
        elif event.kind == "retired" and life.alive:
            life.stretches[-1] = (life.stretches[-1][0], event.step)
        elif event.kind == "changed" and life.alive:
            life.changes.append(event.step)
    return [life for life in lives.values() if life.stretches]


def history_sheet(events: Sequence[Event], in_force: Iterable[str]) -> Sheet:
    """The events as a table, the newest first; rules in force lead to their row."""
    places = {name: f"rule-{name}" for name in in_force}
    rows = [
        Row(
            (
                number(event.version, "{:d}"),
                number(event.step, "{:,d}"),
                Cell(event.rule, event.rule, code=event.text, link=places.get(event.rule, "")),
                word(event.kind),
                word(event.why),
            )
        )
        for event in reversed(events)
    ]
    return Sheet("history", "changes", COLUMNS, tuple(rows))


def inductions_sheet(metrics: Iterable[Line]) -> Sheet:
    """What each induction kept and refused, the newest first."""
    columns = (
        Column("step"),
        Column("version"),
        Column("kept", number=False),
        Column("refused", "with the code of the check that refused it", number=False),
        Column("seconds"),
    )
    lines = [line for line in metrics if line["kind"] == "rules"]
    cells = [
        (
            number(line["step"], "{:,d}"),
            number(line.get("version"), "{:d}"),
            word(", ".join(line.get("kept", ()))),
            word(", ".join(f"{name} ({code})" for name, code in line.get("refused", {}).items())),
            number(line.get("cost_seconds"), "{:.2f}"),
        )
        for line in reversed(lines)
    ]
    return Sheet("inductions", "inductions", columns, tuple(Row(row) for row in cells))


def _told(change: Change, ruleset: RuleSet, left: dict[str, Retired], known: set[str]) -> tuple[Kind, str]:
    if change.kind == "removed":
        gone = left.get(change.name)
        return "retired", f"{gone.sentence} ({gone.code}, by {gone.by})" if gone else "the file does not tell"
    found = ruleset.provenance.get(change.name)
    proposer = (found.proposer if found else None) or "somebody unknown"
    if change.kind == "added":
        kind: Kind = "brought back" if change.name in known else "brought"
        return kind, f"proposed by {proposer}{_figures(found)}: {english(_rule(change))}"
    assert change.before is not None
    assert change.after is not None
    weight = f"weight {change.before.weight:.2f} → {change.after.weight:.2f}"
    if change.parts == ("weight",):
        return "reweighed", weight
    parts = [weight if part == "weight" else _part(part, change.before, change.after) for part in change.parts]
    return "changed", f"by {proposer}: {'; '.join(parts)}"


def _part(part: str, before: Rule, after: Rule) -> str:
    if part == "name":
        return f"name, before {before.name}"
    return f"{part}, before “{english(before)}”"


def _figures(found: Any) -> str:
    if found is None or found.lift is None:
        return ""
    precision = "" if found.precision is None else f", precision {percent(found.precision, 0)}"
    return f" with lift {found.lift:.3f}{precision} on held-out episodes"


def _rule(change: Change) -> Rule:
    rule = change.after or change.before
    assert rule is not None
    return rule
