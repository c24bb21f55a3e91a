"""Tools that are moved by twists, which are streamed until the target is reached."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.drivers.cartesian_topics import CartesianAxes
from lift_ros.drivers.protocol import DriverFault
from lift_ros.drivers.ros_link import Link

_REACHED = 0.5  # twists end when every axis is this share of its tolerance away, so that it settles inside


class TwistAxes(CartesianAxes):
    """A tool behind moveit_servo, or what behaves like it: commands are streamed, for it stops where they cease."""

    def _kind(self) -> type:
        from geometry_msgs.msg import TwistStamped

        kind: type = TwistStamped
        return kind

    def _opened(self, link: Link) -> None:
        link.every(1.0 / self._settings["rate"], self._stream)

    def _stream(self) -> None:
        """Tell how to go on towards the target; one that was lost out of sight is never taken up again."""
        with self._telling:
            if self._target is None:
                return
            try:
                pose = self._fresh()
            except DriverFault:
                self._target = None
                self._tell(np.zeros(len(self._directions)))
                return
            left = self._target - self._along(pose)
            if (np.abs(left) <= _REACHED * self._tolerance).all():
                self._target, left = None, np.zeros_like(left)
            self._tell(np.clip(self._settings["gain"] * left, -self._velocity, self._velocity))

    def _tell(self, velocity: FloatArray) -> None:
        publisher, pose = self._publisher, self._pose
        if publisher is None or pose is None:
            return
        twist = self._kind()()
        twist.header.stamp = self._now()
        twist.header.frame_id = pose[0].header.frame_id
        for direction, value in zip(self._directions, velocity.tolist(), strict=True):
            setattr(twist.twist.linear, direction, value)
        publisher.publish(twist)

    def _now(self) -> Any:
        from builtin_interfaces.msg import Time

        whole, rest = divmod(time.time_ns(), 10**9)
        return Time(sec=whole, nanosec=rest)

    def start(self, target: FloatArray) -> None:
        """Let the stream go towards a target."""
        self._fresh()
        with self._telling:
            self._target = np.array(target)

    def busy(self) -> bool:
        """Whether twists are streamed."""
        return self._target is not None

    def stop(self) -> None:
        """Forget the target and tell to stand still."""
        with self._telling:
            self._target = None
            self._tell(np.zeros(len(self._directions)))
