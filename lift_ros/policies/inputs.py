"""What the networks of a model are given for an observation: its entries, scaled, and which of them are off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import BoolArray, Float32Array, IntArray
from lift_ros.policies.model_file import Tensors

MEAN, DEVIATION, SWITCHES = "observation.mean", "observation.deviation", "observation.switches"
OFF = 6.0  # the input of a switch that is off, else 0; far from what other inputs are, so that networks heed it soon
_CONSTANT = 1e-6  # deviation, relative to the mean, up to which an entry tells no scale: it is left as it is
_FEWEST_ZEROS = 0.01  # share of steps in which an entry has to be exactly zero to be taken for a switch
_OUTSTANDING = 10.0  # and how much more often than any other value: sensors of few digits repeat them all


@dataclass(frozen=True)
class Inputs:
    """How observations become inputs, the same in training and in use.

    A plant zeroes entries to say that a goal was reached or that a sensor sees nothing. What is to be done then has
    nothing to do with what is to be done close to zero, so that networks, which are smooth, are told by an input more.
    """

    mean: Float32Array
    deviation: Float32Array
    switches: IntArray  # entries that have an input of their own: OFF where they are exactly zero, else 0

    @property
    def size(self) -> int:
        """Number of inputs."""
        return len(self.mean) + len(self.switches)

    @property
    def is_scaled(self) -> bool:
        """Whether entries are changed at all."""
        return bool(self.mean.any() or (self.deviation != 1).any())

    def of(self, observations: Float32Array) -> Float32Array:
        """Return the inputs for one observation, or for one per row."""
        inputs = (observations - self.mean) / self.deviation
        if not self.switches.size:
            return inputs
        off = np.float32(OFF) * (observations[..., self.switches] == 0)
        return np.concatenate([inputs, off], axis=-1)

    def tensors(self) -> Tensors:
        """Return them under the names of the model file."""
        switches = {SWITCHES: self.switches.astype(np.float32)} if self.switches.size else {}
        return {MEAN: self.mean, DEVIATION: self.deviation, **switches}


def fit_inputs(observations: Float32Array, scaled: bool) -> Inputs:
    """Return the inputs for observations like these, one per row, with mean 0 and deviation 1 if `scaled`."""
    size = observations.shape[1]
    switches = find_switches(observations)
    if not scaled:
        return Inputs(np.zeros(size, dtype=np.float32), np.ones(size, dtype=np.float32), switches)
    values = observations.astype(np.float64)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    deviation[find_constants(values)] = 1.0
    return Inputs(mean.astype(np.float32), deviation.astype(np.float32), switches)


def find_constants(observations: npt.NDArray[np.floating]) -> BoolArray:
    """Return which entries do not change."""
    constant: BoolArray = observations.std(axis=0) <= _CONSTANT * (1.0 + np.abs(observations.mean(axis=0)))
    return constant


def find_switches(observations: npt.NDArray[np.floating]) -> IntArray:
    """Return the entries that are exactly zero far more often than anything else; of those that are so together one."""
    off = observations == 0
    chosen: list[int] = []
    for entry in np.flatnonzero((off.mean(axis=0) >= _FEWEST_ZEROS) & ~off.all(axis=0)).tolist():
        others = np.unique(observations[~off[:, entry], entry], return_counts=True)[1]
        known = any((off[:, entry] == off[:, other]).all() for other in chosen)
        if not known and off[:, entry].sum() >= _OUTSTANDING * others.max():
            chosen.append(entry)
    return np.array(chosen, dtype=np.int64)
