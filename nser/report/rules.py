"""The part of a page that is about rules: those in force with their figures, how they hang together, their history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nser.pages.sheets import Cell, Column, Row, Sheet, number, share, word
from nser.report.curves import Line, of_kind, shares_over_time
from nser.report.history import Event, events_of, history_sheet, inductions_sheet, lives_of, steps_of, versions_of
from nser.report.lives import time_line
from nser.report.rule_picture import in_page
from nser.rules.graph import Edge, edges
from nser.rules.print_english import english
from nser.rules.printer import print_rule
from nser.rules.ruleset import Provenance, RuleSet
from nser.rules.signature import Signature
from nser.rules.syntax import Rule
from nser.runs.directory import RunDirectory

COLUMNS = (
    Column("rule", number=False),
    Column("weight"),
    Column("support", "share of the steps on which its body holds"),
    Column("coverage", "share of the good (or bad) steps of its kind that it covers"),
    Column("precision", "share of its firings that are good (or bad)"),
    Column("lift", "gain of a firing over the mean step, with its 95 % interval over held-out episodes"),
    Column("fires", "share of the stored transitions whose score it gives, at the end"),
    Column("owed", "share of the draws that replay owes to it, at the end"),
    Column("by", "who proposed it", number=False, choose=True),
    Column("since", "environment step of its proposal"),
)
RELATIONS = {
    "subsumes": "{target} is a special case of {source}",
    "conflicts": "{source} and {target} claim opposite things that can hold at once",
    "feeds": "{target} asks for what {source} concludes",
    "shares": "{source} and {target}: {words}",
}


@dataclass(frozen=True)
class RulesPart:
    """What the page shows of rules; pictures are SVG elements, None where there is nothing to draw.

    `unread` counts the rule files that could not be read; `relations` says the graph in words, `shared` the conditions
    that two rules ask for.
    """

    version: int
    unread: int
    in_force: Sheet
    graph: str
    relations: tuple[str, ...]
    shared: tuple[str, ...]
    owed: str | None
    firing: str | None
    lives: str | None
    history: Sheet
    inductions: Sheet

    @classmethod
    def of(cls, run: RunDirectory, metrics: list[Line], signature: Signature | None) -> RulesPart | None:
        """All of it, or None for a run without rules. The graph knows the words of a `signature`."""
        versions = versions_of(run)
        if not versions:
            return None
        newest = versions[-1]
        events = events_of(versions, steps_of(metrics))
        found = edges(newest.rules, signature)
        last = metrics[-1]["step"] if metrics else 0
        return cls(
            version=newest.version,
            unread=len(run.numbered_rules()) - len(versions),
            in_force=_in_force(newest, metrics),
            graph=in_page(newest.rules, found),
            relations=_told([edge for edge in found if edge.kind != "shares"]),
            shared=_told(sorted((e for e in found if e.kind == "shares"), key=lambda edge: -len(edge.words))),
            owed=shares_over_time(metrics, "owed", "owed", "Share of the draws owed to each rule, over steps"),
            firing=shares_over_time(metrics, "firing", "firing", "Share of stored transitions each rule fires on"),
            lives=time_line(lives_of(events), last),
            history=_history(events, newest.rules),
            inductions=inductions_sheet(metrics),
        )


def _history(events: Sequence[Event], rules: Sequence[Rule]) -> Sheet:
    return history_sheet(events, [rule.name for rule in rules])


def _in_force(ruleset: RuleSet, metrics: list[Line]) -> Sheet:
    newest = next(reversed(of_kind(metrics, "train")), {})
    owed, firing = newest.get("owed") or {}, newest.get("firing") or {}
    rows = []
    for rule in ruleset.rules:
        found = ruleset.provenance.get(rule.name) or Provenance()
        interval = None if found.lift_low is None else f"{found.lift_low:.3f} … {found.lift_high:.3f}"
        cells = (
            Cell(rule.name, rule.name, note=english(rule), code=print_rule(rule)),
            number(rule.weight, "{:.2f}"),
            share(found.support),
            share(found.coverage),
            share(found.precision),
            number(found.lift, "{:.3f}", note=interval or ""),
            share(firing.get(rule.name)),
            share(owed.get(rule.name)),
            word(found.proposer or ""),
            number(found.since, "{:,d}"),
        )
        rows.append(Row(cells, anchor=f"rule-{rule.name}"))
    return Sheet("rules", "rules", COLUMNS, tuple(rows))


def _told(found: Sequence[Edge]) -> tuple[str, ...]:
    return tuple(
        RELATIONS[edge.kind].format(source=edge.source, target=edge.target, words=", ".join(edge.words))
        for edge in found
    )
