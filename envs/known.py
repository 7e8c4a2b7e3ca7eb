"""Friendly names for environments that everybody knows: a table, keyed by the id without its version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Feature(NamedTuple):
    """Name, unit and meaning of one number, category or bit of an observation."""

    name: str
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Factor:
    """One digit of a discrete state that packs several: `(state // divisor) % len(values)`.

    `values` are the names of the digit's values, or a count where the digit is a plain number.
    """

    name: str
    divisor: int
    values: tuple[str, ...] | int
    unit: str
    meaning: str

    @property
    def count(self) -> int:
        """How many values the digit has."""
        return self.values if isinstance(self.values, int) else len(self.values)


@dataclass(frozen=True, slots=True)
class Known:
    """What the table tells of one environment."""

    features: tuple[Feature, ...] = ()
    actions: tuple[str, ...] = ()


_FROZEN_LAKE = ("left", "down", "right", "up")
_CLIFF = ("up", "right", "down", "left")
_CAR = (Feature("position", "m", "where the car is"), Feature("velocity", "m/step", "how fast the car goes"))
# The legs stay numbers: were they truths, learners would sort states by the two of them alone.
_LANDER = (
    Feature("x", "10 m", "how far right of the pad the lander is"),
    Feature("y", "6.67 m", "how high above the pad the lander is"),
    Feature("x_velocity", "5 m/s", "how fast the lander drifts to the right"),
    Feature("y_velocity", "7.5 m/s", "how fast the lander rises"),
    Feature("angle", "rad", "how far the lander leans to the left, 0 is upright"),
    Feature("angular_velocity", "2.5 rad/s", "how fast the lander turns to the left"),
    Feature("left_leg", "", "1 when the left leg touches the ground, else 0"),
    Feature("right_leg", "", "1 when the right leg touches the ground, else 0"),
)

KNOWN: dict[str, Known] = {
    "CartPole": Known(
        (
            Feature("cart_position", "m", "how far right of the middle the cart is"),
            Feature("cart_velocity", "m/s", "how fast the cart goes to the right"),
            Feature("pole_angle", "rad", "how far the pole leans to the right, 0 is upright"),
            Feature("pole_velocity", "rad/s", "how fast the pole falls to the right"),
        ),
        ("left", "right"),
    ),
    "MountainCar": Known(_CAR, ("left", "coast", "right")),
    "MountainCarContinuous": Known(_CAR),
    "Pendulum": Known(
        (
            Feature("cos_angle", "", "cosine of the pendulum's angle, 1 is upright"),
            Feature("sin_angle", "", "sine of the pendulum's angle"),
            Feature("angular_velocity", "rad/s", "how fast the pendulum turns"),
        ),
    ),
    "Acrobot": Known(
        (
            Feature("cos_angle1", "", "cosine of the upper link's angle, 1 is hanging down"),
            Feature("sin_angle1", "", "sine of the upper link's angle"),
            Feature("cos_angle2", "", "cosine of the lower link's angle to the upper one"),
            Feature("sin_angle2", "", "sine of the lower link's angle to the upper one"),
            Feature("velocity1", "rad/s", "how fast the upper link turns"),
            Feature("velocity2", "rad/s", "how fast the lower link turns against the upper one"),
        ),
        ("push_negative", "idle", "push_positive"),
    ),
    "LunarLander": Known(_LANDER, ("idle", "left_engine", "main_engine", "right_engine")),
    "LunarLanderContinuous": Known(_LANDER),
    "FrozenLake": Known(actions=_FROZEN_LAKE),
    "FrozenLake8x8": Known(actions=_FROZEN_LAKE),
    "CliffWalking": Known(actions=_CLIFF),
    "CliffWalkingSlippery": Known(actions=_CLIFF),
    "Taxi": Known(actions=("south", "north", "east", "west", "pickup", "dropoff")),
    "Blackjack": Known(
        (
            Feature("player_sum", "", "the player's cards add up to this"),
            Feature("dealer_card", "", "the dealer shows this card"),
            Feature("usable_ace", "", "whether the player holds an ace that may count 11"),
        ),
        ("stick", "hit"),
    ),
}
