"""What viewers see of a plant's pictures: the topic `image`, published while somebody subscribes to it."""

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
    """Shows pictures of one plant."""

    def __init__(self, node: Node, frame_id: str) -> None:
        self.publisher: Any = node.create_publisher(Image, qos.IMAGE, qos.VIEW)
        self._clock = node.get_clock()
        self._frame_id = frame_id

    def show(self, picture: Picture) -> None:
        """Publish a picture, unless nobody looks."""
        if not self.publisher.get_subscription_count():
            return
        (height, width, encoding, row), pixels = image_fields("image", for_eyes(picture))
        message = Image(height=height, width=width, encoding=encoding[:-1].decode(), step=row, data=array("B", pixels))
        message.header.stamp = self._clock.now().to_msg()
        message.header.frame_id = self._frame_id
        self.publisher.publish(message)
