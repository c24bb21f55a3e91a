"""Tools and stages that are moved by a target pose."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.drivers.cartesian_topics import CartesianAxes


class PoseAxes(CartesianAxes):
    """A tool or stage that goes to a target pose by itself; its orientation stays as it is read."""

    _due = 0.0  # when the target should have been reached

    def _kind(self) -> type:
        from geometry_msgs.msg import PoseStamped

        kind: type = PoseStamped
        return kind

    def start(self, target: FloatArray) -> None:
        """Publish where to go; what has no axis stays as it is read."""
        pose = self._fresh()
        way = np.abs(target - self._along(pose))
        seconds = max(float((way / self._velocity).max()), self._settings["minimum_seconds"])
        with self._telling:
            self._target, self._due = np.array(target), time.monotonic() + seconds + self._settings["grace_seconds"]
            self._publish(pose, target)

    def _publish(self, pose: Any, target: FloatArray) -> None:
        goal = self._kind()()
        goal.header.frame_id = pose.header.frame_id
        goal.pose.orientation = pose.pose.orientation
        for name in ("x", "y", "z"):
            setattr(goal.pose.position, name, getattr(pose.pose.position, name))
        for direction, value in zip(self._directions, target.tolist(), strict=True):
            setattr(goal.pose.position, direction, value)
        if self._publisher is not None:
            self._publisher.publish(goal)

    def busy(self) -> bool:
        """Whether the controller still has time to reach the target."""
        target = self._target
        off = target is not None and bool((np.abs(self.position() - target) > self._tolerance).any())
        return off and time.monotonic() < self._due

    def stop(self) -> None:
        """Publish the present pose as the target."""
        pose = self._fresh()
        with self._telling:
            self._target = None
            self._publish(pose, self._along(pose))
