"""The plant kind `sensors`: besides s − s_W it observes the readings of detectors that nobody has a model of.

Each detector looks along a mixture of the axes with a gain and an offset of its own. Some saturate early and tell of
small displacements, some late and tell of large ones; some are brightest at one place, as a photodiode behind a slit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.configuration import Key
from lift_ros.errors import UserError
from lift_ros.positioning.dynamics import Dynamics
from lift_ros.positioning.plant_kind import (
    BLENDED_KEYS,
    MOST_ENTRIES,
    Parameters,
    PlantKind,
    length_keys,
    make_dynamics,
)
from lift_ros.positioning.problem import Limits, Observed, Problem
from lift_ros.positioning.simulated import SimulatedPositioning
from lift_ros.seeds import generator

_SMALLEST_GAIN, _LARGEST_GAIN = 0.6, 6.0
_OFFSET = 0.3  # at gain 1; steep detectors stand closer to the optimum
_NARROW = 3  # every so manieth detector is brightest at one place
_MOST_ERROR = 0.5


class DetectorRig:
    """What detectors read at a displacement; `rig_seed` fixes how they are mounted."""

    def __init__(self, dim: int, detectors: int, rig_seed: int) -> None:
        rng = generator(rig_seed, "detectors")
        directions = rng.normal(size=(detectors, dim))
        self._directions = directions / np.sqrt(np.sum(directions**2, axis=1, keepdims=True))
        self._gains = rng.permutation(np.geomspace(_SMALLEST_GAIN, _LARGEST_GAIN, detectors))
        self._offsets = rng.normal(0.0, _OFFSET, detectors) / self._gains
        self._narrow = np.arange(detectors) % _NARROW == _NARROW - 1

    def readings(self, displacements: FloatArray) -> FloatArray:
        """Return readings without error or noise, for one displacement or one per row."""
        along = np.sum(displacements[..., None, :] * self._directions, axis=-1)  # no matrix product: same bits in rows
        arguments = self._gains * (along - self._offsets)
        return np.asarray(np.where(self._narrow, np.exp(-0.5 * arguments**2), np.tanh(arguments)))


class SensedPositioning:
    """A `Problem` that moves as `SimulatedPositioning` does and appends detector readings to what is observed."""

    def __init__(self, dynamics: Dynamics, rig: DetectorRig, detectors: int, gain_error: float, noise: float) -> None:
        self.limits = _with_readings(dynamics, detectors)
        self._problem = SimulatedPositioning(dynamics)
        self._rig, self._detectors = rig, detectors
        self._gain_error, self._noise = gain_error, noise
        self._gains = np.ones(detectors)  # of this episode
        self._seed = self._step = 0

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines."""
        self._seed, self._step = seed, 0
        self._gains = generator(seed, "gain error").normal(1.0, self._gain_error, self._detectors)
        return self._with_readings(self._problem.reset(seed))

    def step(self, action: FloatArray) -> Observed:
        """Apply one action."""
        observed = self._problem.step(action)
        self._step += 1
        return self._with_readings(observed)

    def close(self) -> None:
        """Nothing is held."""

    def _with_readings(self, observed: Observed) -> Observed:
        noise = generator(self._seed, "detector noise", self._step).normal(0.0, self._noise, self._detectors)
        readings = self._gains * self._rig.readings(observed.values) + noise
        observed.values = np.concatenate([observed.values, readings])
        return observed


_KEYS = {
    "dim": Key(int, 3, low=1, high=MOST_ENTRIES - 1, meaning="Number of axes."),
    "detectors": Key(
        int, 12, low=1, high=MOST_ENTRIES - 1, meaning="Number of detectors, whose readings follow the displacement."
    ),
    "rig_seed": Key(int, 0, low=0, high=2**63 - 1, meaning="Fixes how the detectors are mounted."),
    "gain_error": Key(float, 0.03, low=0, high=_MOST_ERROR, meaning="Deviation of a detector's gain per episode."),
    "noise": Key(float, 0.01, low=0, high=_MOST_ERROR, meaning="Deviation of a reading's noise; readings reach ±1."),
    **BLENDED_KEYS,
    **length_keys(action_radius=0.5, threshold=0.05),
}


def _dynamics(parameters: Parameters) -> Dynamics:
    return make_dynamics({**parameters, "observation": "displacement", "goal": None})


def _with_readings(dynamics: Dynamics, detectors: int) -> Limits:
    size = dynamics.dim + detectors
    if size > MOST_ENTRIES:
        raise UserError(
            f"dim is {dynamics.dim} and detectors is {detectors}; allowed: together at most {MOST_ENTRIES}, what an "
            "observation holds"
        )
    return replace(SimulatedPositioning(dynamics).limits, observation_size=size)


def _limits(parameters: Parameters) -> Limits:
    return _with_readings(_dynamics(parameters), parameters["detectors"])


def _build(parameters: Parameters, render_size: int | None) -> Problem:
    if render_size is not None:
        raise UserError("a plant of kind 'sensors' has no camera: leave render_size out or choose a fetch plant")
    rig = DetectorRig(parameters["dim"], parameters["detectors"], parameters["rig_seed"])
    others = (parameters["detectors"], parameters["gain_error"], parameters["noise"])
    return SensedPositioning(_dynamics(parameters), rig, *others)


SENSORS = PlantKind(_KEYS, _limits, _build)
