"""Messages at which one only glances wait until somebody looks, and tell who sent them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import rclpy
from isolation import isolated, udp_alone
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from lift_ros.graph import qos
from lift_ros.nodes.glance import Glance

ENOUGH = 60.0


class Viewer:
    """Glances at `topic` beside a node; another process's node speaks."""

    def __init__(self, domain: int, *arguments: str) -> None:
        self._contexts = [rclpy.Context(), rclpy.Context()]
        for context in self._contexts:
            rclpy.init(context=context, domain_id=domain)
        self.node = Node("viewer", context=self._contexts[0], namespace="lift", cli_args=list(arguments))
        self.speaker = Node("speaker", context=self._contexts[1], namespace="lift")
        self.publisher = self.speaker.create_publisher(String, "topic", qos.LOOP)
        self.heard: list[str] = []
        self.senders: list[Any] = []
        self.glance = Glance(self.node, String, "topic", self._hear, qos.GLANCE)

    def _hear(self, data: bytes, info: Any) -> None:
        self.heard.append(deserialize_message(data, String).data)
        self.senders.append(info)

    def say(self, *words: str) -> None:
        for word in words:
            self.publisher.publish(String(data=word))

    def until(self, condition: Any) -> None:
        deadline = time.monotonic() + ENOUGH
        while not condition():
            assert time.monotonic() < deadline, self.heard
            time.sleep(0.02)

    def meet(self) -> None:
        """Wait until both have found each other."""

        def met() -> bool:
            self.say("hello")
            return self.glance.look() > 0

        self.until(met)
        time.sleep(0.3)
        self.glance.look()
        self.heard.clear()

    def leave(self) -> None:
        self.glance.close()
        self.node.destroy_node()
        self.speaker.destroy_node()
        for context in self._contexts:
            context.try_shutdown()


@pytest.fixture
def domain() -> Iterator[int]:
    with isolated() as number, udp_alone():
        yield number


@pytest.fixture
def viewer(domain: int) -> Iterator[Viewer]:
    viewer = Viewer(domain)
    yield viewer
    viewer.leave()


def test_nothing_is_heard_before_somebody_looks(viewer: Viewer) -> None:
    viewer.meet()
    words = [str(number) for number in range(300)]
    viewer.say(*words)
    time.sleep(0.3)
    assert viewer.heard == []
    viewer.until(lambda: viewer.glance.look() >= 0 and len(viewer.heard) == len(words))
    assert viewer.heard == words
    assert viewer.glance.look() == 0


def test_who_spoke_is_told(viewer: Viewer) -> None:
    viewer.meet()
    (known,) = viewer.node.get_publishers_info_by_topic("topic")
    if gid := viewer.senders[-1].get("publisher_gid"):
        assert bytes(gid["data"]) == bytes(known.endpoint_gid)


def test_it_listens_where_the_node_beside_it_would(domain: int) -> None:
    viewer = Viewer(domain, "--ros-args", "-r", "topic:=/elsewhere")
    try:
        assert viewer.node.count_subscribers("/elsewhere") == 1
        assert viewer.node.count_subscribers("/lift/topic") == 0
    finally:
        viewer.leave()


def test_its_node_is_hidden_and_gone_when_it_is_closed(viewer: Viewer) -> None:
    def names() -> list[str]:
        return [name for name, _ in viewer.node.get_node_names_and_namespaces() if name != "speaker"]

    assert sorted(names()) == ["_viewer_topic", "viewer"]
    viewer.glance.close()
    viewer.until(lambda: names() == ["viewer"])
    viewer.glance = Glance(viewer.node, String, "topic", viewer._hear, qos.GLANCE)
    viewer.meet()
