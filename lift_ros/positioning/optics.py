"""The kinds of plants that send pictures drawn from a position: `lens` and `light_tunnel`."""

from __future__ import annotations

from typing import Any

from lift_ros.configuration import Key
from lift_ros.errors import UserError
from lift_ros.positioning.dynamics import Dynamics
from lift_ros.positioning.lens import AXES, LARGEST_PICTURE, SMALLEST_PICTURE, FastLens
from lift_ros.positioning.light_tunnel import (
    DEFAULT_TRAVEL,
    MODELS,
    PAPERS_TRAVEL,
    SIZE,
    ChamberLight,
    LightDynamics,
    LightMatching,
    MalusLight,
    TunnelRenderer,
)
from lift_ros.positioning.pictured import PicturedPositioning, Renderer, pictured_limits
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.positioning.plant_kind import BLENDED_KEYS, Parameters, PlantKind, length_keys, make_dynamics
from lift_ros.positioning.problem import Limits, Problem
from lift_ros.positioning.relign_lens import SPECS, RelignLens

_MOST_NOISE = 0.5
_MOST_ERRORS = 3.0
_MOST_SAMPLES = 65536


def _picture_key(size: int) -> Key:
    return Key(int, size, low=SMALLEST_PICTURE, high=LARGEST_PICTURE, meaning="Side of the square picture; pixels.")


_LENS_KEYS = {
    "picture_size": _picture_key(64),
    "renderer": Key(
        str,
        "fast",
        choices=("fast", "relign"),
        meaning="Who draws: this package, in colours, or the ray tracer of the paper's authors, in grey and slowly.",
    ),
    "lens_errors": Key(
        float, 1.0, low=0, high=_MOST_ERRORS, meaning="How much lenses differ from episode to episode; of `fast`."
    ),
    "noise": Key(
        float, 0.01, low=0, high=_MOST_NOISE, meaning="Deviation of the sensor's noise, as a share of full scale."
    ),
    "spec": Key(str, "od", choices=SPECS, meaning="Objective that `relign` traces."),
    "samples": Key(int, 64, low=1, high=_MOST_SAMPLES, meaning="Rays per pixel of `relign`."),
    "cache": Key(str, None, optional=True, meaning="Folder that keeps the pictures of `relign`; null for memory only."),
    **BLENDED_KEYS,
    **length_keys(action_radius=0.5, threshold=0.1),
}
_TUNNEL_KEYS = {
    "picture_size": _picture_key(32),
    "renderer": Key(
        str, "malus", choices=("malus", "causalchamber"), meaning="Who draws: Malus' law, or the tunnel's makers."
    ),
    "model": Key(str, "F3", choices=MODELS, meaning="Model of `causalchamber`."),
    "travel": Key(
        float,
        DEFAULT_TRAVEL,
        above=0,
        high=PAPERS_TRAVEL,
        meaning="Angle that a polarizer turns from −1 to 1, in radians; 2π is the paper's, where light is ambiguous.",
    ),
    "arrival": Key(
        str,
        "light",
        choices=("light", "angles"),
        meaning="Arrived when the light matches, or, as the paper writes, when both angles do.",
    ),
    **BLENDED_KEYS,
    **length_keys(action_radius=0.3, threshold=0.05),
}


def _dynamics(parameters: Parameters, dim: int) -> Dynamics:
    return make_dynamics({**parameters, "dim": dim, "observation": "displacement", "goal": None})


def _refuse_other_size(kind: str, render_size: int | None) -> None:
    if render_size is not None:
        raise UserError(
            f"a plant of kind {kind!r} sends pictures already: leave render_size out, and choose plant.picture_size in "
            "its scenario"
        )


def _lens_limits(parameters: Parameters) -> Limits:
    size, encoding = parameters["picture_size"], "rgb8" if parameters["renderer"] == "fast" else "mono8"
    return pictured_limits(_dynamics(parameters, len(AXES)), PictureFormat(size, size, encoding))


def _build_lens(parameters: Parameters, render_size: int | None) -> Problem:
    _refuse_other_size("lens", render_size)
    names = ("lens_errors",) if parameters["renderer"] == "fast" else ("spec", "samples", "cache")
    given: dict[str, Any] = {name: parameters[name] for name in ("picture_size", "noise", *names)}
    renderer: Renderer = FastLens(**given) if parameters["renderer"] == "fast" else RelignLens(**given)
    return PicturedPositioning(_dynamics(parameters, len(AXES)), renderer)


def _tunnel_dynamics(parameters: Parameters) -> Dynamics:
    plain = _dynamics(parameters, SIZE)
    if parameters["arrival"] == "angles":
        return plain
    return LightDynamics(
        plain.distortion,
        plain.action_radius,
        plain.threshold,
        plain.step_limit,
        plain.observation,
        travel=parameters["travel"],
    )


def _tunnel_limits(parameters: Parameters) -> Limits:
    size = parameters["picture_size"]
    return pictured_limits(_tunnel_dynamics(parameters), PictureFormat(size, size, "32FC3"))


def _build_tunnel(parameters: Parameters, render_size: int | None) -> Problem:
    _refuse_other_size("light_tunnel", render_size)
    size = parameters["picture_size"]
    light = MalusLight(size) if parameters["renderer"] == "malus" else ChamberLight(size, parameters["model"])
    renderer = TunnelRenderer(light, size, parameters["travel"])
    dynamics = _tunnel_dynamics(parameters)
    if isinstance(dynamics, LightDynamics):
        return LightMatching(dynamics, renderer)
    return PicturedPositioning(dynamics, renderer)


LENS = PlantKind(_LENS_KEYS, _lens_limits, _build_lens)
LIGHT_TUNNEL = PlantKind(_TUNNEL_KEYS, _tunnel_limits, _build_tunnel)
