"""One node without a graph: what it is told comes straight to its callbacks, what it publishes is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

import rclpy
from isolation import isolated, udp_alone
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message

from lift_ros.nodes.base import LiftNode

AnyNode = TypeVar("AnyNode", bound=LiftNode)


class Kept:
    """Stands in for a publisher; what is published as bytes is kept as the message that `rclpy` makes of them."""

    def __init__(self, kind: type | None = None) -> None:
        self.messages: list[Any] = []
        self._kind = kind

    def publish(self, message: Any) -> None:
        self.messages.append(deserialize_message(message, self._kind) if isinstance(message, bytes) else message)

    def take(self) -> list[Any]:
        """Return what was published since it was last asked."""
        messages, self.messages = self.messages, []
        return messages

    def get_subscription_count(self) -> int:
        return 1


@contextlib.contextmanager
def lone_node(kind: type[AnyNode], namespace: str = "lift", **parameters: Any) -> Iterator[AnyNode]:
    """Make a node in this process that nobody else can hear."""
    context = rclpy.Context()
    with isolated() as domain, udp_alone():
        rclpy.init(context=context, domain_id=domain)
        try:
            overrides = [Parameter(name, value=value) for name, value in parameters.items()]
            node = kind(context=context, namespace=namespace, parameter_overrides=overrides)
            try:
                yield node
            finally:
                node.close()
                node.destroy_node()
        finally:
            context.try_shutdown()


def spin(node: LiftNode, seconds: float = 0.0) -> None:
    """Let a node's timers call back once."""
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    executor.spin_once(timeout_sec=seconds)
    executor.remove_node(node)
