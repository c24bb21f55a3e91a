"""The optimal policy of full information: the action that leads closest to the goal under the episode's context."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning.ball import shorten
from lift_ros.positioning.distortions import Distortion, Sine, SquareRoot
from lift_ros.positioning.dynamics import Dynamics
from lift_ros.positioning.problem import Observed

Solver = Callable[[Distortion, FloatArray, FloatArray, FloatArray, float], FloatArray]

_HALVINGS = 60  # of an interval of length about 1: down to rounding errors


def _nearest_image(matrix: FloatArray, target: FloatArray, radius: float) -> FloatArray:
    """Return the a with ‖a‖ ≤ radius that minimises ‖matrix·a − target‖."""
    left, singular, right = np.linalg.svd(matrix)
    rotated = left.T @ target

    def solution(multiplier: float) -> FloatArray:
        denominators = singular**2 + multiplier
        return np.divide(singular * rotated, denominators, out=np.zeros_like(rotated), where=denominators > 1e-24)

    low, high = 0.0, 1.0
    if np.linalg.norm(solution(low)) > radius:  # else the unconstrained minimum lies inside the ball
        while np.linalg.norm(solution(high)) > radius:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if np.linalg.norm(solution(middle)) > radius else (low, middle)
        low = high
    return np.asarray(right.T @ solution(low))


def _solve_linear(
    distortion: Distortion, position: FloatArray, target: FloatArray, context: FloatArray, radius: float
) -> FloatArray:
    # The matrix g(s, W) of a distortion s + g(s, W)·a is read off its movements along the axes.
    origin = position[None, :]
    return _nearest_image((distortion(origin, np.eye(distortion.dim), context) - origin).T, target, radius)


def _solve_square_root(
    distortion: Distortion, position: FloatArray, target: FloatArray, context: FloatArray, radius: float
) -> FloatArray:
    # With b = ‖a‖^κ·a the movement is linear in b, and ‖b‖ = ‖a‖^(1+κ). On unit vectors a and b agree.
    assert isinstance(distortion, SquareRoot)
    kappa = distortion.exponent
    image = _solve_linear(distortion, position, target, context, radius ** (1 + kappa))
    length = float(np.linalg.norm(image))
    return image / length ** (kappa / (1 + kappa)) if length > 0 else image


def _solve_sine(
    distortion: Distortion, position: FloatArray, target: FloatArray, context: FloatArray, radius: float
) -> FloatArray:
    # For a given length r the best action points along v(r) = target − r·wave and misses by |‖v(r)‖ − r|. The miss
    # without the bars is convex in r: its minimum, or the zero before it, is the best length.
    wave = float(context) * np.sin(position) * np.cos(position)

    def miss(length: float) -> float:
        return float(np.linalg.norm(target - length * wave)) - length

    low, high = 0.0, radius
    for _ in range(2 * _HALVINGS):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if miss(first) <= miss(second) else (first, high)
    best = radius if miss(radius) <= miss(high) else high
    if miss(best) < 0:
        low, high = 0.0, best
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if miss(middle) < 0 else (middle, high)
        best = high
    direction = target - best * wave
    size = float(np.linalg.norm(direction))
    return direction * (best / size) if size > 0 else direction


_SOLVERS: dict[type[Distortion], Solver] = {SquareRoot: _solve_square_root, Sine: _solve_sine}


class OptimalPolicy:
    """Proposes argmin over ‖a‖ ≤ λ of ‖f(s, a, W) − s_W‖; needs `set_context` at the beginning of each episode."""

    def __init__(self, dynamics: Dynamics) -> None:
        self._dynamics = dynamics
        distortion = dynamics.distortion
        self._solve = _solve_linear if distortion.linear else _SOLVERS[type(distortion)]
        self._goal: FloatArray | None = None
        self._context = np.empty(0)

    def set_context(self, observed: Observed) -> None:
        """Learn goal and context of the episode that begins with `observed`."""
        shape = self._dynamics.distortion.context_shape
        if observed.goal.size != self._dynamics.dim or observed.context.size != math.prod(shape):
            raise UserError("the optimal policy needs a plant that tells goal and context: use it in simulation only")
        self._goal = observed.goal
        self._context = observed.context.reshape(shape)

    def reset(self) -> None:
        """Nothing to forget: goal and context stay for the whole episode."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the action that leads closest to the goal."""
        if self._goal is None:
            raise UserError("the optimal policy needs full information: call set_context(observed) after each reset")
        position = observation if self._dynamics.observation == "position" else observation + self._goal
        radius = self._dynamics.action_radius
        action = self._solve(self._dynamics.distortion, position, self._goal - position, self._context, radius)
        return shorten(action, radius)
