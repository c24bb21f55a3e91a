"""What every plant that runs in process offers, simulated on paper or by MuJoCo, and the limits of any plant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.positioning.pictures import PictureFormat

Bounds = tuple[FloatArray, FloatArray]

LARGEST_LENGTH = 1e9  # so that squares of lengths are far from infinite


def _empty() -> FloatArray:
    return np.empty(0)


@dataclass(slots=True)
class Observed:
    """What a plant tells after a reset or a step; empty arrays and NaN mean unknown."""

    values: FloatArray  # the observation o
    position: FloatArray = field(default_factory=_empty)  # s
    goal: FloatArray = field(default_factory=_empty)  # s_W
    context: FloatArray = field(default_factory=_empty)  # W, flattened
    reward: float = float("nan")  # of the step that led here; NaN after a reset
    terminated: bool = False  # the goal is reached
    image: Picture | None = None  # seen together with `values`


@dataclass(frozen=True)
class Limits:
    """What a plant can do, as far as others must know it to judge an action."""

    observation_size: int
    action_size: int
    action_radius: float  # λ
    step_limit: int
    workspace: Bounds | None = None  # lowest and highest position, where there is such a box
    picture: PictureFormat | None = None  # what every observation carries besides its values, where it does


@runtime_checkable
class Problem(Protocol):
    """An active positioning problem (P, W, O, f, γ) that can be reset and stepped."""

    @property
    def limits(self) -> Limits:
        """What the plant can do; the caller ends an episode at the step limit."""

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines, whatever came before."""

    def step(self, action: FloatArray) -> Observed:
        """Apply one action; never called again after `terminated` before the next reset."""

    def close(self) -> None:
        """Release what the plant holds."""
