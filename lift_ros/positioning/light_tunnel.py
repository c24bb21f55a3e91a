"""The light tunnel: light that passes two polarizers onto a camera, seen as the difference from the wanted picture.

The picture depends on the angle Δ between the polarizers alone, and so does O(s, W) = I(s) − I(s_W). The paper took
I(s) from the decoder of an autoencoder that was trained on pictures of the real tunnel; its weights are not to be had.
Neither renderer here is that: `malus` is Malus' law on a soft spot of light, `causalchamber` the models F1 to F3 of the
tunnel's makers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lift_ros.array_types import Float32Array, FloatArray, Picture
from lift_ros.errors import UserError
from lift_ros.lazy import quietly
from lift_ros.positioning.dynamics import HIGH, LOW, Beginning, Dynamics
from lift_ros.positioning.pictured import PicturedPositioning, Renderer
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.positioning.problem import Observed

SIZE = 2  # polarizers
# With this travel Δ stays between π/8 and 3π/8, where more light always means a smaller Δ.
DEFAULT_TRAVEL, PAPERS_TRAVEL = math.pi / 8, 2 * math.pi
MODELS = ("F1", "F2", "F3")  # of causalchamber
_MIDDLE = math.pi / 4  # Δ where s is the origin
_RADIUS, _SOFTNESS = 0.55, 0.06  # of the spot, in halves of the picture's side
_LIGHT = np.array([0.95, 0.85, 0.7])  # L by colour
_TRANSMISSION = np.array([0.95, 0.9, 0.8])  # T by colour
_LEAK = np.array([0.02, 0.03, 0.06])  # what crossed polarizers let pass, by colour
_REMEDY = "pip install 'lift_ros[optics]'"


def angles(position: FloatArray, travel: float) -> FloatArray:
    """Return α1 and α2 in radians."""
    return np.array([-_MIDDLE / 2, _MIDDLE / 2]) + travel / 2 * position


class MalusLight:
    """I by Malus' law: I_c = L_c (T_c cos²Δ + leak_c), a soft hexagonal spot on dark ground."""

    def __init__(self, picture_size: int) -> None:
        self._spot = _hexagon(picture_size)

    def intensity(self, alpha: FloatArray) -> FloatArray:
        """Return the picture that the camera takes at two angles."""
        passed = _LIGHT * (_TRANSMISSION * math.cos(float(alpha[1] - alpha[0])) ** 2 + _LEAK)
        return np.asarray(self._spot[..., None] * passed)


class ChamberLight:
    """I by a model of the package `causalchamber`, with round numbers for what its makers fit to a camera."""

    def __init__(self, picture_size: int, model: str) -> None:
        try:
            with quietly():
                from causalchamber.simulators.lt.image import models_f
        except ImportError as error:
            raise UserError(
                f"renderer causalchamber needs the package of this name: {_REMEDY}; or choose renderer: malus"
            ) from error
        parts: dict[str, Any] = {"center_x": 0.5, "center_y": 0.5, "radius": 0.3, "offset": 0.0}
        if model != "F1":
            mixing = np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]])
            parts |= {"S": mixing, "w_r": 1.0, "w_g": 1.0, "w_b": 1.0, "exposure": 1.0}
        if model == "F3":
            parts |= {"Tp": _TRANSMISSION[:, None], "Tc": _LEAK[:, None]}
        self._model = getattr(models_f, f"Model{model}")(image_size=picture_size, **parts)
        self._source = dict(zip(("red", "green", "blue"), 255 * _LIGHT[:, None], strict=True))

    def intensity(self, alpha: FloatArray) -> FloatArray:
        """Return the picture that the camera takes at two angles."""
        first, second = np.rad2deg(alpha)[:, None]
        pictures = self._model._simulate(**self._source, pol_1=first, pol_2=second, **self._model.parameters())
        return np.asarray(pictures[0], dtype=np.float64)


