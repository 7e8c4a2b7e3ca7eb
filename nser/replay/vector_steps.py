"""Steps of a Gymnasium vector environment as valid transitions, whatever it does after the end of an episode.

Since Gymnasium 1.0 there are three ways (``envs.metadata["autoreset_mode"]``). In two of them what ``step`` returns
holds things that are no transitions: 4.5 % of CartPole's steps, 11.6 % of FrozenLake's.

- ``NextStep`` (the default): the step after an end ignores the action and returns the reset observation. That step
  is left out.
- ``SameStep``: the last step returns the observation after the reset already; what was seen at the end is in
  ``infos["final_obs"]``, and that is stored.
- ``Disabled``: the loop resets by itself; every step is a transition.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nser.replay.array_buffer import ArrayBuffer
from nser.replay.errors import ArgumentError
from nser.replay.types import Bools, Ints

MODES = ("NextStep", "SameStep", "Disabled")


class VectorSteps:
    """Writes the steps of ``n_envs`` environments to a buffer, without what is no transition.

    buffer:    stores (n_envs,) transitions at a time
    autoreset: ``envs.metadata["autoreset_mode"]``, or its value as text

    Call ``add`` with what ``envs.step`` returned, and ``reset`` after every ``envs.reset()`` of one's own.
    """

    def __init__(self, buffer: ArrayBuffer, n_envs: int, autoreset: Any = "NextStep") -> None:
        mode = getattr(autoreset, "value", autoreset)
        if mode not in MODES:
            raise ArgumentError("autoreset", autoreset, f"one of {', '.join(MODES)}", "Pass the environment's own.")
        self.buffer = buffer
        self.mode = str(mode)
        self.n_envs = n_envs
        self._ended: Bools = np.zeros(n_envs, np.bool_)

    def reset(self) -> None:
        """Forget which environments had ended: all of them were reset."""
        self._ended = np.zeros(self.n_envs, np.bool_)

    def add(
        self,
        obs: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_obs: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike,
        infos: dict[str, Any],
    ) -> Ints:
        """Store the transitions of one step of all environments; returns the slots (m,) of those that are some.

        ``obs`` (n_envs, *obs_shape) is what ``actions`` were chosen on; the rest is what ``envs.step`` returned.
        Raises ``ArgumentError``, nothing changed.
        """
        over = np.logical_or(terminated, truncated)
        if over.shape != (self.n_envs,):
            raise ArgumentError("terminated", over.shape, f"the shape ({self.n_envs},)", "Pass what `step` returned.")
        given = [np.asarray(part) for part in (obs, actions, rewards, next_obs, terminated, truncated)]
        if self.mode == "SameStep" and over.any():
            given[3] = self._with_last(given[3], over, infos)
        if self.mode == "NextStep" and self._ended.any():
            given = [part[~self._ended] for part in given]
        slots = self.buffer.add(*given)
        self._ended = over
        return slots

    def _with_last(self, next_obs: Any, over: Bools, infos: dict[str, Any]) -> Any:
        last = infos.get("final_obs")
        if last is None or any(last[env] is None for env in np.flatnonzero(over)):
            raise ArgumentError(
                "infos", sorted(infos), "'final_obs' of every environment that ended", "Pass the infos of this step."
            )
        mended = next_obs.copy()
        for env in np.flatnonzero(over):
            mended[env] = last[env]
        return mended
