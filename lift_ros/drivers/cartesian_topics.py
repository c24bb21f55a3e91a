"""Tools that are moved along x, y and z, by twists that are streamed to the target or by a target pose."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import Axis, DriverFault
from lift_ros.drivers.ros_link import SOURCED, Link, stale, wait_for_listener, wait_until

_REACHED = 0.5  # twists end when every axis is this share of its tolerance away, so that it settles inside


class _CartesianAxes:
    """What both share: the pose that is read back, and when it is too old."""

    def __init__(
        self, layout: tuple[Axis, ...], axes: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
    ) -> None:
        self.layout = layout
        self._settings = settings
        self._directions: list[str] = [axis["direction"] for axis in axes]
        self._velocity = np.array([axis["velocity"] for axis in axes])
        self._tolerance = np.array([axis["tolerance"] for axis in axes])
        self._pose: tuple[Any, float] | None = None  # with its arrival
        self._target: FloatArray | None = None
        self._telling = threading.Lock()  # so that nothing is told after a stop
        self._link: Link | None = None
        self._publisher: Any = None

    def connect(self) -> None:
        """Wait for a pose and for a controller that listens."""
        with needed_by("topics", SOURCED):
            from geometry_msgs.msg import PoseStamped
        self._pose = self._target = None
        link = self._link = Link("lift_axes", self._settings["namespace"])
        try:
            link.hear(PoseStamped, self._settings["state"], self._receive)
            wait_until(
                lambda: self._pose is not None,
                self._settings["connection_seconds"],
                f"topic {link.full_name(self._settings['state'])} brought no pose: check that its publisher runs, its "
                "name and ROS_DOMAIN_ID; none came",
            )
            command = self._settings["command"]
            self._publisher = link.speaker(self._kind(), command)
            wait_for_listener(self._publisher, link.full_name(command), self._settings["connection_seconds"])
            self._opened(link)
        except Exception:
            self.close()
            raise

    def _kind(self) -> type:
        raise NotImplementedError

    def _opened(self, link: Link) -> None:
        """Begin what goes on while connected."""

    def _receive(self, message: Any) -> None:
        place = message.pose.position
        if all(map(math.isfinite, (place.x, place.y, place.z))):
            self._pose = (message, time.monotonic())

    def _fresh(self) -> Any:
        """Return the last pose; DriverFault where it is too old."""
        pose, limit = self._pose, self._settings["stale_seconds"]
        age = np.inf if pose is None else time.monotonic() - pose[1]
        if self._link is None or pose is None or age > limit:
            topic = self._settings["state"] if self._link is None else self._link.full_name(self._settings["state"])
            raise stale(topic, "pose", age, limit)
        return pose[0]

    def _along(self, pose: Any) -> FloatArray:
        return np.array([getattr(pose.pose.position, direction) for direction in self._directions])

    def home(self) -> None:
        """Do nothing: what publishes poses knows its reference."""

    def position(self) -> FloatArray:
        """Return the pose along the axes as it was last published."""
        return self._along(self._fresh())

    def close(self) -> None:
        """Leave the graph."""
        link, self._link, self._publisher, self._target = self._link, None, None, None
        if link is not None:
            link.close()


class TwistAxes(_CartesianAxes):
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


class PoseAxes(_CartesianAxes):
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
