from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation, NormalizeObservation

from nser.envs.check import Finding, check_steps, check_vocabulary
from nser.envs.doorkey import DOORKEY, DOORKEY_VIEW, DoorKey
from nser.envs.errors import NoVocabularyError, UnknownEnvironmentError
from nser.envs.make import make_env, register_envs, vocabulary_of
from nser.experience.record import record
from nser.grounding.steps import Steps
from nser.grounding.vocabulary import Vocabulary, number, predicate
from tests.parts import PARTS


@pytest.mark.parametrize("size", [5, 6, 8, 12, 16])
def test_doorkey_of_every_size_is_symbolic(size: int) -> None:
    env = make_env(f"MiniGrid-DoorKey-{size}x{size}-v0")
    assert isinstance(env, DoorKey)
    assert env.size == size
    assert vocabulary_of(env) is DOORKEY


def test_options_of_doorkey_pass_through() -> None:
    env = make_env("MiniGrid-DoorKey-6x6-v0", partial=True, max_steps=7)
    assert isinstance(env, DoorKey)
    assert env.max_steps == 7
    assert vocabulary_of(env) is DOORKEY_VIEW


def test_registered_ids_give_the_same_environment() -> None:
    ids = register_envs()
    assert register_envs() == ids
    env = gymnasium.make("nser/DoorKey-8x8-v0")
    assert isinstance(env.unwrapped, DoorKey)
    assert vocabulary_of(env) is DOORKEY
    assert isinstance(make_env("nser/DoorKey-8x8-v0"), DoorKey)


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("CartPol-v1", r"can't make environment 'CartPol-v1': .*Did you mean CartPole-v1"),
        ("CartPole-v9", r"version `v9` .* Did you mean CartPole-v1"),
        ("minigrid-doorkey-6x6-v0", r"Did you mean MiniGrid-DoorKey-6x6-v0"),
        ("MiniGrid-DoorKey-6x7-v0", r"doesn't exist. Did you mean MiniGrid-DoorKey-6x6-v0"),
        ("MiniGrid-DoorKey-4x4-v0", r"found DoorKey of size 4, expected at least 5. Did you mean MiniGrid-DoorKey-"),
        ("MiniGrid-KeyCoridorS3R1-v0", r"Did you mean MiniGrid-KeyCorridorS3R1-v0"),
        ("MiniGrid-LavaGapS4-v0", r"found LavaGap of size 4, expected at least 5"),
        ("MiniGrid-KeyCorridorS2R1-v0", r"expected at least 1 row of size 3"),
        ("nowhere/Thing-v0", r"Namespace nowhere not found. An environment of your own must be registered"),
        ("no_such_module:Thing-v0", r"No module named 'no_such_module'\. What stands before .* PYTHONPATH"),
        ("not an id", r"Malformed environment ID: not an id"),
        ("", r"can't make environment ''"),
    ],
)
def test_unknown_id_names_the_way_out(env_id: str, message: str) -> None:
    with pytest.raises(UnknownEnvironmentError, match=message) as caught:
        make_env(env_id)
    assert caught.value.env_id == env_id
    assert env_id not in caught.value.nearest


def test_known_environments_have_friendly_names() -> None:
    vocabulary = vocabulary_of(make_env("CartPole-v1"))
    assert vocabulary.features == ("cart_position", "cart_velocity", "pole_angle", "pole_velocity")
    assert vocabulary.actions == ("left", "right")
    assert vocabulary.signature.predicates["pole_angle"].unit == "rad"
    assert vocabulary.name == "cartpole"


