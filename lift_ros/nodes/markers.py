"""The trajectory of the present episode as markers: logged steps blue, augmented ones red."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
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
    segments: dict[Source, list[Point]] = {source: [] for source in _NAMES}
    for step, following in pairwise(steps):
        if step.position.size and following.position.size:
            segments[step.source] += [_point(step.position), _point(following.position)]
    array = MarkerArray()
    for number, (source, (name, colour)) in enumerate(_NAMES.items()):
        marker = Marker()
        marker.header.frame_id = frame_id
        marker.header.stamp = stamp
        marker.ns = name
        marker.id = number
        marker.type = Marker.LINE_LIST
        marker.action = Marker.ADD if segments[source] else Marker.DELETE
        marker.scale.x = LINE_WIDTH
        marker.color = colour
        marker.pose.orientation.w = 1.0
        marker.points = segments[source]
        array.markers.append(marker)
    return array
