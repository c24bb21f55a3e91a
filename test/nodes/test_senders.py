"""Who is listened to where several publish: real publishers in one domain, each in a ROS of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import rclpy
from isolation import isolated, udp_alone
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String

from lift_ros.graph import qos
from lift_ros.nodes import senders
from lift_ros.nodes.executor import with_sender
from lift_ros.nodes.senders import Presence, Senders, Verdict

ENOUGH = 60.0


class Speaker:
    """A process that publishes `topic`; one of ours also says that it is there."""

    def __init__(self, name: str, domain: int, *, is_ours: bool) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = Node(name, context=self._context, namespace="lift")
        self._publisher = self.node.create_publisher(String, "topic", qos.LOOP)
        self.presence = Presence(self.node) if is_ours else None

    def say(self) -> None:
        self._publisher.publish(String(data=self.node.get_name()))

    def fall_silent(self) -> None:
        """Be there no more as far as anybody can tell but the graph, in which the dead stay for a while."""
        assert self.presence is not None
        self.presence.close()

    def leave(self) -> None:
        if self.presence is not None:
            self.presence.close()
        self.node.destroy_node()
        self._context.try_shutdown()


class Listener:
    """Listens to `topic` and keeps what became of the last message of each speaker."""

    def __init__(self, domain: int, most: int = 1) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = Node("listener", context=self._context, namespace="lift")
        self.senders = Senders(self.node)
        self.verdicts: dict[str, Verdict] = {}
        self._most = most
        self.node.create_subscription(String, "topic", with_sender(self._hear), qos.LOOP, raw=True)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

    def _hear(self, _data: bytes, info: Any) -> None:
        name = self.senders.name("topic", info).rsplit("/", 1)[-1]
        self.verdicts[name] = self.senders.judge("topic", info, most=self._most)

    def until(self, wanted: dict[str, Verdict], speak: Callable[[], None]) -> None:
        deadline = time.monotonic() + ENOUGH
        while {name: self.verdicts.get(name) for name in wanted} != wanted:
            assert time.monotonic() < deadline, f"{self.verdicts} and not {wanted}"
            speak()
            self.spin(0.05)

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.01)

    def leave(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()


class Room:
    """A domain with one listener and whoever comes."""

    def __init__(self, domain: int, left: contextlib.ExitStack) -> None:
        self._domain, self._left = domain, left
        self.listener = Listener(domain)
        left.callback(self.listener.leave)

    def enter(self, name: str, *, is_ours: bool = True) -> Speaker:
        speaker = Speaker(name, self._domain, is_ours=is_ours)
        self._left.callback(speaker.leave)
        self.listener.spin(0.3)
        return speaker

    def expect(self, *speakers: Speaker, **verdicts: Verdict) -> None:
        """Have all speak until each is treated as expected."""
        self.listener.verdicts.clear()
        self.listener.until(verdicts, lambda: [speaker.say() for speaker in speakers] and None)


@pytest.fixture
def room() -> Iterator[Room]:
    with isolated() as domain, udp_alone(), contextlib.ExitStack() as left:
        yield Room(domain, left)


HEEDED, STRANGER, CROWDED = Verdict.HEEDED, Verdict.STRANGER, Verdict.CROWDED


def test_whoever_is_heard_first_is_listened_to_alone(room: Room) -> None:
    first = room.enter("first")
    room.expect(first, first=HEEDED)
    second = room.enter("second")
    room.expect(first, second, first=HEEDED, second=STRANGER)


def test_when_it_has_left_another_may_take_its_place(room: Room) -> None:
    first = room.enter("first")
    room.expect(first, first=HEEDED)
    first.leave()
    second = room.enter("second")
    room.expect(second, second=HEEDED)


def test_who_says_no_more_that_it_is_there_is_gone_before_the_graph_knows(room: Room) -> None:
    first, second = room.enter("first"), room.enter("second")
    room.expect(first, second, first=CROWDED, second=CROWDED)
    first.fall_silent()
    room.expect(second, second=HEEDED)
    assert len(room.listener.node.get_publishers_info_by_topic("topic")) == 2


def test_two_who_want_to_be_heard_at_first_are_neither(room: Room) -> None:
    first, second = room.enter("first"), room.enter("second")
    room.expect(first, second, first=CROWDED, second=CROWDED)


def test_a_script_is_heard_where_it_is_alone_and_gives_way_to_a_node_of_ours(room: Room) -> None:
    script = room.enter("script", is_ours=False)
    room.expect(script, script=HEEDED)
    node = room.enter("node")
    room.expect(script, node, node=HEEDED, script=STRANGER)


def test_a_script_is_in_nobodys_way(room: Room) -> None:
    script, node = room.enter("script", is_ours=False), room.enter("node")
    room.expect(node, node=HEEDED)
    room.expect(script, node, node=HEEDED, script=STRANGER)


def test_where_ros_does_not_tell_senders_nobody_is_heard_beside_another(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = room.enter("first")
    with monkeypatch.context() as patch:
        patch.setattr(senders, "_identity", lambda _info: b"")
        patch.setattr(Senders, "name", lambda *_: "anybody")
        room.expect(first, anybody=HEEDED)
        second = room.enter("second")
        room.expect(first, second, anybody=CROWDED)
