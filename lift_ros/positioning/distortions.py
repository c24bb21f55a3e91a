"""The movement distortions f(s, a, W) of the paper, and their constants of linear placement-errors (LPE).

Positions and actions are handled as columns: one entry per coordinate, each a float or an array over contexts. Sums
are written out in a fixed order, so one context alone and thousands at once give the same bits; a matrix product of
a library does not promise that.
"""

# ruff: noqa: D102 (overriding methods do what their base class says)

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError

Column = Any  # a float, or an array over contexts: the same code serves both
Columns = Sequence[Column] | FloatArray  # along the first axis

REGION_MEANS = (-0.3, 0.6, -0.3, 0.6)  # μ of regrot, one per quadrant


def square_root(value: Column) -> Column:
    """Return the square root; correctly rounded, hence the same for floats and arrays."""
    return math.sqrt(value) if isinstance(value, float) else np.sqrt(value)


def squared_norm(columns: Columns) -> Column:
    """Return the squared Euclidean norm, summed from the first coordinate to the last."""
    total = columns[0] * columns[0]
    for column in columns[1:]:
        total += column * column  # in place for arrays, whose first product is an array of its own
    return total


def norm(columns: Columns) -> Column:
    """Return the Euclidean norm."""
    return square_root(squared_norm(columns))


def _bounded(value: Column, low: float, high: float) -> Column:
    if isinstance(value, float):
        return min(max(value, low), high)
    return np.minimum(np.maximum(value, low), high)


def _sine_times_cosine(columns: Columns) -> Columns:
    values = np.asarray(columns)  # floats as well: the functions of `math` may round the last bit otherwise
    waves: FloatArray = np.sin(values) * np.cos(values)
    return waves.tolist() if waves.ndim == 1 else waves


def _power(value: Column, exponent: float) -> Column:
    powers = np.power(np.atleast_1d(value), exponent)  # floats as well, for the same reason
    return float(powers[0]) if isinstance(value, float) else powers


def _columns(values: FloatArray) -> Columns:
    """Split the last axis into columns, as floats where nothing else is left."""
    if values.ndim == 1:
        return values.tolist()  # type: ignore[no-any-return]
    return [np.ascontiguousarray(values[..., index]) for index in range(values.shape[-1])]


def _apply_matrix(matrix: Columns, action: Columns) -> list[Column]:
    """Return the product of a matrix, flattened row by row into columns, and an action."""
    dim = len(action)
    result = []
    for row in range(dim):
        total = matrix[row * dim] * action[0]
        for column in range(1, dim):
            total += matrix[row * dim + column] * action[column]  # in place for arrays
        result.append(total)
    return result


def _rotate(cosine: Column, sine: Column, action: Columns) -> list[Column]:
    """Rotate adjacent pairs of coordinates by one angle; the last of an odd number stays."""
    result: list[Column] = []
    for index in range(0, len(action) - 1, 2):
        first, second = action[index], action[index + 1]
        result.append(cosine * first - sine * second)
        result.append(sine * first + cosine * second)
    if len(action) % 2:
        result.append(action[-1])
    return result


