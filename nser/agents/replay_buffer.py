"""A Stable-Baselines3 replay buffer whose draws a `ReplayIndex` decides.

SB3's own buffer draws a position and then a random environment; here a slot is one (position, environment) pair, so
that what the index weighed is what is gathered. Batches carry two fields more than SB3's, which stock algorithms
ignore: importance `weights`, and the `draw` that an agent with feedback passes back with its errors.

As SB3 hands them over, Box actions are stored rescaled to [-1, 1] whatever the bounds of the action space: rules over
actions read them so. Observations and rewards are stored as the environment gave them; `VecNormalize` is applied to
what is drawn, with the statistics of that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import BaseBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from nser.agents.frames import Frames, Observations, vectors
from nser.agents.nstep import windows
from nser.errors import NserError
from nser.experience.trajectories import Trajectories, as_steps
from nser.grounding.steps import Steps
from nser.replay.draw import Draw
from nser.replay.index import ReplayIndex
from nser.replay.law import Law
from nser.replay.presets import preset

Ints = NDArray[np.int64]

STORED = ("actions", "rewards", "dones", "timeouts", "episodes")
Tensors = Any  # a tensor, or a dictionary of tensors
SCORE_EVERY = 64  # new transitions that wait for their score together; one by one, the call costs more than the score


class BufferStateError(NserError, ValueError):
    """A saved buffer that does not fit this one."""


class Scorer(Protocol):
    """Who gives stored transitions their relevance (see `nser.scorers`)."""

    version: int
    past: int
    future: int

    def relevance(self, steps: Steps) -> NDArray[np.float64]:
        """[T] relevance in [0, 1]."""


class ReplaySamples(NamedTuple):
    """SB3's batch of `B` transitions, then ours.

    observations, next_observations [B, *obs], or dictionaries of such; actions [B, A]; dones (1 only where the
    environment terminated), rewards and weights [B, 1]; discounts [B, 1] = γ^k of the k steps that the rewards sum
    over, None for one-step batches; `draw` names the slots and their generations.
    """

    observations: Tensors
    actions: torch.Tensor
    next_observations: Tensors
    dones: torch.Tensor
    rewards: torch.Tensor
    discounts: torch.Tensor | None
    weights: torch.Tensor
    draw: Draw


class IndexedReplayBuffer(ReplayBuffer):
    """Replay by the law of a `ReplayIndex`, for any off-policy algorithm of SB3.

    Use `replay_buffer_class=IndexedReplayBuffer, replay_buffer_kwargs={"law": "per"}`. Stock algorithms get draws by
    age and relevance but give no errors back; the agents of `nser.agents` do. One draw is one step of the index's
    clock, so ages count gradient steps. Any observation space of SB3 will do, dictionaries too.

    law:     a `Law` or the name of a preset
    seed:    of the index's own generator; the global one is never used
    n_steps: rewards of up to so many steps are summed; cut at the end of an episode and at the newest transition
    gamma:   their discount factor
    """

    def __init__(  # noqa: PLR0913 - the first seven are SB3's
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        law: Law | str = "nser",
        seed: int = 0,
        n_steps: int = 1,
        gamma: float = 0.99,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError(
                "found optimize_memory_usage=True, expected False: here each observation is stored once anyway, and "
                "no transition is lost to it; leave it out"
            )
        if n_steps < 1 or not 0 <= gamma <= 1:
            raise ValueError(f"found n_steps={n_steps}, gamma={gamma}, expected n_steps ≥ 1 and gamma in [0, 1]")
        # Not ReplayBuffer's: it would take memory for every observation twice.
        BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self.n_steps, self.gamma = n_steps, gamma
        self.frames = Frames(self.buffer_size, observation_space, n_envs)
        shape = (self.buffer_size, n_envs)
        self.actions = np.zeros((*shape, self.action_dim), self._maybe_cast_dtype(action_space.dtype))
        self.rewards, self.dones, self.timeouts = (np.zeros(shape, np.float32) for _ in range(3))
        self.episodes = np.zeros(shape, np.int64)
        self.law = preset(law) if isinstance(law, str) else law
        self.index = ReplayIndex(self.buffer_size * n_envs, self.law, seed=seed)
        self.scorer: Scorer | None = None
        self.last_draw: Draw | None = None
        self.feedback = True
        self._running = np.arange(n_envs, dtype=np.int64)
        self._unscored = 0

    @property
    def observations(self) -> Any:  # type: ignore[override]
        """[size, n_envs, *obs], or a dictionary of such: what was seen before acting."""
        return self.frames.observations

    def add(
        self,
        obs: Observations,
        next_obs: Observations,
        action: NDArray,
        reward: NDArray,
        done: NDArray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one transition of each environment; a new item is drawn as eagerly as the best live one."""
        row = self.pos
        before = (row - 1) % self.buffer_size if self.full or row else -1
        for env in self.frames.add(row, before, obs, next_obs):
            # Reset in between (a new call of `learn`, a loaded buffer): what comes now is another episode.
            if self.episodes[before, env] == self._running[env]:
                self._begin_episode(env)
        self.episodes[row] = self._running
        self.actions[row] = np.asarray(action).reshape(self.n_envs, self.action_dim)
        self.rewards[row] = reward
        self.dones[row] = done
        if self.handle_timeout_termination:
            self.timeouts[row] = [info.get("TimeLimit.truncated", False) for info in infos]
        self.pos = (row + 1) % self.buffer_size
        self.full = self.full or self.pos == 0
        self.index.insert(self.n_envs)
        for env in np.asarray(done).nonzero()[0].tolist():
            self._begin_episode(env)
        self._unscored += 1
        if self.scorer is not None and self._unscored >= SCORE_EVERY:
            self.score_new()

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplaySamples:  # type: ignore[override]
        """A batch by the index's law, and one step of its clock."""
        self.last_draw = draw = self.index.draw(batch_size)
        self.index.tick()
        return self.gather(draw, env)

    def gather(self, draw: Draw, env: VecNormalize | None = None) -> ReplaySamples:
        """The transitions of a draw as tensors on the buffer's device."""
        slots = draw.slots
        if self.n_steps == 1:
            last, discounts, rewards = slots, None, self._rewards_at(slots, env)
        else:
            window = windows(
                slots,
                self.n_steps,
                self.gamma,
                self.n_envs,
                self.buffer_size * self.n_envs,
                lambda at: self._rewards_at(at, env),
                self._goes_on,
            )
            last, discounts, rewards = window.last, self._column(window.discounts), window.returns
        ended = self._flat(self.dones).take(last) * (1 - self._flat(self.timeouts).take(last))
        return ReplaySamples(
            self._tensors(self._normalize_obs(self.frames.at(slots), env)),
            torch.from_numpy(self._rows(self.actions, slots)).to(self.device),
            self._tensors(self._normalize_obs(self.frames.after(last), env)),
            self._column(ended),
            self._column(rewards),
            discounts,
            self._column(draw.weights),
            draw,
        )

    def update(self, draw: Draw, errors: NDArray) -> None:
        """Feed raw |TD errors| [B] of a draw back; those of slots overwritten meanwhile are ignored.

        Without `feedback` the draws go by age and relevance alone, as VLM-guided replay does for discrete actions.
        """
        if self.feedback:
            self.index.update(draw, errors)

    def reset(self) -> None:
        """Refused: feedback for what it held could not be told from feedback for what it will hold."""
        raise BufferStateError("found reset() of a replay buffer with an index, expected a new buffer; make one")

    # What the rules read ------------------------------------------------------------------------------------

    def set_scorer(self, scorer: Scorer | None) -> None:
        """Put a scorer in force and score every stored transition anew."""
        self.scorer = scorer
        self._unscored = 0
        if scorer is not None:
            self._score_rows(self.stored_rows())

    def score_new(self) -> None:
        """Score what was stored since the last time, and the few before it whose future is only known now."""
        if self.scorer is not None and self._unscored:
            rows = self.stored_rows()
            self._score_rows(rows[-(self._unscored + self.scorer.future) :], before=self.scorer.past, rows_all=rows)
        self._unscored = 0

    def steps_at(self, slot: int, past: int, future: int) -> tuple[Steps, int]:
        """The transition in a slot with its neighbours in time, and its place among them."""
        env = slot % self.n_envs
        rows = self.stored_rows()
        place = int(np.flatnonzero(rows == slot // self.n_envs)[0])
        first = max(place - past, 0)
        slots = rows[first : place + future + 1] * self.n_envs + env
        return self.steps_of(slots), place - first

    def steps_of(self, slots: Ints) -> Steps:
        """The transitions in these slots [T]; in the order of time and of one environment for temporal rules."""
        return as_steps(vectors(self.frames.at(slots)), self._plain_actions(slots), self._flat(self.episodes)[slots])

    def stored_rows(self) -> Ints:
        """Positions in the order of time, the oldest first."""
        if not self.full:
            return np.arange(self.pos)
        return np.concatenate([np.arange(self.pos, self.buffer_size), np.arange(self.pos)])

    def trajectories(self, newest: int | None = None) -> Trajectories:
        """Stored transitions, environment by environment, at most the `newest` of them.

        The oldest episode of each environment is left out once the buffer has wrapped: its beginning may be gone.
        """
        rows = self.stored_rows()
        if newest is not None:
            rows = rows[-max(newest // self.n_envs, 1) :]
        lost = len(rows) < (self.buffer_size if self.full else self.pos) or self.full
        parts = []
        for env in range(self.n_envs):
            slots = rows * self.n_envs + env
            if lost and len(slots):
                numbers = self._flat(self.episodes)[slots]
                slots = slots[numbers != numbers[0]]
            parts.append(slots)
        slots = np.concatenate(parts)
        dones = self._flat(self.dones)[slots] > 0
        return Trajectories(
            observations=vectors(self.frames.at(slots)),
            actions=self._plain_actions(slots),
            rewards=self._flat(self.rewards)[slots],
            next_observations=vectors(self.frames.after(slots)),
            terminated=dones & (self._flat(self.timeouts)[slots] == 0),
            finished=dones,
            episodes=self._flat(self.episodes)[slots],
        )

    def _score_rows(self, rows: Ints, before: int = 0, rows_all: Ints | None = None) -> None:
        scorer = self.scorer
        if scorer is None or not len(rows):
            return
        context = rows
        if before and rows_all is not None:
            context = rows_all[-(len(rows) + before) :]
        for env in range(self.n_envs):
            scores = scorer.relevance(self.steps_of(context * self.n_envs + env))
            self.index.relate(rows * self.n_envs + env, scores[-len(rows) :], scorer.version)

    def _plain_actions(self, slots: Ints) -> NDArray:
        actions = self._rows(self.actions, slots)
        return actions.reshape(len(slots)) if isinstance(self.action_space, spaces.Discrete) else actions

    def _begin_episode(self, env: int) -> None:
        self._running[env] = self._running.max() + 1

    # Gathering ----------------------------------------------------------------------------------------------

    def _goes_on(self, slots: Ints) -> NDArray[np.bool_]:
        running: NDArray[np.bool_] = self._flat(self.dones).take(slots) == 0
        return running & (self._flat(self.frames.apart).take(slots) < 0)

    def _rewards_at(self, slots: Ints, env: VecNormalize | None) -> NDArray[np.float32]:
        return self._normalize_reward(self._flat(self.rewards).take(slots), env)

    def _column(self, values: NDArray) -> torch.Tensor:
        return torch.from_numpy(values.astype(np.float32, copy=False).reshape(-1, 1)).to(self.device)

    def _tensors(self, observations: Observations) -> Tensors:
        # No second copy: what was gathered, or normalised, is this batch's own.
        if isinstance(observations, dict):
            return {name: torch.from_numpy(part).to(self.device) for name, part in observations.items()}
        return torch.from_numpy(observations).to(self.device)

    @staticmethod
    def _flat(array: NDArray) -> NDArray:
        return array.reshape(-1)

    def _rows(self, array: NDArray, slots: Ints) -> NDArray:
        # `take` on a flat view copies rows several times faster than indexing with two arrays
        return array.reshape(self.buffer_size * self.n_envs, *array.shape[2:]).take(slots, axis=0)

    # Checkpoints --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything stored, as arrays and plain values; no pickle is needed to write it."""
        filled = self.size()
        arrays = {name: getattr(self, name)[:filled] for name in STORED}
        plain = {"pos": self.pos, "full": self.full, "unscored": self._unscored}
        index = self.index.state_dict()
        return {**self.frames.state(filled), **arrays, "running": self._running, **plain, "index": index}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; raises `BufferStateError` (nothing changed) where it does not fit."""
        filled = self.buffer_size if state["full"] else int(state["pos"])
        places = self.n_envs + int(np.count_nonzero(np.asarray(state.get("places", ())) >= self.n_envs))
        expected = self.frames.shapes(filled, places)
        expected.update({name: (filled, *getattr(self, name).shape[1:]) for name in STORED})
        for name, shape in expected.items():
            found = np.shape(state[name]) if name in state else None
            if found != shape:
                raise BufferStateError(
                    f"saved {name} has shape {found}, expected {shape}; make the buffer with the spaces, size and "
                    "number of environments of the run that saved it"
                )
        self.index.load_state_dict(state["index"])
        self.frames.load_state(state, filled)
        for name in STORED:
            getattr(self, name)[:filled] = state[name]
        self._running = np.array(state["running"], np.int64)
        self.pos, self.full = int(state["pos"]), bool(state["full"])
        self._unscored = int(state["unscored"])
