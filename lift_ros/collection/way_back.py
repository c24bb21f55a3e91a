"""The way back to where an episode began: for an augmentor that has lost a routine which arrives from there."""

from __future__ import annotations

import math

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.proposals import judge_augmentation
from lift_ros.collection.records import Rejection
from lift_ros.positioning.problem import Limits

# A way shorter than this share of the action radius is not worth a move.
NEAR = 0.02
# A move that has not shortened the way to this share of what it should have is the last: the plant has met a stop.
FOLLOWED = 0.45


class WayBack:
    """Leads straight back: by position where the plant tells it, else by what was commanded."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._began: FloatArray | None = None
        self._position: FloatArray = np.empty(0)
        self._net: FloatArray = np.zeros(limits.action_size)  # sum of all moves
        self._aimed_at = math.inf  # distance that the last move back should have left, with some slack

    def see(self, position: FloatArray) -> None:
        """Note where the plant is; empty where that is not known."""
        self._position = position
        self._began = position if self._began is None else self._began

    def note(self, move: FloatArray) -> None:
        """Note a move that was made, whoever made it."""
        self._net = self._net + move

    def next(self) -> FloatArray | None:
        """Return the next move back, or None where the plant is back, or cannot get any closer."""
        way, radius = self._way(), self._limits.action_radius
        distance = math.hypot(*way.tolist())
        if distance <= NEAR * radius or distance > self._aimed_at:
            return None
        count = math.ceil(distance / radius)
        self._aimed_at = distance * (1.0 - FOLLOWED / count)
        move = way / count
        return move if judge_augmentation(move, self._position, self._limits) is Rejection.NONE else None

    def _way(self) -> FloatArray:
        if self._began is not None and self._began.shape == self._position.shape == self._net.shape:
            return self._began - self._position
        return -self._net
