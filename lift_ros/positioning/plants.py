"""The kinds of plants a scenario may name: their parameters, their limits and how to build them."""

from __future__ import annotations

from lift_ros.configuration import MOST, Key
from lift_ros.errors import UserError
from lift_ros.positioning.dynamics import OBSERVATION_KINDS
from lift_ros.positioning.fetch import VIEWS, FetchReach, FetchTouchAndPlace
from lift_ros.positioning.hardware import build_hardware, hardware_limits
from lift_ros.positioning.offscreen import LARGEST_SIDE
from lift_ros.positioning.optics import LENS, LIGHT_TUNNEL
from lift_ros.positioning.pictures import ENCODINGS
from lift_ros.positioning.plant_kind import (
    DISTORTION_KEYS,
    MOST_ENTRIES,
    RADIUS,
    STEP_LIMIT,
    STEP_LIMIT_KEY,
    THRESHOLD,
    Parameters,
    PlantKind,
    make_dynamics,
)
from lift_ros.positioning.problem import LARGEST_LENGTH, Problem
from lift_ros.positioning.sensors import SENSORS
from lift_ros.positioning.simulated import SimulatedPositioning

__all__ = ["PLANTS", "PlantKind", "make_dynamics"]

_REQUIRED_LENGTHS = {
    "action_radius": Key(float, above=0, high=LARGEST_LENGTH, meaning=RADIUS),
    "threshold": Key(float, above=0, high=LARGEST_LENGTH, meaning=THRESHOLD),
    "step_limit": STEP_LIMIT_KEY,
}
_DISTORTION, *_STRENGTHS = DISTORTION_KEYS
_POSITIONING_KEYS = {
    _DISTORTION: DISTORTION_KEYS[_DISTORTION],
    "dim": Key(int, low=1, high=MOST_ENTRIES, meaning="Number of axes."),
    **{name: DISTORTION_KEYS[name] for name in _STRENGTHS},
    "observation": Key(str, "position", choices=OBSERVATION_KINDS, meaning="What policies see."),
    "goal": Key(list, None, optional=True, meaning="Position of the goal; null puts it at the origin."),
    **_REQUIRED_LENGTHS,
}


def _build_positioning(parameters: Parameters, render_size: int | None) -> Problem:
    if render_size is not None:
        raise UserError("a plant of kind 'positioning' has no camera: leave render_size out or choose a fetch plant")
    return SimulatedPositioning(make_dynamics(parameters))


_FETCH_KEYS = {
    "action_radius": Key(float, 0.05, above=0, high=0.2, meaning=RADIUS),
    "threshold": Key(float, 0.02, low=0.005, high=0.1, meaning=THRESHOLD),
    "step_limit": Key(int, 300, low=1, high=MOST, meaning=STEP_LIMIT),
    "picture_size": Key(
        int, 0, low=0, high=LARGEST_SIDE, meaning="Side of a camera's square picture in observations; 0 for none."
    ),
    "cameras": Key(
        int, 1, low=1, high=len(VIEWS), meaning="Cameras, whose pictures stand side by side; see picture.views."
    ),
}

_HARDWARE_KEYS = {
    "observation_size": Key(int, low=1, high=MOST_ENTRIES, meaning="Entries of an observation."),
    "action_size": Key(int, low=1, high=MOST_ENTRIES, meaning="Entries of an action: the number of axes."),
    **_REQUIRED_LENGTHS,
    "workspace_low": Key(list, None, optional=True, meaning="Lowest allowed position of each axis."),
    "workspace_high": Key(list, None, optional=True, meaning="Highest allowed position of each axis."),
    "picture_height": Key(int, 0, low=0, high=4096, meaning="Rows of the picture in an observation; 0 for none."),
    "picture_width": Key(int, 0, low=0, high=4096, meaning="Columns of it; 0 for none."),
    "picture_encoding": Key(str, "rgb8", choices=tuple(ENCODINGS), meaning="Its encoding, by ROS' names."),
}


def _fetch_kind(task: type[FetchReach] | type[FetchTouchAndPlace]) -> PlantKind:
    def build(parameters: Parameters, render_size: int | None) -> Problem:
        return task(
            **{**parameters, "picture_size": parameters["picture_size"] if render_size is None else render_size}
        )

    return PlantKind(_FETCH_KEYS, lambda parameters: task.make_limits(**parameters), build)


FETCH_KINDS = ("fetch_reach", "fetch_touch_and_place")
PLANTS = {
    "positioning": PlantKind(_POSITIONING_KEYS, lambda p: _build_positioning(p, None).limits, _build_positioning),
    "fetch_reach": _fetch_kind(FetchReach),
    "fetch_touch_and_place": _fetch_kind(FetchTouchAndPlace),
    "lens": LENS,
    "light_tunnel": LIGHT_TUNNEL,
    "sensors": SENSORS,
    "hardware": PlantKind(_HARDWARE_KEYS, hardware_limits, build_hardware),
}
