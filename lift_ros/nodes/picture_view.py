"""What others see of a node's pictures: a topic that is published while somebody subscribes to it."""

from __future__ import annotations

from array import array
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import Image

from lift_ros.array_types import Picture
from lift_ros.graph import qos
from lift_ros.messages.pictures import image_fields
from lift_ros.positioning.pictures import for_eyes


class PictureView:
    """Shows pictures of one camera."""

    def __init__(self, node: Node, frame_id: str, topic: str = qos.IMAGE) -> None:
        self.publisher: Any = node.create_publisher(Image, topic, qos.VIEW)
        self._clock = node.get_clock()
        self._frame_id = frame_id

    @property
    def wanted(self) -> bool:
        """Whether anybody looks."""
        return bool(self.publisher.get_subscription_count())

    def show(self, picture: Picture, stamp: Any = None) -> None:
        """Publish a picture, unless nobody looks; `stamp` is when it was taken, if that is not now."""
        if not self.wanted:
            return
        (height, width, encoding, row), pixels = image_fields("image", for_eyes(picture))
        message = Image(height=height, width=width, encoding=encoding[:-1].decode(), step=row, data=array("B", pixels))
        message.header.stamp = self._clock.now().to_msg() if stamp is None else stamp
        message.header.frame_id = self._frame_id
        self.publisher.publish(message)
