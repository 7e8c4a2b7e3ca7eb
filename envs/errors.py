"""What can go wrong between a name of an environment and an episode of it."""

from __future__ import annotations

from nser.errors import NserError

OWN_ENVIRONMENT = (
    "An environment of your own must be registered with gymnasium first; 'module:Name-v0' imports the module "
    "that does so"
)
OWN_MODULE = (
    "What stands before the colon is a module that Python must find: install it, or put its folder into PYTHONPATH, as "
    "in `PYTHONPATH=. nser …`"
)


class UnknownEnvironmentError(NserError, ValueError):
    """No environment answers to this id, or what it needs is not installed.

    Attributes: `env_id` (what was asked), `reason` (in words), `nearest` (known ids that look like it),
    `advice` (the way out).
    """

    def __init__(self, env_id: str, reason: str, nearest: tuple[str, ...] = (), advice: str = OWN_ENVIRONMENT) -> None:
        super().__init__(env_id, reason, nearest, advice)
        self.env_id, self.reason, self.nearest, self.advice = env_id, reason, nearest, advice

    def __str__(self) -> str:
        near = f"Did you mean {' or '.join(self.nearest)}? " if self.nearest else ""
        return f"can't make environment {self.env_id!r}: {self.reason}. {near}{self.advice}".rstrip()


class NoVocabularyError(NserError, ValueError):
    """A space of which no vocabulary can be made; attributes `space` (as text) and `reason`."""

    def __init__(self, space: str, reason: str) -> None:
        super().__init__(space, reason)
        self.space, self.reason = space, reason

    def __str__(self) -> str:
        return f"no automatic vocabulary for {self.space}: {self.reason}"


class PositionError(NserError, ValueError):
    """A position in a run that can't be told or restored; the message says why."""


class ReplayDivergedError(NserError, RuntimeError):
    """An episode played again from its seed and actions did not come out as before.

    Attributes: `episode` (its number), `step` (actions played again), `steps` (actions on record), `reason`.
    """

    def __init__(self, episode: int, step: int, steps: int, reason: str) -> None:
        super().__init__(episode, step, steps, reason)
        self.episode, self.step, self.steps, self.reason = episode, step, steps, reason

    def __str__(self) -> str:
        return (
            f"episode {self.episode} played again from its seed came out otherwise: {self.reason} after "
            f"{self.step} of {self.steps} recorded actions; expected the same course. The environment is not "
            "determined by its seed and the actions, or is not the one that the position was taken from; "
            "start a new episode instead"
        )
