"""ROS in a process of ours: how it is set up, the executor of every node, how it is spun."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import rclpy
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from lift_ros.graph.domains import check_room, given_domain
from lift_ros.graph.transport import LOCALHOST, discovery_range, prepare_transport

# EventsExecutor never calls back when it is spun without a time limit (rclpy 7.1.6 and 9.1.2).
SPIN_SECONDS = 0.1


@contextlib.contextmanager
def ros(arguments: Sequence[str] = ()) -> Iterator[None]:
    """Set ROS up for the duration of the block, unless nobody could be met; signals are left to whoever opens it."""
    prepare_transport()
    check_room(given_domain() or 0, 1, loopback=discovery_range() == LOCALHOST)
    rclpy.init(args=list(arguments), signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield
    finally:
        rclpy.try_shutdown()


def make_executor(logger: Any) -> Executor:
    """Return the EventsExecutor, three times as quick, or where this ROS has none the usual one and say so once."""
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        logger.warning(
            "This ROS has no EventsExecutor: using SingleThreadedExecutor, which makes fewer steps per second."
        )
        return SingleThreadedExecutor()
    return EventsExecutor()


def with_sender(receive: Callable[[bytes, Any], None]) -> Callable[..., None]:
    """Return a callback for raw messages that is told who sent each; the information is what `rclpy` calls it.

    Executors give message and information as two arguments, but EventsExecutor as one pair (rclpy 7.1.6 and 9.1.2).
    """

    def callback(*received: Any) -> None:
        receive(*(received if len(received) == 2 else received[0]))

    callback.__signature__ = inspect.signature(receive)  # type: ignore[attr-defined]  # by which rclpy knows the kind
    return callback


def spin(executor: Executor, should_stop: Callable[[], bool]) -> None:
    """Call back until `should_stop` says so, which is asked at least every tenth of a second, or ROS is shut down."""
    with contextlib.suppress(ExternalShutdownException):
        while executor.context.ok() and not should_stop():
            executor.spin_once(timeout_sec=SPIN_SECONDS)
