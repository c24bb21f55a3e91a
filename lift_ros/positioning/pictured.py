"""Positioning problems whose plant also sends a picture: movements as simulated on paper, pictures by a renderer."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.positioning.dynamics import Beginning, Dynamics
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.positioning.problem import Limits, Observed
from lift_ros.positioning.simulated import SimulatedPositioning
from lift_ros.seeds import generator


class Renderer(Protocol):
    """Draws what a sensor sees at a position."""

    format: PictureFormat

    def begin(self, seed: int, start: Beginning) -> None:
        """Prepare for the episode that `seed` determines and that begins so."""

    def picture(self, position: FloatArray, step: int) -> Picture:
        """Return what is seen at a position after so many steps; the same again for the same episode and step."""

    def close(self) -> None:
        """Release what the renderer holds."""


class PicturedPositioning:
    """A `Problem` that moves as `SimulatedPositioning` does and adds a picture to each observation."""

    def __init__(self, dynamics: Dynamics, renderer: Renderer) -> None:
        self.limits = pictured_limits(dynamics, renderer.format)
        self._problem = SimulatedPositioning(dynamics)
        self._renderer = renderer
        self._step = 0

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines."""
        observed = self._problem.reset(seed)
        self._step = 0
        self._renderer.begin(seed, self._start())
        return self._with_picture(observed)

    def step(self, action: FloatArray) -> Observed:
        """Apply one action."""
        observed = self._problem.step(action)
        self._step += 1
        return self._with_picture(observed)

    def close(self) -> None:
        """Release the renderer."""
        self._renderer.close()

    def _start(self) -> Beginning:
        assert self._problem.start is not None
        return self._problem.start

    def _with_picture(self, observed: Observed) -> Observed:
        observed.image = self._renderer.picture(observed.position, self._step)
        return observed


def pictured_limits(dynamics: Dynamics, picture: PictureFormat) -> Limits:
    """Return what such a plant can do; nothing is drawn to know it."""
    return replace(SimulatedPositioning(dynamics).limits, picture=picture)


def with_noise(brightness: Picture, noise: float, seed: int, step: int) -> Picture:
    """Return brightness from 0 to 1 as bytes, as a sensor with Gaussian noise of this deviation reads it."""
    rng = generator(seed, "sensor noise", step)
    levels = rng.standard_normal(brightness.shape, dtype=np.float32)
    levels *= np.float32(255 * noise)
    levels += np.float32(255) * brightness
    levels += np.float32(0.5)  # bytes are cut off, so that this rounds
    return np.clip(levels, 0, 255, out=levels).astype(np.uint8)
