"""A real rig as a scenario describes it: sizes and limits are known here, but only its own node can move it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from lift_ros.errors import UserError
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.positioning.problem import Bounds, Limits


def hardware_limits(parameters: Mapping[str, Any]) -> Limits:
    """Return what a scenario says of its rig."""
    return Limits(
        parameters["observation_size"],
        parameters["action_size"],
        parameters["action_radius"],
        parameters["step_limit"],
        _workspace(parameters["workspace_low"], parameters["workspace_high"]),
        _picture(parameters["picture_height"], parameters["picture_width"], parameters["picture_encoding"]),
    )


def build_hardware(parameters: Mapping[str, Any], render_size: int | None) -> NoReturn:
    """Refuse: a rig is reset and moved by its own node."""
    raise UserError(
        "this scenario describes hardware, which cannot be simulated: start your plant node, then "
        "lift run --plant hardware"
    )


def _picture(height: int, width: int, encoding: str) -> PictureFormat | None:
    if (height == 0) != (width == 0):
        raise UserError(f"picture_height is {height} and picture_width is {width}; give both, or neither")
    return PictureFormat(height, width, encoding) if height else None


def _workspace(low: list[float] | None, high: list[float] | None) -> Bounds | None:
    if low is None and high is None:
        return None
    if low is None or high is None or len(low) != len(high):
        raise UserError(f"workspace_low is {low} and workspace_high is {high}; give both, with one number per axis")
    lowest, highest = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    if not (np.isfinite(lowest).all() and np.isfinite(highest).all() and (lowest < highest).all()):
        raise UserError(f"workspace_low {low} must lie below workspace_high {high} on every axis, all finite")
    return lowest, highest
