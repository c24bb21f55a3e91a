"""Actions live in a ball of radius λ."""

from __future__ import annotations

import math

import numpy as np

from lift_ros.array_types import FloatArray

_INSIDE = 1.0 - 1e-15  # so that rounding cannot leave a shortened action outside


def shorten(action: FloatArray, radius: float) -> FloatArray:
    """Return the paper's clip_λ(a): the action itself, or its multiple on the ball's surface."""
    length = math.sqrt(float(np.dot(action, action)))
    return action if length <= radius else action * (radius / length * _INSIDE)


def uniform_in_ball(rng: np.random.Generator, count: int, dim: int, radius: float) -> FloatArray:
    """Draw `count` actions uniformly from the ball."""
    directions = rng.normal(size=(count, dim))
    directions /= np.sqrt(np.sum(directions**2, axis=1, keepdims=True))
    return directions * (radius * _INSIDE * rng.uniform(size=(count, 1)) ** (1.0 / dim))
