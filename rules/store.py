"""Rule sets on disk: a text that a person edits, and beside it a JSON file of where each rule comes from.

`0003.rules` is what counts; `0003.json` holds figures about it and may be lost without losing a rule. The
figures of a rule hold for its text: once a person edits more of it than the weight, they are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from nser.files import open_file, write_text, writing
from nser.rules.errors import ProvenanceError, RuleError, RuleFileError
from nser.rules.parse import parse_rules
from nser.rules.printer import print_rule
from nser.rules.ruleset import Provenance, Retired, RuleSet, is_known, meaning
from nser.rules.syntax import Rule

__all__ = [
    "MAX_BYTES",
    "Provenance",
    "Retired",
    "RuleSet",
    "beside_of",
    "load_rules",
    "load_written",
    "read_text",
    "save_rules",
]

SUFFIX = ".rules"
MAX_BYTES = 4 * 1024 * 1024
_HEADER = re.compile(r"^# nser rules, version (\d{1,9})\b", re.MULTILINE)


def load_rules(path: Path | str) -> RuleSet:
    """Read a rule file and the provenance beside it.

    Bad rules, text outside the rules and a broken provenance become `problems`; the good rules are
    returned. A file without nser's first line was written by hand and needs no provenance. Raises
    RuleFileError when there is no readable UTF-8 text of at most 4 MiB at the path.
    """
    path = Path(path)
    if path.suffix == ".json":
        raise RuleFileError(f"{path}", (f"the text of the rules, {path.with_suffix(SUFFIX).name}",))
    return _ruleset(path, read_text(path))


def load_written(path: Path | str) -> RuleSet:
    """The rules as nser wrote them to a file, whatever a person made of the file since.

    The text that was written stands in the provenance beside it; where that is missing the file is read as it is.
    """
    path = Path(path)
    text = beside_of(path).get("written")
    return _ruleset(path, text if isinstance(text, str) else read_text(path))


def beside_of(path: Path) -> dict[str, Any]:
    """What stands in the JSON file beside a rule file; empty where there is none that can be read."""
    try:
        content = json.loads(read_text(path.with_suffix(".json"), "the provenance of the rules"))
    except (RuleFileError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _ruleset(path: Path, text: str) -> RuleSet:
    parsed = parse_rules(text, strict=True)
    header = _HEADER.search(text)
    beside = path.with_suffix(".json")
    provenance: dict[str, Provenance] = {}
    retired: tuple[Retired, ...] = ()
    problems = [*parsed.problems]
    if header or beside.exists():
        provenance, retired, broken = _provenance(beside, parsed.rules)
        problems += broken
    return RuleSet(parsed.rules, int(header[1]) if header else 0, provenance, tuple(problems), retired)


def save_rules(path: Path | str, ruleset: RuleSet) -> None:
    """Write `<stem>.rules` and `<stem>.json`, each at once: a reader sees the old file or the new one.

    Raises RuleFileError when the path does not end in `.rules`, or when the rules would not read back as they
    are (a name twice, more than a file may hold); nothing is written then. Raises WriteError where the disk refuses.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise RuleFileError(f"{path}", (f"a name that ends in {SUFFIX}",))
    beside = path.with_suffix(".json")
    header = (
        f"# nser rules, version {ruleset.version}. Edit freely: this file is what counts,\n"
        f"# and the figures of its rules are in {beside.name}.\n"
    )
    # Why rules left is for whoever edits the file: read as comments, it is no part of the rules.
    left = "".join(f"\n# left: {one.text}\n#   {one.code}, {one.sentence}\n" for one in ruleset.retired)
    text = header + "".join(f"\n{print_rule(rule)}\n" for rule in ruleset.rules) + left
    parsed = parse_rules(text, strict=True)
    if parsed.rules != ruleset.rules:
        reason = str(parsed.problems[0]) if parsed.problems else "a rule that does not read back as it is"
        raise RuleFileError(f"{path}: {reason}", ("rules of the language",))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    # The figures first: their rules are the old ones then, and figures of other rules are passed over.
    write_text(beside, _as_json(ruleset, text))
    write_text(path, text)


def _as_json(ruleset: RuleSet, text: str) -> str:
    known = {
        rule.name: {"text": meaning(rule), **ruleset.provenance[rule.name].as_dict()}
        for rule in ruleset.rules
        if rule.name in ruleset.provenance
    }
    retired = [one.as_dict() for one in ruleset.retired]
    content = {"version": ruleset.version, "rules": known, "retired": retired, "written": text}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def read_text(path: Path, content: str = "a UTF-8 text of rules") -> str:
    """The text of a file that should hold some content, at most 4 MiB of UTF-8. Raises RuleFileError."""
    expected = (content,)
    try:
        with open_file(path) as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise RuleFileError(f"{path} with more bytes", (f"at most {MAX_BYTES // 1024**2} MiB",))
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


def _provenance(
    path: Path, rules: tuple[Rule, ...]
) -> tuple[dict[str, Provenance], tuple[Retired, ...], list[RuleError]]:
    """The provenance of those rules whose text it is about, what left, and what is wrong with the file."""
    try:
        content = json.loads(read_text(path, "the provenance of the rules"))
    except RuleFileError as error:
        return {}, (), [ProvenanceError(error.found, error.expected)]
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return {}, (), [ProvenanceError(f"{path}: {reason}", ("JSON",))]
    told = content.get("rules") if isinstance(content, dict) else None
    if not isinstance(told, dict):
        return {}, (), [ProvenanceError(f"{path} without `rules`", ("what nser wrote",))]
    found: dict[str, Provenance] = {}
    problems: list[RuleError] = []
    for rule in rules:
        entry = told.get(rule.name)
        if isinstance(entry, dict) and entry.get("text") == meaning(rule):
            try:
                found[rule.name] = _entry(entry)
            except TypeError as error:
                problems.append(ProvenanceError(f"{path}: {error}", ("what nser wrote",), rule=rule.name))
    return found, _retired(content.get("retired")), problems


def _retired(told: object) -> tuple[Retired, ...]:
    """The rules that left; an entry that is not as nser wrote it is passed over."""
    names = {one.name: int if one.name == "step" else str for one in fields(Retired)}
    found = []
    for entry in told if isinstance(told, list) else []:
        if isinstance(entry, dict) and all(type(entry.get(name)) is kind for name, kind in names.items()):
            found.append(Retired(**{name: entry[name] for name in names}))
    return tuple(found)


def _entry(entry: Mapping[str, Any]) -> Provenance:
    """One rule's provenance; keys of a later version are passed over. Raises TypeError."""
    values = {name: entry[name] for name in _KINDS if is_known(entry.get(name))}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, _KINDS[name]):
            raise TypeError(f"{value!r:.60} as {name}")
    return Provenance(**values)


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
_KINDS = {one.name: _TYPES[str(one.type).removesuffix(" | None")] for one in fields(Provenance)}
