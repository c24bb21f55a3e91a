"""A place of a driver's own in the ROS graph: nothing of it is shared with nodes that the same process may run."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from lift_ros.configuration import Key
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import DriverFault

SOURCED = "source the ROS installation that has it, or pip install the wheel of that name (ros-trajectory-msgs, …)"
KEYS = {
    "namespace": Key(str, "", meaning="namespace of topics whose names do not begin with a slash"),
    "connection_seconds": Key(float, 5.0, above=0, high=600, meaning="seconds to find who speaks and who listens"),
}
_POLL_SECONDS = 0.02
_JOIN_SECONDS = 5.0


class Link:
    """A ROS context, a node and a thread that calls back, in the domain that ROS_DOMAIN_ID names."""

    def __init__(self, name: str, namespace: str) -> None:
        with needed_by("topics", SOURCED):
            from rclpy.clock import Clock
            from rclpy.clock_type import ClockType
            from rclpy.context import Context
            from rclpy.executors import SingleThreadedExecutor
            from rclpy.node import Node
        self._kept: list[object] = []
        self._context = Context()
        self._context.init(args=[])  # not those of the process, which may rename another node
        try:
            self.node = Node(
                name,
                namespace=namespace,
                context=self._context,
                use_global_arguments=False,
                enable_rosout=False,
                start_parameter_services=False,
            )
            self._steady = Clock(clock_type=ClockType.STEADY_TIME)
            self._executor = SingleThreadedExecutor(context=self._context)
            self._executor.add_node(self.node)
        except Exception:
            self._context.try_shutdown()
            raise
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)
        self._thread.start()
        atexit.register(self.close)  # a thread that still calls back while Python ends would abort the process

    def _spin(self) -> None:
        from rclpy.executors import ExternalShutdownException, ShutdownException

        with contextlib.suppress(ExternalShutdownException, ShutdownException):
            self._executor.spin()

    def hear(self, kind: type, topic: str, receive: Callable[[Any], None]) -> None:
        """Call back with every message; best effort hears reliable and unreliable publishers alike."""
        from rclpy.qos import qos_profile_sensor_data

        self.node.create_subscription(kind, topic, receive, qos_profile_sensor_data)

    def speaker(self, kind: type, topic: str) -> Any:
        """Return a publisher; commands are reliable, as controllers ask for."""
        return self.node.create_publisher(kind, topic, 10)

    def keep(self, thing: object) -> None:
        """Hold something that works only as long as somebody refers to it."""
        self._kept.append(thing)

    def every(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call back regularly by the steady clock."""
        self.node.create_timer(seconds, callback, clock=self._steady)

    def full_name(self, topic: str) -> str:
        """Return a topic as `ros2 topic list` shows it."""
        return str(self.node.resolve_topic_name(topic))

    def close(self) -> None:
        """Leave the graph."""
        atexit.unregister(self.close)
        self._executor.shutdown(timeout_sec=_JOIN_SECONDS)
        self._thread.join(_JOIN_SECONDS)
        self.node.destroy_node()
        self._context.try_shutdown()


def wait_until(there: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Wait for something that comes with time; DriverFault where it does not."""
    deadline = time.monotonic() + seconds
    while not there():
        if time.monotonic() > deadline:
            raise DriverFault(f"{otherwise} within {seconds:g} s")
        time.sleep(_POLL_SECONDS)


def wait_for_listener(publisher: Any, topic: str, seconds: float) -> None:
    """Wait until somebody subscribes to the commands: what is published before is lost."""
    wait_until(
        lambda: publisher.get_subscription_count() > 0,
        seconds,
        f"nobody listens to topic {topic}: start and activate its controller, check its name and ROS_DOMAIN_ID; "
        "no subscription was found",
    )


def stale(source: str, what: str, age: float, limit: float) -> DriverFault:
    """Return the fault of a state that is too old to move by; an age of infinity means that none came."""
    told = f"brought no {what} yet" if age == float("inf") else f"brought no {what} for {age:.3g} s"
    return DriverFault(
        f"{source} {told}, limit {limit:g} s (stale_seconds); check that its publisher runs and ROS_DOMAIN_ID, "
        "then reset and connect"
    )
