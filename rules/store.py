"""Rule sets on disk: a text that a person edits, and beside it a JSON file of where each rule comes from.

`0003.rules` is what counts; `0003.json` holds figures about it and may be lost without losing a rule. The
figures of a rule hold for its text: once a person edits more of it than the weight, they are left out.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from nser.files import write_text
from nser.rules.errors import ProvenanceError, RuleError, RuleFileError
from nser.rules.parse import parse_rules
from nser.rules.printer import print_rule
from nser.rules.syntax import Rule

SUFFIX = ".rules"
MAX_BYTES = 4 * 1024 * 1024
_HEADER = re.compile(r"^# nser rules, version (\d{1,9})\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who proposed a rule, and what held-out data said of it; `None` where nobody knows.

    `support` is the fraction of steps on which the body holds, `coverage` that of the good (or bad) steps
    it covers, `precision` that of its firings which are good (or bad), `lift` its gain over the base rate
    with the ends of its interval, `firings` a count, `since` the environment step of its proposal.
    """

    proposer: str | None = None
    since: int | None = None
    support: float | None = None
    coverage: float | None = None
    precision: float | None = None
    lift: float | None = None
    lift_low: float | None = None
    lift_high: float | None = None
    firings: int | None = None
    prompt_hash: str | None = None
    reply_hash: str | None = None
    verdict: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON values of the fields that are known; a NaN or infinite figure counts as unknown."""
        return {name: value for name, value in asdict(self).items() if _is_known(value)}


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules in the order of their file, a version, and the provenance of those whose origin is known.

    `problems` is what was wrong with the files it was read from; it takes no part in equality.
    """

    rules: tuple[Rule, ...] = ()
    version: int = 0
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
    problems: tuple[RuleError, ...] = field(default=(), compare=False)


def load_rules(path: Path | str) -> RuleSet:
    """Read a rule file and the provenance beside it.

    Bad rules, text outside the rules and a broken provenance become `problems`; the good rules are
    returned. A file without nser's first line was written by hand and needs no provenance. Raises
    RuleFileError when there is no readable UTF-8 text of at most 4 MiB at the path.
    """
    path = Path(path)
    if path.suffix == ".json":
        raise RuleFileError(f"{path}", (f"the text of the rules, {path.with_suffix(SUFFIX).name}",))
    text = _read(path, "a UTF-8 text of rules")
    parsed = parse_rules(text, strict=True)
    header = _HEADER.search(text)
    beside = path.with_suffix(".json")
    provenance: dict[str, Provenance] = {}
    problems = [*parsed.problems]
    if header or beside.exists():
        provenance, broken = _provenance(beside, parsed.rules)
        problems += broken
    return RuleSet(parsed.rules, int(header[1]) if header else 0, provenance, tuple(problems))


def save_rules(path: Path | str, ruleset: RuleSet) -> None:
    """Write `<stem>.rules` and `<stem>.json`, each at once: a reader sees the old file or the new one.

    Raises RuleFileError when the path does not end in `.rules`, cannot be written, or when the rules would
    not read back as they are (a name twice, more than a file may hold); nothing is written then.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise RuleFileError(f"{path}", (f"a name that ends in {SUFFIX}",))
    beside = path.with_suffix(".json")
    header = (
        f"# nser rules, version {ruleset.version}. Edit freely: this file is what counts,\n"
        f"# and the figures of its rules are in {beside.name}.\n"
    )
    text = header + "".join(f"\n{print_rule(rule)}\n" for rule in ruleset.rules)
    parsed = parse_rules(text, strict=True)
    if parsed.rules != ruleset.rules:
        reason = str(parsed.problems[0]) if parsed.problems else "a rule that does not read back as it is"
        raise RuleFileError(f"{path}: {reason}", ("rules of the language",))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The figures first: their rules are the old ones then, and figures of other rules are passed over.
        write_text(beside, _as_json(ruleset))
        write_text(path, text)
    except OSError as error:
        raise RuleFileError(f"{path}: {_reason(error)}", ("a place that can be written",)) from error


def _as_json(ruleset: RuleSet) -> str:
    known = {
        rule.name: {"text": _meaning(rule), **ruleset.provenance[rule.name].as_dict()}
        for rule in ruleset.rules
        if rule.name in ruleset.provenance
    }
    return json.dumps({"version": ruleset.version, "rules": known}, indent=1, allow_nan=False) + "\n"


def _meaning(rule: Rule) -> str:
    """What figures are about: all of a rule but its weight."""
    return print_rule(replace(rule, weight=1.0))


def _is_known(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _read(path: Path, content: str) -> str:
    """The text of a file that should hold some content. Raises RuleFileError."""
    expected = (content,)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise RuleFileError(f"{path}, which is no file", expected)
        if status.st_size > MAX_BYTES:
            limit = f"at most {MAX_BYTES // 1024**2} MiB"
            raise RuleFileError(f"{path} with {status.st_size} bytes", (limit,))
        raw = path.read_bytes()
    except OSError as error:
        raise RuleFileError(f"{path}: {_reason(error)}", expected) from error
    except ValueError as error:  # a NUL in the path
        raise RuleFileError(f"{str(path)!r}: {error}", expected) from error
    if b"\0" in raw:
        raise RuleFileError(f"{path} with a zero byte at {raw.index(0)}", expected)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RuleFileError(f"{path} with no UTF-8 at byte {error.start}", expected) from error


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _provenance(path: Path, rules: tuple[Rule, ...]) -> tuple[dict[str, Provenance], list[RuleError]]:
    """The provenance of those rules whose text it is about, and what is wrong with the file."""
    try:
        content = json.loads(_read(path, "the provenance of the rules"))
    except RuleFileError as error:
        return {}, [ProvenanceError(error.found, error.expected)]
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return {}, [ProvenanceError(f"{path}: {reason}", ("JSON",))]
    told = content.get("rules") if isinstance(content, dict) else None
    if not isinstance(told, dict):
        return {}, [ProvenanceError(f"{path} without `rules`", ("what nser wrote",))]
    found: dict[str, Provenance] = {}
    problems: list[RuleError] = []
    for rule in rules:
        entry = told.get(rule.name)
        if isinstance(entry, dict) and entry.get("text") == _meaning(rule):
            try:
                found[rule.name] = _entry(entry)
            except TypeError as error:
                problems.append(ProvenanceError(f"{path}: {error}", ("what nser wrote",), rule=rule.name))
    return found, problems


def _entry(entry: Mapping[str, Any]) -> Provenance:
    """One rule's provenance; keys of a later version are passed over. Raises TypeError."""
    values = {name: entry[name] for name in _KINDS if _is_known(entry.get(name))}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, _KINDS[name]):
            raise TypeError(f"{value!r:.60} as {name}")
    return Provenance(**values)


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
_KINDS = {one.name: _TYPES[str(one.type).removesuffix(" | None")] for one in fields(Provenance)}
