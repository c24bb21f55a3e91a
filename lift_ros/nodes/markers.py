"""The trajectory of the present episode as markers: logged steps blue, augmented ones red."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Source, Step

BLUE = ColorRGBA(r=0.12, g=0.47, b=0.71, a=1.0)
RED = ColorRGBA(r=0.84, g=0.15, b=0.16, a=1.0)
LINE_WIDTH = 0.01
_NAMES = {Source.LOGGING_POLICY: ("logged", BLUE), Source.AUGMENTOR: ("augmented", RED)}


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
