"""What tools and stages share that are moved along x, y and z of a pose: how it is read, and when it is too old."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import Axis
from lift_ros.drivers.ros_link import SOURCED, Link, stale, wait_for_listener, wait_until
from lift_ros.drivers.tf_pose import hear_tf


class CartesianAxes:
    """Reads the pose back; subclasses say what kind of message moves it, and when."""

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
            if self._settings["tf"] is None:
                link.hear(PoseStamped, self._settings["state"], self._receive)
            else:
                base, tool = self._settings["tf"]
                hear_tf(link, base, tool, self._receive)
            wait_until(
                lambda: self._pose is not None,
                self._settings["connection_seconds"],
                f"{self._source(link)} brought no pose: check that its publisher runs, its name and ROS_DOMAIN_ID; "
                "none came",
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
            raise stale(self._source(self._link), "pose", age, limit)
        return pose[0]

    def _source(self, link: Link | None) -> str:
        """Return what sentences call the place where poses come from."""
        if self._settings["tf"] is not None:
            return "TF from {} to {}".format(*self._settings["tf"])
        topic = self._settings["state"]
        return f"topic {topic if link is None else link.full_name(topic)}"

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
