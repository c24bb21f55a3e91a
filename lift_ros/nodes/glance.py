"""A topic at which one only glances: messages wait in the middleware until somebody looks, and wake nobody before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile


class Glance:
    """A subscription of a node without an executor.

    Python that is woken by each of a thousand messages a second takes a third of a processor from the loop, on a
    machine that has no processor to spare.
    """

    def __init__(
        self, beside: Node, kind: type, topic: str, receive: Callable[[bytes, Any], None], profile: QoSProfile
    ) -> None:
        """Listen where the node `beside` would, remapped names included; `receive` gets bytes and who sent them."""
        self._receive = receive
        self._node = Node(
            f"_{beside.get_name()}_{topic}",  # such names are hidden where nodes are listed
            namespace=beside.get_namespace(),
            context=beside.context,
            use_global_arguments=False,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self._subscription = self._node.create_subscription(
            kind, beside.resolve_topic_name(topic), _never_called, profile, raw=True
        )

    def look(self) -> int:
        """Take what has come since, and return how much that was."""
        count = 0
        handle: Any = self._subscription.handle
        with handle:
            while (received := handle.take_message(self._subscription.msg_type, True)) is not None:
                self._receive(*received)
                count += 1
        return count

    def close(self) -> None:
        """Listen no more."""
        self._node.destroy_node()


def _never_called(_data: bytes) -> None:
    """Stand where rclpy asks for a callback; no executor knows the subscription."""
