"""Executable `loopback_hardware`: pretends to be a rig that moves in real time, to try a graph without one."""

from __future__ import annotations

import sys
import time

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.nodes.base import run
from lift_ros.nodes.plant import PlantNode
from lift_ros.positioning.problem import Limits, Observed


class LoopbackHardware(PlantNode):
    """A rig that goes where it is told to, in its own time; it measures its position and knows no goal."""

    executable = "loopback_hardware"
    summary = "a plant: pretends to be a rig of any size that moves in real time; rigs read theirs from a scenario"

    def make_limits(self) -> Limits:
        """Switch the rig on and say what it can do."""
        size, travel = self.value("dimensions"), self.value("travel")
        self._origin = self._target = np.zeros(size)
        self._left_ns = self._arrives_ns = 0
        border = np.full(size, travel)
        return Limits(size, size, self.value("action_radius"), step_limit=0, workspace=(-border, border))

    def begin(self, seed: int) -> None:
        """Drive to the start of an episode, here the middle."""
        self._drive_to(np.zeros(self.limits.action_size))

    def move(self, action: FloatArray) -> None:
        """Drive by `action`."""
        self._drive_to(self._position() + action)

    def moving(self) -> bool:
        """Whether the rig is still driving."""
        return time.monotonic_ns() < self._arrives_ns

    def read(self) -> Observed:
        """Read the encoders; the reward is unknown and follows in hindsight."""
        position = self._position()
        return Observed(values=position, position=position)

    def hold(self) -> None:
        """Stop where the rig is."""
        self._origin = self._target = self._position()
        self._left_ns = self._arrives_ns = 0

    def _drive_to(self, target: FloatArray) -> None:
        self._origin, self._target = self._position(), target
        self._left_ns = time.monotonic_ns()
        self._arrives_ns = self._left_ns + int(self.value("move_time") * 1e9)

    def _position(self) -> FloatArray:
        duration = self._arrives_ns - self._left_ns
        share = 1.0 if duration <= 0 else min(1.0, (time.monotonic_ns() - self._left_ns) / duration)
        return np.asarray(self._origin + share * (self._target - self._origin), dtype=np.float64)


def main() -> int:
    """Run the node."""
    return run(LoopbackHardware)


if __name__ == "__main__":
    sys.exit(main())
