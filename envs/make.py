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
from nser.envs.errors import OWN_MODULE, UnknownEnvironmentError
from nser.envs.known import KNOWN, Known
from nser.envs.symbolic import IN_WORDS, find, register_envs, usual_ids
from nser.envs.toy_text import MAPS
from nser.grounding.vocabulary import Vocabulary

__all__ = ["make_env", "register_envs", "vocabulary_of"]

VERSION = re.compile(r"-v\d+$")


def make_env(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Make an environment by its id: symbolic where nser knows better, otherwise `gymnasium.make`.

    | Id                                                    | Options                                             |
    |-------------------------------------------------------|-----------------------------------------------------|
    | `MiniGrid-DoorKey-NxN-v0`, for every N from 5         | `partial=True` for MiniGrid's own view, `max_steps` |
    | `MiniGrid-Unlock-v0`, `MiniGrid-UnlockPickup-v0`      | the same                                            |
    | `MiniGrid-KeyCorridorSxRy-v0`, x from 3, y from 1     | the same                                            |
    | `MiniGrid-LavaGapSN-v0`, N from 5                     | the same                                            |
    | `MiniGrid-FourRooms-v0`                               | the same                                            |
    | `nser/Sokoban-v0`, `nser/Sokoban-NxN-BOXES-v0`        | `size`, `boxes`, `max_steps`                        |
    | `nser/FrozenLakeText-v0`, in words                    | `size`, `frozen`, `slippery`, `max_turns`           |
    | `nser/SokobanText-v0`, in words                       | `size`, `boxes`, `level`, `max_turns`               |
    | `nser/Arithmetic-v0`, in words                        | `numbers`                                           |

    Every other id and its arguments go to `gymnasium.make`; MiniGrid's ids need no import of minigrid. Images are
    passed through as they are.

    Raises `UnknownEnvironmentError` with the nearest known ids.
    """
    found = find(env_id)
    if found:
        family, arguments = found
        try:
            return family.make(**{**arguments, **kwargs})
        except ValueError as error:
            raise UnknownEnvironmentError(env_id, str(error), _nearest(env_id), advice="") from error
    if env_id in IN_WORDS:
        register_envs()
    if env_id.startswith(("MiniGrid-", "BabyAI-")):
        import_module("minigrid")  # importing it registers its environments
    try:
        return gymnasium.make(env_id, **kwargs)
    except gymnasium.error.DependencyNotInstalled as error:
        raise UnknownEnvironmentError(env_id, str(error), advice="") from error
    except ModuleNotFoundError as error:
        raise UnknownEnvironmentError(env_id, _first_sentence(error), advice=OWN_MODULE) from error
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv) as error:
        raise UnknownEnvironmentError(env_id, _first_sentence(error), _nearest(env_id)) from error
    except gymnasium.error.Error as error:
        if env_id.rpartition(":")[2] in gymnasium.registry:
            raise  # a known environment refused its arguments
        raise UnknownEnvironmentError(env_id, _first_sentence(error), _nearest(env_id)) from error


def vocabulary_of(env: gymnasium.Env[Any, Any]) -> Vocabulary:
    """The vocabulary that rules about this environment may use.

    Symbolic environments bring their own, those of FrozenLake, CliffWalking and Taxi are read off their maps,
    well-known others get friendly names and units, and the rest `x0`, `x1`, … of their spaces. A wrapper that
    changes the observations or actions takes their names away, since they would tell untruths of the new numbers.

    Raises `NoVocabularyError` for images, texts and other spaces that hold no row of numbers.
    """
    inner = env.unwrapped
    observed = env.observation_space
    if observed == _flattened(inner.observation_space):
        observed = inner.observation_space  # the same numbers: the vocabulary of the parts reads their row as well
    same_observations = observed == inner.observation_space
    same_actions = env.action_space == inner.action_space
    ready = getattr(inner, "vocabulary", None)
    if isinstance(ready, Vocabulary) and same_observations and same_actions:
        return ready
    base = VERSION.sub("", env.spec.id) if env.spec is not None else type(inner).__name__
    if base in MAPS and same_observations and same_actions:
        return MAPS[base](inner)
    known = KNOWN.get(base, Known())
    if not same_observations:
        known = Known(actions=known.actions)
    if not same_actions or not isinstance(env.action_space, spaces.Discrete):
        known = Known(known.features)
    return automatic_vocabulary(
        observed,
        env.action_space,
        known.features or None,
        re.sub(r"\W+", "_", base).lower(),
        actions=known.actions or None,
    )


def _flattened(space: spaces.Space[Any]) -> spaces.Space[Any] | None:
    """The space of the row that gymnasium makes of several parts; None for others, and where it makes none."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return None
    try:
        return spaces.flatten_space(space)
    except NotImplementedError:
        return None


def _first_sentence(error: Exception) -> str:
    return str(error).split(". ")[0].rstrip(".")


def _nearest(env_id: str) -> tuple[str, ...]:
    known = {*gymnasium.registry, *usual_ids()}
    folded = {name.lower(): name for name in sorted(known)}
    close = difflib.get_close_matches(env_id.lower(), folded, n=3, cutoff=0.6)
    return tuple(folded[name] for name in close if folded[name] != env_id)
