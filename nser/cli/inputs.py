"""What several commands take: a rule file or a run, recorded data, and the vocabulary that goes with them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nser.errors import NserError

if TYPE_CHECKING:
    from nser.experience.trajectories import Trajectories
    from nser.grounding.vocabulary import Vocabulary
    from nser.rules.ruleset import RuleSet

RuleFile = Annotated[Path, typer.Argument(metavar="FILE", help="A .rules file, or a run: its newest rules.")]
_DATA = "Recorded trajectories: .npz, .jsonl, a Minari dataset, or a run: what its buffer holds."
Data = Annotated[Path, typer.Argument(metavar="DATA", help=_DATA)]
OptionalData = Annotated[Path | None, typer.Argument(metavar="DATA", help=_DATA)]
Env = Annotated[
    str | None,
    typer.Option("--env", metavar="ENV", help="Environment whose words the rules use; a run's own is known."),
]
Vocab = Annotated[str | None, typer.Option("--vocab", metavar="MODULE:NAME", help="A vocabulary of your own.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class InputError(NserError, ValueError):
    """An option or argument that is missing or names nothing."""


def rule_path(file: Path) -> Path:
    """The rule file that is meant: itself, or the newest of a run. Raises `InputError` where there is neither."""
    if not file.exists():
        raise InputError(f"found {file}: no such file or directory, expected a .rules file or a run's folder")
    if not file.is_dir():
        return file
    files = [path for path in (file / "rules").glob("*.rules") if path.stem.isdecimal()]
    if not files:
        if (file / "config.json").is_file():
            raise InputError(
                f"found no rules in the run {file}, expected one that has found some; let it go on, see "
                "`nser train --resume`"
            )
        raise InputError(f"found the folder {file}, which is no run, expected a .rules file or a run's folder")
    return max(files, key=lambda path: int(path.stem))


def readable_rules(file: Path) -> RuleSet:
    """The rules of a file or of a run's newest; what is wrong with some of them is told as warnings.

    Raises `RuleFileError`, and `InputError` where there is no rule among what was found.
    """
    from nser.cli.console import err
    from nser.rules.store import load_rules

    path = rule_path(file)
    ruleset = load_rules(path)
    if ruleset.problems and not ruleset.rules:
        raise InputError(f"found no rule in {path} that can be read ({ruleset.problems[0]})")
    for problem in ruleset.problems:
        err.print(f"warning: {problem}", markup=False)
    return ruleset


def vocabulary_for(env: str | None, vocab: str | None, *files: Path | None) -> Vocabulary | None:
    """The vocabulary that options name, or that of the run which one of the files is, or lies in; else `None`.

    `--vocab` imports the module, from the present folder too, as Python's own `-m` does: name no module that you would
    not run.
    """
    if env is not None and vocab is not None:
        raise InputError("found both --env and --vocab, expected one of them")
    if vocab is not None:
        return _own(vocab)
    told = (env, *(_env_of_run(file) for file in files if file is not None))
    name = next((one for one in told if one is not None), None)
    if name is None:
        return None
    from nser.envs.make import make_env, vocabulary_of

    return vocabulary_of(make_env(name))


def required_vocabulary(env: str | None, vocab: str | None, *files: Path | None) -> Vocabulary:
    """The same, where a command can't do without. Raises `InputError`."""
    found = vocabulary_for(env, vocab, *files)
    missing = next((file for file in files if file is not None and not file.exists()), None)
    if found is None and missing is not None:
        raise InputError(f"found {missing}: no such file or directory, expected recorded data or a run's folder")
    if found is None:
        raise InputError(
            "found no vocabulary, expected --env ENV (such as MiniGrid-DoorKey-6x6-v0) or --vocab MODULE:NAME"
        )
    return found


def load_data(path: Path) -> Trajectories:
    """Recorded trajectories of any format, or those in the buffer of a run's last checkpoint.

    Raises `TrajectoryError`, `CheckpointError`, and `InputError` for none at all.
    """
    from nser.experience.files import load_trajectories

    found = _stored(path) if (path / "config.json").is_file() else load_trajectories(path)
    if not len(found):
        raise InputError(f"found no transitions in {path}, expected at least one")
    return found


def _stored(run: Path) -> Trajectories:
    from nser.runs.directory import RunDirectory
    from nser.runs.explain import stored_buffer

    buffer, _ = stored_buffer(RunDirectory.open(run))
    return buffer.trajectories()


def _own(word: str) -> Vocabulary:
    from nser.grounding.vocabulary import Vocabulary

    module, sign, name = word.partition(":")
    if not sign or not module or not name:
        raise InputError(f"found --vocab {word}, expected MODULE:NAME such as my_world.words:VOCABULARY")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"found --vocab {word}, but {error}; expected a module that Python finds, and a name in it"
        ) from error
    if not isinstance(found, Vocabulary):
        raise InputError(f"found a {type(found).__name__} at {word}, expected an nser.grounding.vocabulary.Vocabulary")
    return found


def _env_of_run(file: Path) -> str | None:
    """The environment of the run that a file or folder belongs to."""
    from nser.runs.directory import RunDirectory

    for folder in (file, file.absolute().parent.parent):
        if (folder / "config.json").is_file():
            return RunDirectory.open(folder).settings().env
    return None
