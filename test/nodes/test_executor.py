"""The executor calls back, stops when asked, and falls back with one line where EventsExecutor is missing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import UInt32

from lift_ros.nodes.executor import make_executor, spin

ENOUGH = 60.0


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def context(ros_domain: int) -> Iterator[rclpy.Context]:
    rclpy.init()
    yield rclpy.get_default_context()
    rclpy.try_shutdown()


def test_events_executor_is_picked_silently_where_it_exists(context: rclpy.Context) -> None:
    pytest.importorskip("rclpy.experimental.events_executor")
    log = Log()
    assert type(make_executor(log)).__name__ == "EventsExecutor"
    assert log.lines == []


def test_falls_back_with_one_line(context: rclpy.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rclpy.experimental.events_executor", None)
    log = Log()
    assert isinstance(make_executor(log), SingleThreadedExecutor)
    assert len(log.lines) == 1
    assert "SingleThreadedExecutor" in log.lines[0]


@pytest.mark.parametrize("hidden", [False, True])
def test_spin_calls_back_until_told_to_stop(
    hidden: bool, context: rclpy.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hidden:
        monkeypatch.setitem(sys.modules, "rclpy.experimental.events_executor", None)
    node = rclpy.create_node("spinner")
    received: list[int] = []
    publisher = node.create_publisher(UInt32, "numbers", 10)
    node.create_subscription(UInt32, "numbers", lambda message: received.append(message.data), 10)
    node.create_timer(0.05, lambda: publisher.publish(UInt32(data=len(received))))
    executor = make_executor(Log())
    executor.add_node(node)
    deadline = time.monotonic() + ENOUGH
    spin(executor, lambda: len(received) >= 3 or time.monotonic() > deadline)
    executor.remove_node(node)
    node.destroy_node()
    assert len(received) >= 3


def test_spin_ends_when_ros_is_shut_down(context: rclpy.Context) -> None:
    node = rclpy.create_node("short_lived")
    executor = make_executor(Log())
    executor.add_node(node)
    threading.Timer(0.3, rclpy.try_shutdown).start()
    deadline = time.monotonic() + ENOUGH
    spin(executor, lambda: time.monotonic() > deadline)
    assert time.monotonic() < deadline