class TunnelRenderer:
    """Draws I(s) − I(s_W), whose values have a sign."""

    def __init__(self, light: MalusLight | ChamberLight, picture_size: int, travel: float) -> None:
        self.format = PictureFormat(picture_size, picture_size, "32FC3")
        self._light, self._travel = light, travel
        self._wanted = np.zeros(self.format.shape)

    def begin(self, seed: int, start: Beginning) -> None:
        """Take the picture that is wanted in this episode."""
        self._wanted = self._light.intensity(angles(start.goal, self._travel))

    def picture(self, position: FloatArray, step: int) -> Picture:
        """Return the difference from what is wanted."""
        return self.difference(position)

    def difference(self, position: FloatArray) -> Float32Array:
        """Return I(s) − I(s_W)."""
        return np.asarray(self._light.intensity(angles(position, self._travel)) - self._wanted, dtype=np.float32)

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class LightDynamics(Dynamics):
    """The tunnel where it has arrived when the light matches: lengths are those of the move in s that is missing."""

    travel: float = DEFAULT_TRAVEL

    def distance(self, positions: FloatArray, goal: FloatArray) -> FloatArray:
        """Return the length of the shortest move that makes the light match."""
        differences = positions[..., 1] - positions[..., 0]
        gaps = np.abs(differences[..., None] - self.matching_differences(goal))
        return np.asarray(gaps.min(axis=-1) / math.sqrt(2))

    def matching_differences(self, goal: FloatArray) -> FloatArray:
        """Return all s2 − s1 with the light of s_W: cos² is even and repeats itself, where the travel is that long."""
        own = float(goal[1] - goal[0])
        delta = _MIDDLE + self.travel / 2 * own
        turns = np.arange(-1 - math.ceil(self.travel), 2 + math.ceil(self.travel)) * math.pi
        others = (np.concatenate([delta + turns[turns != 0], turns - delta]) - _MIDDLE) / (self.travel / 2)
        return np.array([own, *others[np.abs(others) <= HIGH - LOW]])

    def nearest_goal(self, position: FloatArray, goal: FloatArray) -> FloatArray:
        """Return the position of the box with the light of s_W that is nearest."""
        wanted = self.matching_differences(goal)
        room = (HIGH - LOW - np.abs(wanted)) / 2
        middles = np.clip(position.mean(), -room, room)
        candidates = np.stack([middles - wanted / 2, middles + wanted / 2], axis=-1)
        return np.asarray(candidates[np.argmin(np.sum((candidates - position) ** 2, axis=-1))])


class LightMatching(PicturedPositioning):
    """The tunnel that has arrived when the light matches; its goal is the nearest such position from the start."""

    def __init__(self, dynamics: LightDynamics, renderer: Renderer) -> None:
        super().__init__(dynamics, renderer)
        self._dynamics = dynamics
        self._nearest = np.empty(0)

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines."""
        observed = super().reset(seed)
        self._nearest = self._dynamics.nearest_goal(observed.position, observed.goal)
        observed.goal, observed.terminated = self._nearest.copy(), False
        return observed

    def step(self, action: FloatArray) -> Observed:
        """Apply one action."""
        observed = super().step(action)
        distance = float(self._dynamics.distance(observed.position, observed.goal))
        observed.reward, observed.terminated = -distance, distance <= self._dynamics.threshold
        observed.goal = self._nearest.copy()
        return observed


def _hexagon(size: int) -> FloatArray:
    """Return a spot of light: 1 inside, 0 outside, with a soft border."""
    centres = (np.arange(size) * 2 + 1) / size - 1
    x, y = centres[None, :], centres[:, None]
    turns = np.arange(3) * math.pi / 3
    # The outline is where the farthest of three pairs of parallel sides is reached.
    reach = np.max([np.abs(x * math.cos(turn) + y * math.sin(turn)) for turn in turns], axis=0)
    return np.asarray(1 / (1 + np.exp((reach - _RADIUS) / _SOFTNESS)))
