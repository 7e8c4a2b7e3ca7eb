"""Rule files that a person edits while the run goes on.

At every induction step the newest numbered files of `rules/`, and every other `.rules` file there, are compared with
what nser wrote. One that differs is checked: a fault is told with its line, once, and the old rules stay in force; a
good one is merged with the rules in force (a file may be older than they are) and becomes a new version. What a
person added or changed has the proposer `person`: later inductions keep it, weight and all, until data refute it or
the person takes it out. What a person took out is not proposed again. The edited file itself is never written to;
the file beside it notes that the edit was taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nser.files import write_text
from nser.grounding.vocabulary import Vocabulary
from nser.induce.standing import TAKEN_OUT, bare
from nser.rules.checks.pipeline import check_file
from nser.rules.diff import Change, diff, merge
from nser.rules.errors import RuleFileError
from nser.rules.parse import parse_rules
from nser.rules.ruleset import PERSON, Provenance, Retired, RuleSet, meaning, skeleton
from nser.rules.store import beside_of, read_text
from nser.rules.syntax import Rule
from nser.rules.verdict import Verdict

WATCHED = 8  # newest numbered files; an edit of an older one is an edit of history
TAKEN = "taken"
# A set of a person's own may hold special cases and opposites: these are told, and data judge them.
TOLERATED = ("R502", "R503", "R601")


@dataclass(frozen=True)
class Edit:
    """A rule file that is not as nser wrote it: its text now, and the text that the person started from."""

    path: Path
    text: str
    written: str

    @property
    def digest(self) -> str:
        """What tells this edit from another of the same file."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


class RuleEdits:
    """Notices edits in the folder of a run's rules; `told` remembers the bad ones that were complained of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._told: set[tuple[Path, str]] = set()

    def take(self, current: RuleSet | None, vocabulary: Vocabulary, step: int) -> tuple[RuleSet | None, list[str]]:
        """The rules in force with every good edit merged in, or None where nothing changed; and what to tell people.

        The caller saves the new version. Each edit is noted as taken by that version beside its file; should the run
        be killed in between, it comes back to an older version, and takes the edit again.
        """
        ruleset = current or RuleSet()
        said: list[str] = []
        for edit in self._edits(ruleset.version):
            checked = check_file(edit.text, vocabulary.signature)
            bad = [v for v in checked.refused if v.code not in TOLERATED]
            if bad:
                if (edit.path, edit.digest) not in self._told:
                    self._told.add((edit.path, edit.digest))
                    said.append(f"step {step:,}: {edit.path.name} is not taken, the old rules stay: {_first(bad)}")
                continue
            mine = parse_rules(edit.text, strict=True).rules
            base = parse_rules(edit.written, strict=True).rules
            merged = merge(base, mine, ruleset.rules)
            changes = diff(ruleset.rules, merged.rules)
            notes = [f"; {v.code} in `{v.rule}`: {v.sentence}" for v in checked.refused]
            notes += [f"; {conflict}, yours stands" for conflict in merged.conflicts]
            if changes:
                ruleset = _changed(ruleset, merged.rules, changes, step)
                said.append(f"step {step:,}: took {edit.path.name}: {_counted(changes)}{''.join(notes)}")
            self._mark(edit, ruleset.version)
        return (ruleset if ruleset.version > (current.version if current else 0) else None), said

    def _edits(self, version: int) -> list[Edit]:
        """The files that differ from what was written, but for edits that a version up to the present one holds."""
        numbered = sorted(self.folder.glob("[0-9]*.rules"))[-WATCHED:]
        named = sorted(path for path in self.folder.glob("*.rules") if not path.name[0].isdigit())
        found = []
        for path in (*numbered, *(path for path in named if not path.name.startswith("."))):
            try:
                text = read_text(path)
            except RuleFileError:
                continue  # gone, or half written: the next step looks again
            beside = beside_of(path)
            written = beside.get("written", None if path in numbered else "")
            edit = Edit(path, text, written) if isinstance(written, str) else None
            if edit is None or edit.text == edit.written:
                continue
            taken = beside.get(TAKEN)
            known = isinstance(taken, dict) and taken.get("digest") == edit.digest
            if not (known and isinstance(taken, dict) and int(taken.get("version", 0)) <= version):
                found.append(edit)
        return found

    def _mark(self, edit: Edit, version: int) -> None:
        """Note beside the file that a version holds this edit; a resume from before that version takes it again."""
        beside = beside_of(edit.path) or {"version": 0, "rules": {}, "retired": [], "written": edit.written}
        content = {**beside, TAKEN: {"digest": edit.digest, "version": version}}
        write_text(edit.path.with_suffix(".json"), json.dumps(content, indent=1, allow_nan=False) + "\n")


def _changed(ruleset: RuleSet, rules: Sequence[Rule], changes: Sequence[Change], step: int) -> RuleSet:
    """The next version: a person's changes are theirs, the rest keeps where it came from."""
    provenance = {rule.name: ruleset.provenance[rule.name] for rule in rules if rule.name in ruleset.provenance}
    retired = list(ruleset.retired)
    for change in changes:
        if change.after is not None:
            provenance[change.name] = Provenance(proposer=PERSON, since=step)
            retired = [one for one in retired if bare(one.text) != skeleton(change.after)]
        elif change.before is not None:
            told = "a person took it out of the rule file"
            retired.append(Retired(change.name, meaning(change.before), TAKEN_OUT, told, PERSON, step))
    return RuleSet(tuple(rules), ruleset.version + 1, provenance, retired=tuple(retired))


def _first(bad: Sequence[Verdict]) -> str:
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return f"{bad[0]}{more}"


def _counted(changes: Sequence[Change]) -> str:
    kinds = ("added", "changed", "removed")
    return ", ".join(
        f"{kind} {', '.join(change.name for change in changes if change.kind == kind)}"
        for kind in kinds
        if any(change.kind == kind for change in changes)
    )