class Distortion(ABC):
    """A movement f(s, a, W) with f(s, 0, W) = s; W is drawn once per episode."""

    name: ClassVar[str]
    default_sigma: ClassVar[float] = 0.0
    linear: ClassVar[bool] = True  # in the action: f(s, a, W) = s + g(s, W)·a
    placement_error: ClassVar[float] = 0.0  # L_f, unless it depends on parameters

    def __init__(self, dim: int, sigma: float | None = None) -> None:
        if dim < 1:
            raise UserError(f"a distortion needs at least 1 dimension, not dim={dim}")
        self.dim = dim
        self.sigma = self.default_sigma if sigma is None else float(sigma) + 0.0  # never -0.0, which numpy refuses
        if not (math.isfinite(self.sigma) and self.sigma >= 0):
            raise UserError(f"sigma of distortion {self.name!r} must be a finite number >= 0, not {sigma!r}")
        self.context_shape: tuple[int, ...] = self.sample(np.random.default_rng(0)).shape

    @abstractmethod
    def sample(self, rng: np.random.Generator, goal: FloatArray | None = None) -> FloatArray:
        """Draw a context W for an episode with this goal s_W (the origin unless given)."""

    @abstractmethod
    def coefficients(self, context: FloatArray) -> Columns:
        """Return what `move` needs of W as columns, computed once per episode."""

    @abstractmethod
    def move(self, position: Columns, action: Columns, coefficients: Columns) -> list[Column]:
        """Return the columns of f(s, a, W)."""

    def lpe(self) -> float:
        """Return L_f, the constant of linear placement-errors; infinite where there is none.

        It is that of f alone. A plant stops movements at the border of [−1, 1]^d, and there L_f = 0 does not hold
        either: the border cut the steps short, and not the shortcut that replaces them. On po-blend and po-rot 0.3 to
        1 % of all candidates, and 0.6 to 2.2 % of the best, land more than θ off, and none whose steps kept clear of
        the border.
        """
        return self.placement_error

    def __call__(self, s: npt.ArrayLike, a: npt.ArrayLike, W: npt.ArrayLike) -> FloatArray:  # noqa: N803
        """Return f(s, a, W), broadcast over the leading axes of all three."""
        position, action, context = (np.asarray(values, dtype=np.float64) for values in (s, a, W))
        depth = len(self.context_shape)
        if context.shape[context.ndim - depth :] != self.context_shape:
            raise UserError(
                f"a context of {self.name!r} in {self.dim} dimensions ends in shape {self.context_shape}, "
                f"not {context.shape}: take it from sample()"
            )
        shape = np.broadcast_shapes(position.shape, action.shape, (self.dim,))
        leading = np.broadcast_shapes(shape[:-1], context.shape[: context.ndim - depth])
        columns = self.move(
            _columns(np.broadcast_to(position, (*leading, self.dim))),
            _columns(np.broadcast_to(action, (*leading, self.dim))),
            self.coefficients(np.broadcast_to(context, (*leading, *self.context_shape))),
        )
        return np.stack([np.broadcast_to(column, leading) for column in columns], axis=-1)


class Undistorted(Distortion):
    """f(s, a, W) = s + a."""

    name = "none"

    def sample(self, rng: np.random.Generator, goal: FloatArray | None = None) -> FloatArray:
        return np.empty(0)

    def coefficients(self, context: FloatArray) -> Columns:
        return ()

    def move(self, position: Columns, action: Columns, coefficients: Columns) -> list[Column]:
        return [position[k] + action[k] for k in range(self.dim)]


class Blend(Distortion):
    """f(s, a, W) = s + (I + W) a with normal W."""

    name = "blend"
    default_sigma = 0.2

    def sample(self, rng: np.random.Generator, goal: FloatArray | None = None) -> FloatArray:
        return rng.normal(0.0, self.sigma, (self.dim, self.dim))

    def coefficients(self, context: FloatArray) -> Columns:
        matrix = np.eye(self.dim) + context
        return _columns(matrix.reshape((*matrix.shape[:-2], self.dim * self.dim)))

    def move(self, position: Columns, action: Columns, coefficients: Columns) -> list[Column]:
        moved = _apply_matrix(coefficients, action)
        return [position[k] + moved[k] for k in range(self.dim)]


class SquareRoot(Blend):
    """f(s, a, W) = s + (I + W) √‖a‖ a with normal W: small steps shrink, so no LPE. Exponents other than ½ as well."""

    name = "sqrt"
    linear = False
    placement_error = math.inf

    def __init__(self, dim: int, sigma: float | None = None, exponent: float = 0.5) -> None:
        super().__init__(dim, sigma)
        if not 0 < exponent < math.inf:
            raise UserError(f"distortion 'sqrt' needs a finite exponent > 0, not {exponent!r}")
        self.exponent = float(exponent)

    def move(self, position: Columns, action: Columns, coefficients: Columns) -> list[Column]:
        length = norm(action)
        scale = square_root(length) if self.exponent == 0.5 else _power(length, self.exponent)
        moved = _apply_matrix(coefficients, action)
        return [position[k] + scale * moved[k] for k in range(self.dim)]


