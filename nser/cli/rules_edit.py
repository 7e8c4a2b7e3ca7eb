"""`nser rules edit`: a rule file in your editor, checked before it counts."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import typer

from nser.cli.console import counted, err, out
from nser.cli.inputs import Env, InputError, RuleFile, Vocab, rule_path, vocabulary_for
from nser.cli.rules_check import print_verdicts
from nser.errors import NserError
from nser.files import write_text
from nser.rules.checks.pipeline import check_file
from nser.rules.signature import Signature
from nser.rules.store import read_text


class EditError(NserError):
    """An edit that was not taken; the copy that was edited is kept."""

    exit_code = 1


def command(file: RuleFile, env: Env = None, vocab: Vocab = None) -> None:
    """Open a copy in $VISUAL or $EDITOR, check it when the editor ends, and replace the file when it is good.

    With refusals you are asked to edit again, to keep it as it is, or to discard it. A file of a run that is going on
    is noticed by it at its next induction.
    """
    path = rule_path(file)
    vocabulary = vocabulary_for(env, vocab, file)
    before = read_text(path)
    copy = Path(tempfile.mkdtemp(prefix="nser-edit-")) / path.name
    write_text(copy, before)
    done = False
    try:
        done = _edited(path, copy, before, vocabulary.signature if vocabulary else None)
    finally:
        if done:
            shutil.rmtree(copy.parent, ignore_errors=True)
        else:
            err.print(f"your copy is {copy}", markup=False, soft_wrap=True)


def _edited(path: Path, copy: Path, before: str, signature: Signature | None) -> bool:
    """Whether the edit came to its end, so that the copy is needed no more. Raises `EditError`."""
    while True:
        _open_editor(copy)
        text = read_text(copy)
        if text == before:
            out.print("nothing changed")
            return True
        checked = check_file(text, signature)
        print_verdicts(checked.verdicts)
        if checked.refused:
            answer = _ask(len(checked.refused))
            if answer == "edit":
                continue
            if answer == "discard":
                out.print(f"{path} stays as it was", soft_wrap=True)
                return True
        if read_text(path) != before:
            raise EditError(f"{path} was changed by another meanwhile; merge the two with `nser rules merge`")
        write_text(path, text)
        out.print(f"{path}: {counted(len(checked.rules), 'rule')}{_in_force(path)}", soft_wrap=True)
        return True


def _in_force(path: Path) -> str:
    """When an edit counts: a run reads its newest rules at its next induction, or when it goes on."""
    run = path.absolute().parent.parent
    if not (run / "config.json").is_file():
        return ""
    return ". They are in force from the run's next induction, or its --resume, on"


def _open_editor(copy: Path) -> None:
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        done = subprocess.run([*words, str(copy)], check=False)
    except OSError as error:
        raise InputError(
            f"found the editor {words[0]!r}, which can't be started ({error.strerror}); set EDITOR to one that can"
        ) from error
    if done.returncode:
        raise EditError(f"the editor ended with exit code {done.returncode}; the file stays as it was")


def _ask(refused: int) -> str:
    if not sys.stdin.isatty():
        raise EditError(f"{refused} refused, and nobody to ask; the file stays as it was")
    while True:
        answer = typer.prompt("[e]dit again, [k]eep your edit as it is, [d]iscard it", default="e").strip().lower()
        for word in ("edit", "keep", "discard"):
            if answer and word.startswith(answer):
                return word
