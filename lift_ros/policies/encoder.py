"""Pictures as a few numbers: convolutions, then where each of their maps is bright, how much and how widely.

Positions of bright spots (a spatial soft-argmax) carry over to scenes that were never recorded, where dense layers on
pixels would learn the recorded ones by heart. The mean brightness tells sizes and sharpness, and on a coarse grid also
where. Here it is computed with numpy alone, as the augmentor does; `training/encoder.py` learns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lift_ros.array_types import Float32Array
from lift_ros.configuration import Key, check_mapping
from lift_ros.errors import UserError

_MOST_CHANNELS = 1024
_MOST_LAYERS = 8
_PLAN_KEYS = {
    "height": Key(int, low=1, high=4096),
    "width": Key(int, low=1, high=4096),
    "channels": Key(int, low=1, high=3),
    "views": Key(int, low=1, high=8),
    "maps": Key(list, entries=int),
    "kernels": Key(list, entries=int),
    "strides": Key(list, entries=int),
    "grid": Key(int, low=0, high=64),
    "flat": Key(bool, False),
    "readout": Key(list, [], entries=int),
}
PER_MAP = 4  # features of a map beside its grid: column, row, spread and mass
SMALL = 1e-6  # added to squares before their root is taken
DARK = 0.01  # added to brightness before its logarithm is taken, by which sizes and distances go

ConvolutionLayer = tuple[Float32Array, Float32Array]  # weight as (kernel · kernel · inputs, outputs), bias


@dataclass(frozen=True)
class EncoderPlan:
    """The sizes of an encoder. Layers keep the size of their input but for strides; ReLU follows all but the last."""

    height: int  # of one view
    width: int
    channels: int
    views: int  # all go through the same layers
    maps: tuple[int, ...]  # that each layer gives
    kernels: tuple[int, ...]
    strides: tuple[int, ...]
    grid: int  # cells along a side over which brightness is averaged besides; 0 for none
    flat: bool = False  # as d3rlpy's encoder: no border around maps, ReLU behind all layers, and every pixel comes out
    readout: tuple[int, ...] = ()  # widths of dense layers on the features, the last of what networks are given

    def __post_init__(self) -> None:
        layers = len(self.maps)
        limits = {"maps": (1, _MOST_CHANNELS), "kernels": (1, 15), "strides": (1, 4)}
        for name, (low, high) in limits.items():
            numbers = getattr(self, name)
            if len(numbers) != layers or not 1 <= layers <= _MOST_LAYERS:
                raise UserError(
                    f"encoder.{name} has {len(numbers)} entries; allowed: one per layer, 1 to {_MOST_LAYERS}"
                )
            if not all(low <= number <= high for number in numbers):
                raise UserError(f"encoder.{name} is {list(numbers)}; allowed: whole numbers from {low} to {high}")
        if len(self.readout) > _MOST_LAYERS or not all(1 <= width <= _MOST_CHANNELS for width in self.readout):
            raise UserError(f"encoder.readout is {list(self.readout)}; allowed: widths from 1 to {_MOST_CHANNELS}")
        if any(kernel % 2 == 0 for kernel in self.kernels):
            raise UserError(f"encoder.kernels is {list(self.kernels)}; allowed: odd numbers")
        rows, columns = self.map_size
        if min(rows, columns) < 1:
            raise UserError(
                f"encoder.kernels {list(self.kernels)} do not fit into pictures of {self.height}×{self.width}"
            )
        if self.grid > min(rows, columns):
            raise UserError(
                f"encoder.grid is {self.grid}; allowed: at most the side of the last maps, {rows}×{columns}"
            )

    @classmethod
    def parse(cls, data: Mapping[str, Any], where: str = "encoder") -> EncoderPlan:
        """Return the plan that a model file describes."""
        found = check_mapping(dict(data), _PLAN_KEYS, where)
        content: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in found.items()
        }
        return cls(**content)

    def as_dict(self) -> dict[str, Any]:
        """Return what `parse` reads."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @property
    def map_size(self) -> tuple[int, int]:
        """Rows and columns of the last layer's maps."""
        rows, columns = self.height, self.width
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            lost = kernel - 1 if self.flat else 0
            rows, columns = -(-(rows - lost) // stride), -(-(columns - lost) // stride)
        return rows, columns

    @property
    def features(self) -> int:
        """How many numbers the maps are summed up in."""
        rows, columns = self.map_size
        return self.views * self.maps[-1] * (rows * columns if self.flat else PER_MAP + self.grid**2)

    @property
    def outputs(self) -> int:
        """How many numbers networks are given."""
        return self.readout[-1] if self.readout else self.features

    def readout_shapes(self) -> list[tuple[int, int]]:
        """Return the shape of each weight of the readout: outputs, inputs."""
        return [(after, before) for before, after in pairwise((self.features, *self.readout))]

    def weight_shapes(self) -> list[tuple[int, int, int, int]]:
        """Return the shape of each layer's weight: outputs, inputs, kernel, kernel."""
        both = pairwise((self.channels, *self.maps))
        return [(after, before, kernel, kernel) for (before, after), kernel in zip(both, self.kernels, strict=True)]


class PictureEncoder:
    """Computes the features of pictures with numpy."""

    def __init__(
        self,
        plan: EncoderPlan,
        layers: list[tuple[Float32Array, Float32Array]],
        readout: list[tuple[Float32Array, Float32Array]],
    ) -> None:
        """Take weights (outputs, inputs, kernel, kernel), those of the readout (outputs, inputs), and biases."""
        self.plan = plan
        self._readout = [(np.ascontiguousarray(weight.T), bias) for weight, bias in readout]
        self._layers: list[ConvolutionLayer] = [
            (np.ascontiguousarray(weight.transpose(2, 3, 1, 0)).reshape(-1, weight.shape[0]), bias)
            for weight, bias in layers
        ]
        self._places = places(*plan.map_size)
        self._cells = grid_cells(*plan.map_size, plan.grid) if plan.grid else None

    def features(self, pictures: Float32Array) -> Float32Array:
        """Return one row of features per picture (height, width · views, channels), scaled as in training."""
        plan = self.plan
        count = len(pictures)
        views = pictures.reshape(count, plan.height, plan.views, plan.width, plan.channels).transpose(0, 2, 1, 3, 4)
        maps = np.ascontiguousarray(views).reshape(count * plan.views, plan.height, plan.width, plan.channels)
        last = len(self._layers) - 1
        for number, (weight, bias) in enumerate(self._layers):
            kernel = plan.kernels[number]
            maps = _convolve(maps, weight, bias, kernel, plan.strides[number], 0 if plan.flat else kernel // 2)
            if plan.flat or number < last:
                np.maximum(maps, 0.0, out=maps)
        summary = maps.transpose(0, 3, 1, 2) if plan.flat else self._summary(maps)
        return summary.reshape(count, -1)

    def read(self, features: Float32Array) -> Float32Array:
        """Return what networks are given for features, one per row."""
        for number, (weight, bias) in enumerate(self._readout):
            features = (np.maximum(features, 0.0) if number else features) @ weight + bias
        return features

    def _summary(self, maps: Float32Array) -> Float32Array:
        """Return column, row, spread and mass of each map (rows, height, width, n), then the grid of masses."""
        flat = maps.reshape(len(maps), -1, maps.shape[3])
        weights = np.exp(flat - flat.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        place = self._places @ weights
        square = np.square(self._places).sum(axis=0) @ weights
        spread = np.sqrt(np.maximum(square - np.square(place).sum(axis=1), 0.0) + SMALL)
        bright = np.maximum(flat, 0.0)
        parts = [place.reshape(len(maps), -1), spread, np.log(bright.mean(axis=1) + DARK)]
        if self._cells is not None:
            parts.append(np.log(self._cells @ bright + DARK).reshape(len(maps), -1))
        return np.concatenate(parts, axis=1, dtype=np.float32)


def _convolve(
    maps: Float32Array, weight: Float32Array, bias: Float32Array, kernel: int, stride: int, border: int
) -> Float32Array:
    """Return a convolution with a border of zeros around the maps (count, rows, columns, channels)."""
    padded = np.zeros((len(maps), maps.shape[1] + 2 * border, maps.shape[2] + 2 * border, maps.shape[3]), np.float32)
    padded[:, border : border + maps.shape[1], border : border + maps.shape[2]] = maps
    rows, columns = (-(-(size + 2 * border - kernel + 1) // stride) for size in maps.shape[1:3])
    # A row of a window lies in one piece, so that windows are copied piece by piece.
    shape = (len(maps), rows, columns, kernel, kernel * maps.shape[3])
    picture, row, column, value = padded.strides
    strides = (picture, stride * row, stride * column, row, value)
    patches = np.lib.stride_tricks.as_strided(padded, shape, strides).reshape(len(maps) * rows * columns, -1)
    return (patches @ weight + bias).reshape(len(maps), rows, columns, -1)


def places(rows: int, columns: int) -> Float32Array:
    """Return column and row, each from −1 to 1, of the pixels of a map, row by row."""
    grid = np.meshgrid(_line(columns), _line(rows))
    return np.stack(grid).reshape(2, -1)


def _line(length: int) -> Float32Array:
    return np.linspace(-1.0, 1.0, length, dtype=np.float32) if length > 1 else np.zeros(1, dtype=np.float32)


def grid_cells(rows: int, columns: int, grid: int) -> Float32Array:
    """Return for each cell of a grid the weight of each pixel in its mean; cells overlap where sides do not divide."""
    vertical, horizontal = (_shares(length, grid) for length in (rows, columns))
    cells: Float32Array = np.einsum("ir,jc->ijrc", vertical, horizontal).reshape(grid * grid, rows * columns)
    return cells


def _shares(length: int, parts: int) -> Float32Array:
    shares = np.zeros((parts, length), dtype=np.float32)
    for part in range(parts):
        inside = slice(part * length // parts, -(-(part + 1) * length // parts))
        shares[part, inside] = 1.0 / (inside.stop - inside.start)
    return shares
