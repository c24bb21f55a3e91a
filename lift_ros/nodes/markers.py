"""The trajectory of the present episode as markers: logged steps blue, augmented ones red."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from geometry_msgs.msg import Point
from rclpy.node import Node
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

import lift_ros.msg as msg
from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Source, Step
from lift_ros.graph import qos
from lift_ros.messages import MessageError
from lift_ros.messages.records import decode_frame

BLUE = ColorRGBA(r=0.12, g=0.47, b=0.71, a=1.0)
RED = ColorRGBA(r=0.84, g=0.15, b=0.16, a=1.0)
LINE_WIDTH = 0.01
_NAMES = {Source.LOGGING_POLICY: ("logged", BLUE), Source.AUGMENTOR: ("augmented", RED)}


class PlantFrame:
    """Learns from an observation in which frame the plant's positions are, and then listens no more."""

    def __init__(self, node: Node) -> None:
        self.name: str | None = None  # until an observation has told it
        self._node = node
        self._subscription: Any = node.create_subscription(
            msg.Observation, qos.OBSERVATION, self._hear, qos.VIEW, raw=True
        )

    def _hear(self, data: bytes) -> None:
        with suppress(MessageError):
            self.name = decode_frame(data)

    def look(self) -> str | None:
        """Return the frame where it is known; called from a timer, as no callback may end its own subscription."""
        if self.name is not None and self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
        return self.name


def _point(position: FloatArray) -> Point:
    x, y, z = [*position[:3].tolist(), 0.0, 0.0][:3]
    return Point(x=x, y=y, z=z)


def trajectory_markers(steps: Sequence[Step], frame_id: str, stamp: object) -> MarkerArray:
    """Return two line lists with one segment per step between known positions, in the first three axes."""
    known = [(step, after) for step, after in pairwise(steps) if step.position.size and after.position.size]
    array = MarkerArray()
    for number, (source, (name, colour)) in enumerate(_NAMES.items()):
        points = [_point(end.position) for segment in known if segment[0].source == source for end in segment]
        marker = Marker(ns=name, id=number, type=Marker.LINE_LIST, color=colour, points=points)
        marker.header = Header(frame_id=frame_id, stamp=stamp)
        marker.action = Marker.ADD if points else Marker.DELETE
        marker.scale.x = LINE_WIDTH
        marker.pose.orientation.w = 1.0
        array.markers.append(marker)
    return array
