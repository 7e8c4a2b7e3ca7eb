"""One door to every environment, and to the vocabulary that goes with it.

>>> env = make_env("MiniGrid-DoorKey-6x6-v0")
>>> vocabulary_of(env).name
'doorkey'
>>> vocabulary_of(make_env("CartPole-v1")).features
('cart_position', 'cart_velocity', 'pole_angle', 'pole_velocity')
"""

from __future__ import annotations

import difflib
import re
from importlib import import_module
from typing import Any

import gymnasium
from gymnasium import spaces

from nser.envs.automatic import automatic_vocabulary
from nser.envs.errors import UnknownEnvironmentError
from nser.envs.known import KNOWN, Known
from nser.grounding.vocabulary import Vocabulary

DOORKEY_ID = re.compile(r"(?:MiniGrid-|nser/)DoorKey-(\d+)x(\d+)-v0")
DOORKEY_SIZES = (5, 6, 8, 12, 16)
VERSION = re.compile(r"-v\d+$")


def make_env(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Make an environment by its id: symbolic where nser knows better, otherwise `gymnasium.make`.

    `MiniGrid-DoorKey-NxN-v0` gives `nser.envs.doorkey.DoorKey` for every size from 5, with its options as
    keyword arguments (`partial=True` for MiniGrid's own view). Every other id and its arguments go to
    `gymnasium.make`; MiniGrid's ids need no import of minigrid. Images are passed through as they are.

    Raises `UnknownEnvironmentError` with the nearest known ids.
    """
    found = DOORKEY_ID.fullmatch(env_id)
    if found:
        return _make_doorkey(env_id, int(found[1]), int(found[2]), kwargs)
    if env_id.startswith(("MiniGrid-", "BabyAI-")):
        import_module("minigrid")  # importing it registers its environments
    try:
        return gymnasium.make(env_id, **kwargs)
    except gymnasium.error.DependencyNotInstalled as error:
        raise UnknownEnvironmentError(env_id, str(error), advice="") from error
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv, ModuleNotFoundError) as error:
        raise UnknownEnvironmentError(env_id, _first_sentence(error), _nearest(env_id)) from error
    except gymnasium.error.Error as error:
        if env_id.rpartition(":")[2] in gymnasium.registry:
            raise  # a known environment refused its arguments
        raise UnknownEnvironmentError(env_id, _first_sentence(error), _nearest(env_id)) from error


def vocabulary_of(env: gymnasium.Env[Any, Any]) -> Vocabulary:
    """The vocabulary that rules about this environment may use.

    DoorKey has its own, well-known environments get friendly names and units, and every other one gets
    `x0`, `x1`, … of its spaces. A wrapper that changes the observations or actions takes their names away,
    since they would tell untruths of the new numbers.

    Raises `NoVocabularyError` for images, texts and other spaces that hold no row of numbers.
    """
    inner = env.unwrapped
    same_observations = env.observation_space == inner.observation_space
    same_actions = env.action_space == inner.action_space
    ready = getattr(inner, "vocabulary", None)
    if isinstance(ready, Vocabulary) and same_observations and same_actions:
        return ready
    base = VERSION.sub("", env.spec.id) if env.spec is not None else type(inner).__name__
    known = KNOWN.get(base, Known())
    if not same_observations:
        known = Known(actions=known.actions)
    if not same_actions or not isinstance(env.action_space, spaces.Discrete):
        known = Known(known.features, factors=known.factors)
    return automatic_vocabulary(
        env.observation_space,
        env.action_space,
        known.features or None,
        re.sub(r"\W+", "_", base).lower(),
        actions=known.actions or None,
        factors=known.factors if _factors_fit(known, inner) else (),
    )


def register_envs() -> tuple[str, ...]:
    """Register the symbolic environments with gymnasium as `nser/DoorKey-NxN-v0`, and return their ids.

    For hosts that make environments by id, such as `stable_baselines3.common.env_util.make_vec_env`; calling
    it again does nothing.
    """
    ids = []
    for size in DOORKEY_SIZES:
        env_id = f"nser/DoorKey-{size}x{size}-v0"
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, "nser.envs.doorkey:DoorKey", kwargs={"size": size})
        ids.append(env_id)
    return tuple(ids)


def _make_doorkey(env_id: str, width: int, height: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from nser.envs.doorkey import DoorKey
    from nser.envs.doorkey_features import SMALLEST_SIZE

    if width != height or width < SMALLEST_SIZE:
        reason = f"DoorKey is a square of at least {SMALLEST_SIZE} cells a side"
        raise UnknownEnvironmentError(env_id, reason, _nearest(env_id))
    return DoorKey(width, **options)


def _first_sentence(error: Exception) -> str:
    return str(error).split(". ")[0].rstrip(".")


def _nearest(env_id: str) -> tuple[str, ...]:
    known = {*gymnasium.registry, *(f"MiniGrid-DoorKey-{size}x{size}-v0" for size in DOORKEY_SIZES)}
    folded = {name.lower(): name for name in sorted(known)}
    close = difflib.get_close_matches(env_id.lower(), folded, n=3, cutoff=0.6)
    return tuple(folded[name] for name in close if folded[name] != env_id)


def _factors_fit(known: Known, inner: gymnasium.Env[Any, Any]) -> bool:
    """Whether the state is packed as the table says; FrozenLake also takes maps of other shapes."""
    space, columns = inner.observation_space, getattr(inner, "ncol", None)
    return (
        isinstance(space, spaces.Discrete)
        and space.n == known.states
        and (columns is None or columns == known.factors[-1].count)
    )
