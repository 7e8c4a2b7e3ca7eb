"""The page of a run: one HTML file that needs no network, made from what the run directory holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nser.errors import NserError
from nser.files import write_text
from nser.jsons import read_json
from nser.pages.environment import environment
from nser.pages.sheets import Sheet
from nser.percent import percent
from nser.report.ages import ages
from nser.report.cost import calls_of, costs_of
from nser.report.curves import Line, diversity_curves, learning_curve, of_kind, small_curves
from nser.report.replayed import Spread, Stored, items_sheet, spread_of
from nser.report.rules import RulesPart
from nser.rules.store import RuleSet
from nser.runs.directory import RunDirectory
from nser.runs.errors import RunError
from nser.runs.explain import stored_buffer


@dataclass(frozen=True)
class ReplayPart:
    """What the page shows of the last checkpoint's buffer; `pictures` are (heading, SVG element)."""

    step: int
    spread: Spread
    items: Sheet
    pictures: tuple[tuple[str, str], ...]


def write_report(run: RunDirectory) -> Path:
    """Write `report.html` of a run and return its path.

    Raises `RunError` for a run that can't be read, or whose metrics hold what nser never wrote, and `WriteError`.
    """
    try:
        page = render(run)
    except NserError:
        raise
    except Exception as error:  # of figures that somebody made up, every part of the page fails in a way of its own
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise RunError(
            run.metrics, f"can't draw what {run.metrics} holds ({said}); expected lines as `nser train` writes them"
        ) from error
    write_text(run.report, page)
    return run.report


def render(run: RunDirectory) -> str:
    """The page as text. What a checkpoint would tell is left out, with the reason, where there is none."""
    settings = run.settings()
    metrics = run.read_metrics()
    stored, missing = _stored(run, run.newest_rules() if settings.uses_rules else None)
    signature = stored.vocabulary.signature if stored and stored.vocabulary else None
    rules = RulesPart.of(run, metrics, signature) if settings.uses_rules else None
    config = read_json(run.config)
    return (
        environment("nser.report")
        .get_template("page.html")
        .render(
            title=f"{settings.env} · {settings.replay}",
            run=run.path.name,
            settings=settings.model_dump(mode="json"),
            versions=config.get("versions", {}),
            command="\n".join([config.get("command", ""), *(one["command"] for one in config.get("continued", []))]),
            cards=_cards(metrics, rules),
            curve=learning_curve(metrics),
            narrow_curve=learning_curve(metrics, narrow=True),
            curves=small_curves(metrics),
            rules=rules,
            replay=_replay(stored, metrics) if stored else None,
            missing=missing,
            costs=costs_of(metrics),
            calls=calls_of(run),
        )
    )


def _stored(run: RunDirectory, ruleset: RuleSet | None) -> tuple[Stored | None, str]:
    """The buffer of the last checkpoint, or why there is none to show."""
    if not run.checkpoint.exists():
        return None, "the run has not written a checkpoint yet"
    try:
        buffer, vocabulary = stored_buffer(run)
    except NserError as error:
        return None, str(error)
    if not len(buffer.index):
        return None, "the buffer of the last checkpoint is empty"
    return Stored.of(buffer, vocabulary, ruleset), ""


def _replay(stored: Stored, metrics: list[Line]) -> ReplayPart:
    pictures = [("Ages", ages(stored.explained)), *diversity_curves(metrics)]
    return ReplayPart(stored.buffer.index.clock, spread_of(stored), items_sheet(stored), tuple(pictures))


def _cards(metrics: list[Line], rules: RulesPart | None) -> list[tuple[str, str, str]]:
    """(figure, what it is, note) for the head of the page."""
    train, done = _last(metrics, "train"), _last(metrics, "done")
    cards = []
    if done.get("success") is not None:
        cards.append((percent(done["success"], 0), "greedy success", f"{done['episodes']} fresh episodes"))
    if done.get("mean_return") is not None:
        cards.append((_figure(done["mean_return"]), "greedy return", f"{done['mean_length']:.0f} steps an episode"))
    if rules is not None:
        cards.append((str(len(rules.in_force.rows)), "rules in force", f"version {rules.version}"))
        share = train.get("rule_share") or 0.0
        cards.append((percent(share, 0), "of draws owed to rules", "at the end"))
    took = (done or train).get("seconds")
    if took is not None:
        cards.append((f"{took:.0f} s", "wall clock", f"{metrics[-1]['step']:,} steps"))
    return cards


def _figure(value: float) -> str:
    """Three digits that count, and never a power of ten for what is read as a score."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _last(metrics: list[Line], kind: str) -> dict[str, Any]:
    return next(reversed(of_kind(metrics, kind)), {})
