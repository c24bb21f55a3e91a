"""The kinds of plants a scenario may name: their parameters, their limits and how to build them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lift_ros.configuration import MOST, Key
from lift_ros.errors import UserError
from lift_ros.positioning.distortions import DISTORTIONS, make_distortion
from lift_ros.positioning.dynamics import OBSERVATION_KINDS, Dynamics
from lift_ros.positioning.fetch import FetchReach, FetchTouchAndPlace
from lift_ros.positioning.hardware import build_hardware, hardware_limits
from lift_ros.positioning.pictures import ENCODINGS
from lift_ros.positioning.problem import LARGEST_LENGTH, Limits, Problem
from lift_ros.positioning.simulated import SimulatedPositioning

Parameters = Mapping[str, Any]

_MOST_ENTRIES = 64  # of an observation and of an action: what messages hold
_RADIUS = "Radius λ of the ball of actions: the longest action."
_THRESHOLD = "The goal counts as reached at this distance, the paper's θ."
_STEP_LIMIT = "Steps after which an episode ends without arriving."

_POSITIONING_KEYS = {
    "distortion": Key(str, choices=tuple(DISTORTIONS), meaning="How movements differ from actions."),
    "dim": Key(int, low=1, high=_MOST_ENTRIES, meaning="Number of axes."),
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
    "observation": Key(str, "position", choices=OBSERVATION_KINDS, meaning="What policies see."),
    "goal": Key(list, None, optional=True, meaning="Position of the goal; null puts it at the origin."),
    "action_radius": Key(float, above=0, high=LARGEST_LENGTH, meaning=_RADIUS),
    "threshold": Key(float, above=0, high=LARGEST_LENGTH, meaning=_THRESHOLD),
    "step_limit": Key(int, 1000, low=1, high=MOST, meaning=_STEP_LIMIT),
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


def _build_positioning(parameters: Parameters, render_size: int | None) -> Problem:
    if render_size is not None:
        raise UserError("a plant of kind 'positioning' has no camera: leave render_size out or choose a fetch plant")
    return SimulatedPositioning(make_dynamics(parameters))


_FETCH_KEYS = {
    "action_radius": Key(float, 0.05, above=0, high=0.2, meaning=_RADIUS),
    "threshold": Key(float, 0.02, low=0.005, high=0.1, meaning=_THRESHOLD),
    "step_limit": Key(int, 300, low=1, high=MOST, meaning=_STEP_LIMIT),
}

_HARDWARE_KEYS = {
    "observation_size": Key(int, low=1, high=_MOST_ENTRIES, meaning="Entries of an observation."),
    "action_size": Key(int, low=1, high=_MOST_ENTRIES, meaning="Entries of an action: the number of axes."),
    "action_radius": Key(float, above=0, high=LARGEST_LENGTH, meaning=_RADIUS),
    "threshold": Key(float, above=0, high=LARGEST_LENGTH, meaning=_THRESHOLD),
    "step_limit": Key(int, 1000, low=1, high=MOST, meaning=_STEP_LIMIT),
    "workspace_low": Key(list, None, optional=True, meaning="Lowest allowed position of each axis."),
    "workspace_high": Key(list, None, optional=True, meaning="Highest allowed position of each axis."),
    "picture_height": Key(int, 0, low=0, high=4096, meaning="Rows of the picture in an observation; 0 for none."),
    "picture_width": Key(int, 0, low=0, high=4096, meaning="Columns of it; 0 for none."),
    "picture_encoding": Key(str, "rgb8", choices=tuple(ENCODINGS), meaning="Its encoding, by ROS' names."),
}


def _fetch_kind(task: type[FetchReach] | type[FetchTouchAndPlace]) -> PlantKind:
    return PlantKind(
        _FETCH_KEYS, lambda p: task.make_limits(**p), lambda p, render_size: task(**p, render_size=render_size)
    )


PLANTS = {
    "positioning": PlantKind(_POSITIONING_KEYS, lambda p: _build_positioning(p, None).limits, _build_positioning),
    "fetch_reach": _fetch_kind(FetchReach),
    "fetch_touch_and_place": _fetch_kind(FetchTouchAndPlace),
    "hardware": PlantKind(_HARDWARE_KEYS, hardware_limits, build_hardware),
}
