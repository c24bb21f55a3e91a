"""Poses of a tool as TF tells them, for rigs that publish transforms and no pose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.ros_link import Link

RATE = 100.0  # of looks at the transforms, per second; TF calls nobody back
_REMEDY = "it is not on PyPI: source a ROS installation that has it, or leave `tf` out and give a topic of poses"


class TfPoses:
    """Calls back with the pose of a frame in another one, once for each new stamp."""

    def __init__(self, lookup: Callable[[], Any], receive: Callable[[Any], None]) -> None:
        self._lookup, self._receive = lookup, receive
        self._stamp: tuple[int, int] | None = None

    def look(self) -> None:
        """Pass the latest pose on, unless it is unknown or was passed on already."""
        transform = self._lookup()
        if transform is None:
            return
        stamp = (transform.header.stamp.sec, transform.header.stamp.nanosec)
        if stamp != self._stamp:
            self._stamp = stamp
            self._receive(pose_of(transform))


def hear_tf(link: Link, base: str, tool: str, receive: Callable[[Any], None]) -> None:
    """Call back with the pose of `tool` in `base` whenever TF has a new one; UserError where tf2_ros is missing."""
    with needed_by("topics", _REMEDY):
        import tf2_ros
    buffer = tf2_ros.Buffer()
    link.keep(tf2_ros.TransformListener(buffer, link.node))

    def lookup() -> Any:
        try:
            return buffer.lookup_transform(base, tool, _latest())
        except tf2_ros.TransformException:  # not heard yet, or not connected
            return None

    link.every(1.0 / RATE, TfPoses(lookup, receive).look)


def _latest() -> Any:
    from rclpy.time import Time

    return Time()


def pose_of(transform: Any) -> Any:
    """Return a stamped transform as the pose of its child in its parent."""
    from geometry_msgs.msg import PoseStamped

    pose = PoseStamped(header=transform.header)
    for name in ("x", "y", "z"):
        setattr(pose.pose.position, name, getattr(transform.transform.translation, name))
    pose.pose.orientation = transform.transform.rotation
    return pose
