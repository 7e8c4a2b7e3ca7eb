"""The page of a run: one HTML file that needs no network, made from what the run directory holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from nser.files import write_text
from nser.report.curves import learning_curve, owed_over_time
from nser.rules.print_english import english
from nser.rules.printer import print_rule
from nser.rules.store import RuleSet
from nser.runs.directory import RunDirectory


def write_report(run: RunDirectory) -> Path:
    """Write `report.html` of a run and return its path. Raises `RunError` for a run that can't be read."""
    write_text(run.report, render(run))
    return run.report


def render(run: RunDirectory) -> str:
    """The page as text."""
    settings = run.settings()
    metrics = run.read_metrics()
    ruleset = run.newest_rules() if settings.uses_rules else None
    environment = Environment(
        loader=PackageLoader("nser.report", "."),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        title=f"{settings.env} · {settings.replay}",
        settings=settings.model_dump(mode="json"),
        cards=_cards(metrics, ruleset),
        curve=learning_curve(metrics),
        owed=owed_over_time(metrics),
        rules=_rules(ruleset, _last(metrics, "train").get("owed") or {}),
        version=ruleset.version if ruleset else None,
        inductions=[line for line in metrics if line["kind"] == "rules"],
        run=run.path.name,
    )


def _cards(metrics: list[dict[str, Any]], ruleset: RuleSet | None) -> list[tuple[str, str, str]]:
    """(figure, what it is, note) for the head of the page."""
    train, done = _last(metrics, "train"), _last(metrics, "done")
    cards = []
    if done.get("success") is not None:
        cards.append((f"{100 * done['success']:.0f} %", "greedy success", f"{done['episodes']} fresh episodes"))
    if done.get("mean_return") is not None:
        cards.append((f"{done['mean_return']:.3g}", "greedy return", f"{done['mean_length']:.0f} steps an episode"))
    if ruleset is not None:
        cards.append((str(len(ruleset.rules)), "rules in force", f"version {ruleset.version}"))
        share = train.get("rule_share") or 0.0
        cards.append((f"{100 * share:.0f} %", "of draws owed to rules", "at the end"))
    newest = metrics[-1] if metrics else {}
    took = (done or train).get("seconds")
    if took is not None:
        cards.append((f"{took:.0f} s", "wall clock", f"{newest['step']:,} steps"))
    return cards


def _rules(ruleset: RuleSet | None, owed: dict[str, float]) -> list[dict[str, Any]]:
    rows = []
    for rule in ruleset.rules if ruleset else ():
        found = ruleset.provenance.get(rule.name) if ruleset else None
        rows.append(
            {
                "name": rule.name,
                "text": print_rule(rule),
                "english": english(rule),
                "weight": rule.weight,
                "owed": owed.get(rule.name),
                "figures": found,
            }
        )
    return rows


def _last(metrics: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next((line for line in reversed(metrics) if line["kind"] == kind), {})