def test_lander_has_names_and_units() -> None:
    """In a process of its own: Box2D dies when it is first imported with warnings as errors."""
    script = (
        "import json\n"
        "from nser.envs.check import check_vocabulary\n"
        "from nser.envs.make import make_env, vocabulary_of\n"
        "env = make_env('LunarLander-v3')\n"
        "known = vocabulary_of(env).signature.predicates\n"
        "found = [str(finding) for finding in check_vocabulary(env, 300) if finding.kind == 'out of bounds']\n"
        "print(json.dumps([{name: p.unit for name, p in known.items()}, known['left_leg'].low, found]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    units, low, findings = json.loads(done.stdout.splitlines()[-1])
    assert (units["x"], units["y_velocity"], units["angle"], units["left_leg"]) == ("10 m", "7.5 m/s", "rad", "")
    assert str(low) == "0.0"
    assert findings == []


def test_wrapper_that_changes_the_numbers_takes_their_names_away() -> None:
    env = NormalizeObservation(make_env("CartPole-v1"))
    assert vocabulary_of(env).features == ("x0", "x1", "x2", "x3")
    assert vocabulary_of(env).actions == ("left", "right")
    assert "state_is" not in vocabulary_of(FlattenObservation(make_env("FrozenLake-v1"))).predicates


def test_images_pass_through_without_a_vocabulary() -> None:
    env = make_env("MiniGrid-Empty-5x5-v0")
    assert env.reset(seed=0)[0]["image"].shape == (7, 7, 3)
    with pytest.raises(NoVocabularyError, match=r"no automatic vocabulary for Box\(0, 255, \(7, 7, 3\), uint8\)"):
        vocabulary_of(env)


@predicate()
def bright(steps: Steps) -> Any:
    """The lamp is on."""
    return (steps.observations[:, 0] > 0.5).float()


@predicate()
def lit(steps: Steps) -> Any:
    """The lamp is on."""
    return (steps.observations[:, 0] > 0.5).float()


@predicate()
def dark_moon(steps: Steps) -> Any:
    """Never holds."""
    return steps.observations[:, 0] * 0


@predicate()
def sky(steps: Steps) -> Any:
    """Always holds."""
    return steps.observations[:, 0] * 0 + 1


@predicate()
def broken(steps: Steps) -> Any:
    """Gives no degrees."""
    return steps.observations[:, 0] + 2


@number(unit="lm", low=0, high=0.5)
def flux(steps: Steps) -> Any:
    """Light of the lamp."""
    return steps.observations[:, 0]


@number(unit="lm")
def gloom(steps: Steps) -> Any:
    """A constant."""
    return steps.observations[:, 0] * 0 + 3


@number(unit="lm")
def glow(steps: Steps) -> Any:
    """The same as the flux."""
    return steps.observations[:, 0]


@predicate()
def crash(steps: Steps) -> Any:
    """Raises."""
    return steps.observations[:, 7]


class Lamp(gymnasium.Env[Any, Any]):
    """Shows a random light; ends after ten steps."""

    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)
    vocabulary = Vocabulary(
        "lamp", (bright, lit, dark_moon, sky, broken, flux, gloom, glow, crash), actions=("wait", "look")
    )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = 10
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return self._look(), 0.0, self.left == 0, False, {}

    def _look(self) -> Any:
        return self.np_random.random(1, dtype=np.float32)


def test_environment_may_bring_its_own_vocabulary() -> None:
    assert vocabulary_of(Lamp()) is Lamp.vocabulary


def test_checker_finds_what_random_play_says_nothing_by() -> None:
    findings = {(finding.kind, finding.atoms) for finding in check_vocabulary(Lamp(), steps=200)}
    assert findings == {
        ("never true", ("dark_moon(t)",)),
        ("always true", ("sky(t)",)),
        ("broken", ("broken(t)",)),
        ("out of bounds", ("flux(t)",)),
        ("constant", ("gloom(t)",)),
        ("identical", ("bright(t)", "lit(t)")),
        ("identical", ("flux(t)", "glow(t)")),
        ("broken", ("crash(t)",)),
    }


def test_checker_reads_recorded_steps_too() -> None:
    steps = record(Lamp(), steps=30, seed=1).steps()
    assert [finding.kind for finding in check_steps(Lamp.vocabulary, steps)].count("broken") == 2
    assert [finding.kind for finding in check_steps(Lamp.vocabulary, steps[:0])] == ["broken"]  # the one that raises


def test_checker_has_nothing_to_say_of_doorkey_and_cartpole() -> None:
    assert check_vocabulary(make_env("CartPole-v1")) == []
    assert check_vocabulary(DoorKey(5), steps=4000) == []
    assert check_vocabulary(DoorKey(5, partial=True), steps=2000) == []


def test_finding_says_what_and_what_to_do() -> None:
    finding = Finding("never true", tuple(f"state_is(t, s{i})" for i in range(8)))
    assert str(finding).startswith("never true: state_is(t, s0), ")
    assert " and 2 more; no rule can use it" in str(finding)
    assert finding.as_dict()["advice"] == finding.advice


def test_flattened_parts_keep_their_names() -> None:
    bare = gymnasium.make(PARTS)
    flat = FlattenObservation(bare)
    assert vocabulary_of(flat) == vocabulary_of(bare)
    other = gymnasium.wrappers.TransformObservation(flat, lambda row: row * 2, spaces.Box(-9, 9, (7,)))
    assert "light_is" not in vocabulary_of(other).predicates