class Rotation(Distortion):
    """f(s, a, W) = s + Rot_W a: adjacent coordinates turn by one normal angle W."""

    name = "rot"
    default_sigma = 0.2

    def sample(self, rng: np.random.Generator, goal: FloatArray | None = None) -> FloatArray:
        return np.asarray(rng.normal(0.0, self.sigma))

    def coefficients(self, context: FloatArray) -> Columns:
        return _columns(np.stack([np.cos(context), np.sin(context)], axis=-1))

    def move(self, position: Columns, action: Columns, coefficients: Columns) -> list[Column]:
        moved = _rotate(coefficients[0], coefficients[1], action)
        return [position[k] + moved[k] for k in range(self.dim)]


class RegionalRotation(Distortion):
    """Like `Rotation`, with an angle of its own for each quadrant of the first two coordinates of s."""

    name = "regrot"
    default_sigma = 0.1
    placement_error = 2.0

    def sample(self, rng: np.random.Generator, goal: FloatArray | None = None) -> FloatArray:
        return rng.normal(REGION_MEANS, self.sigma)

    def coefficients(self, context: FloatArray) -> Columns:
        return _columns(np.concatenate([np.cos(context), np.sin(context)], axis=-1))

    def move(self, position: Columns, action: Columns, coefficients: Columns) -> list[Column]:
        if self.dim == 1:  # nothing to turn, and no second coordinate to ask for the quadrant
            return [position[0] + action[0]]
        right, upper = position[0] >= 0.0, position[1] >= 0.0
        if isinstance(right, bool):
            region = (0 if upper else 3) if right else (1 if upper else 2)
            cosine, sine = coefficients[region], coefficients[4 + region]
        else:
            cosine, sine = (
                np.where(right, np.where(upper, part[0], part[3]), np.where(upper, part[1], part[2]))
                for part in (coefficients[:4], coefficients[4:])
            )
        moved = _rotate(cosine, sine, action)
        return [position[k] + moved[k] for k in range(self.dim)]


class Scale(Distortion):
    """f(s, a, W) = s + clip(‖s − s_W‖) a: slower near the goal. Its context is the goal s_W, nothing is drawn."""

    name = "scale"

    def __init__(self, dim: int, sigma: float | None = None, low: float = 0.3, high: float = 1.0) -> None:
        super().__init__(dim, sigma)
        if not 0 < low < high < math.inf:
            raise UserError(f"distortion 'scale' needs 0 < low < high, not low={low!r}, high={high!r}")
        self.low, self.high = float(low), float(high)

    def sample(self, rng: np.random.Generator, goal: FloatArray | None = None) -> FloatArray:
        return np.zeros(self.dim) if goal is None else np.array(goal, dtype=np.float64)

    def coefficients(self, context: FloatArray) -> Columns:
        return _columns(context)

    def move(self, position: Columns, action: Columns, coefficients: Columns) -> list[Column]:
        distance = norm([position[k] - coefficients[k] for k in range(self.dim)])
        factor = _bounded(distance, self.low, self.high)
        return [position[k] + factor * action[k] for k in range(self.dim)]

    def lpe(self) -> float:
        return 2.0 * self.high


class Sine(Distortion):
    """f(s, a, W) = s + a + W sin(s)∘cos(s) ‖a‖ with W uniform in [0, σ]."""

    name = "sin"
    default_sigma = 0.5
    linear = False

    def sample(self, rng: np.random.Generator, goal: FloatArray | None = None) -> FloatArray:
        return np.asarray(rng.uniform(0.0, self.sigma))

    def coefficients(self, context: FloatArray) -> Columns:
        return _columns(context[..., None])

    def move(self, position: Columns, action: Columns, coefficients: Columns) -> list[Column]:
        offset = coefficients[0] * norm(action)
        waves = _sine_times_cosine(position)
        return [position[k] + action[k] + offset * waves[k] for k in range(self.dim)]

    def lpe(self) -> float:
        return math.sqrt(self.dim) * self.sigma


DISTORTIONS: dict[str, type[Distortion]] = {
    kind.name: kind for kind in (Undistorted, Blend, Rotation, Scale, RegionalRotation, Sine, SquareRoot)
}


def make_distortion(name: str, dim: int, **arguments: float | None) -> Distortion:
    """Return the distortion of this name, or say which names there are."""
    if name not in DISTORTIONS:
        raise UserError(f"unknown distortion {name!r}: choose one of {', '.join(DISTORTIONS)}")
    kind: Callable[..., Distortion] = DISTORTIONS[name]
    return kind(dim, **arguments)
