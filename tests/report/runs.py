"""A run that is made up: its folder as `nser train` would leave it, but for the checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nser.rules.parse import parse_rules
from nser.rules.ruleset import Provenance, Retired, RuleSet, meaning
from nser.runs.directory import RunDirectory
from tests.runs.test_runs import settings

KEY = "rule key [0.6]: forall t in step: facing(t, key) & action_is(t, pickup) -> good(t)"
DOOR = "rule door [0.4]: forall t in step: dist(t, door) < ?1.5 & action_is(t, toggle) -> good(t)"
WIDER = "rule door [0.5]: forall t in step: dist(t, door) < ?2.5 & action_is(t, toggle) -> good(t)"
LIGHTER = KEY.replace("0.6", "0.5")


def ruleset(version: int, *texts: str, retired: tuple[Retired, ...] = ()) -> RuleSet:
    """A version with these rules, proposed by the symbolic learner."""
    rules = parse_rules("\n".join(texts), strict=True).rules
    known = {rule.name: Provenance(proposer="symbolic", since=500, lift=0.25, precision=0.875) for rule in rules}
    return RuleSet(rules, version, known, retired=retired)


def left(text: str, step: int, why: str, by: str = "data") -> Retired:
    """A rule that left."""
    rule = parse_rules(text, strict=True).rules[0]
    return Retired(rule.name, meaning(rule), "D702", why, by, step)


VERSIONS = (
    ruleset(1, KEY),
    ruleset(2, LIGHTER, DOOR),
    ruleset(3, WIDER, retired=(left(KEY, 1500, "nobody proposed it again"),)),
    ruleset(4, WIDER, KEY),
)
STEPS = {1: 500, 2: 1000, 3: 1500, 4: 2000}


def metrics_line(kind: str, step: int, **values: Any) -> dict[str, Any]:
    """A line of the metrics."""
    return {"kind": kind, "step": step, **values}


def made_up(path: Path, lines: list[dict[str, Any]] | None = None, **changes: Any) -> RunDirectory:
    """A run with four versions of rules and these metrics."""
    run = RunDirectory(path)
    run.rules.mkdir(parents=True)
    config = {"settings": settings(**changes).model_dump(mode="json"), "versions": {"nser": "9"}, "command": "nser …"}
    run.config.write_text(json.dumps(config))
    told = lines if lines is not None else induced()
    run.metrics.write_text("".join(json.dumps(line) + "\n" for line in told))
    for one in VERSIONS:
        run.save_rules(one)
    return run


def induced() -> list[dict[str, Any]]:
    """What the inductions of the four versions would have told."""
    return [
        metrics_line(
            "rules",
            STEPS[one.version],
            version=one.version,
            kept=[rule.name for rule in one.rules],
            refused={"wall": "D703"},
            cost_seconds=0.25,
        )
        for one in VERSIONS
    ]
