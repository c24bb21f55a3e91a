"""What a kind of plant is, and the parameters that several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lift_ros.configuration import MOST, Key
from lift_ros.positioning.distortions import DISTORTIONS, make_distortion
from lift_ros.positioning.dynamics import Dynamics
from lift_ros.positioning.problem import LARGEST_LENGTH, Limits, Problem

Parameters = Mapping[str, Any]

MOST_ENTRIES = 64  # of an observation and of an action: what messages hold
RADIUS = "Radius λ of the ball of actions: the longest action."
THRESHOLD = "The goal counts as reached at this distance, the paper's θ."
STEP_LIMIT = "Steps after which an episode ends without arriving."

DISTORTION_KEYS = {
    "distortion": Key(str, choices=tuple(DISTORTIONS), meaning="How movements differ from actions."),
    "sigma": Key(
        float,
        None,
        low=0,
        high=LARGEST_LENGTH,
        optional=True,
        meaning="Strength of a random distortion; null takes the paper's.",
    ),
    "scale_low": Key(float, 0.3, above=0, high=LARGEST_LENGTH, meaning="Smallest factor of the distortion scale."),
    "scale_high": Key(float, 1.0, above=0, high=LARGEST_LENGTH, meaning="Largest factor of the distortion scale."),
    "exponent": Key(float, 0.5, above=0, high=100, meaning="Power of an action's length in the distortion sqrt."),
}
BLENDED_KEYS = {**DISTORTION_KEYS, "distortion": replace(DISTORTION_KEYS["distortion"], default="blend")}
STEP_LIMIT_KEY = Key(int, 1000, low=1, high=MOST, meaning=STEP_LIMIT)


def length_keys(action_radius: float, threshold: float) -> dict[str, Key]:
    """Return the keys of radius, threshold and step limit with these defaults."""
    return {
        "action_radius": Key(float, action_radius, above=0, high=LARGEST_LENGTH, meaning=RADIUS),
        "threshold": Key(float, threshold, above=0, high=LARGEST_LENGTH, meaning=THRESHOLD),
        "step_limit": STEP_LIMIT_KEY,
    }


@dataclass(frozen=True)
class PlantKind:
    """One kind of plant."""

    keys: dict[str, Key]
    # Known without building the plant; UserError where single parameters are right but do not go together.
    limits: Callable[[Parameters], Limits]
    build: Callable[[Parameters, int | None], Problem]


def make_dynamics(parameters: Parameters) -> Dynamics:
    """Return the dynamics of a plant of kind `positioning`."""
    own = {
        "scale": {"low": parameters["scale_low"], "high": parameters["scale_high"]},
        "sqrt": {"exponent": parameters["exponent"]},
    }
    return Dynamics(
        distortion=make_distortion(
            parameters["distortion"],
            parameters["dim"],
            sigma=parameters["sigma"],
            **own.get(parameters["distortion"], {}),
        ),
        action_radius=parameters["action_radius"],
        threshold=parameters["threshold"],
        step_limit=parameters["step_limit"],
        observation=parameters["observation"],
        goal=None if parameters["goal"] is None else tuple(parameters["goal"]),
    )
