"""What a user can run into with run directories."""

from __future__ import annotations

from pathlib import Path

from nser.errors import NserError


class RunError(NserError):
    """A run directory that is not as it should be; `path` says which."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(path, message)
        self.path, self.message = path, message

    def __str__(self) -> str:
        return self.message


class RunExistsError(RunError):
    """The directory of a new run is there already."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path,
            f"run directory {path} exists already; go on with `nser train --resume {path}`, choose another --name, "
            "or replace it with --overwrite",
        )


class NoRunError(RunError):
    """There is no run where one was named."""

    def __init__(self, path: Path, missing: str) -> None:
        super().__init__(path, f"{path} is no run directory: found no {missing}; name a folder that `nser train` made")


class DiskError(RunError):
    """The disk refused a write; what was whole before is whole still."""

    exit_code = 1


class CheckpointError(RunError):
    """A checkpoint that can't be read."""


class RunStopped(RunError):
    """The user stopped the run, and it was saved."""

    exit_code = 130

    def __init__(self, path: Path, step: int) -> None:
        super().__init__(path, f"stopped and saved at step {step:,}; go on with `nser train --resume {path}`")


class UnsuitedEnvironmentError(NserError, ValueError):
    """An environment that the agent can't act in."""
