from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rclpy
from foreign_bag import STORE, nanoseconds, number
from rclpy.serialization import serialize_message
from sample_run import drive
from std_msgs.msg import Float64

from lift_ros import msg
from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.bags.writer import RunWriter
from lift_ros.collection.records import Step, same
from lift_ros.errors import UserError
from lift_ros.messages.records import decode_step
from lift_ros.nodes.replay_node import message_class, quality_of, replay

ROOT = Path(__file__).parents[2]
ENOUGH = 90.0
EPISODES = [drive(0, 3, pictures=True), drive(1, 2, augmented=1, pictures=True)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    definition, _ = STORE.generate_msgdef("std_msgs/msg/Float64", ros_version=2)
    with RunWriter(path, {}, sync=False) as writer:
        data = bytes(STORE.serialize_cdr(number(1.5), "std_msgs/msg/Float64"))
        writer.write_other(RecordedTopic("/force", "std_msgs/msg/Float64", definition), data, nanoseconds(0))
        writer.write_other(RecordedTopic("/unknown", "foreign_rig/msg/Move", "float64 x"), data, nanoseconds(0))
        writer.write_other(RecordedTopic("/torn", "std_msgs/msg/String", "string data"), b"\0\1\0\0", nanoseconds(0))
        for episode in EPISODES:
            writer.write_episode(episode)
    return path


class Listener:
    """Collects what is published on some topics."""

    def __init__(self, topics: dict[str, Any]) -> None:
        self.received: dict[str, list[Any]] = {name: [] for name in topics}
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self._node = rclpy.create_node("listener", context=self._context)
        self._executor = rclpy.executors.SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        for name, kind in topics.items():
            self._node.create_subscription(kind, name, self.received[name].append, 1000)

    def wait(self, until: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + ENOUGH
        while not until() and time.monotonic() < deadline:
            self._executor.spin_once(timeout_sec=0.1)
        return until()

    def close(self) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


@pytest.fixture
def listen(ros_domain: int) -> Iterator[Callable[[dict[str, Any]], Listener]]:
    made: list[Listener] = []

    def make(topics: dict[str, Any]) -> Listener:
        made.append(Listener(topics))
        return made[-1]

    yield make
    for listener in made:
        listener.close()


def start(run: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lift_ros.cli", "replay", str(run), "--wait", str(ENOUGH), *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_run_is_published_again_bit_for_bit(run: Path, listen: Callable[[dict[str, Any]], Listener]) -> None:
    listener = listen({"/lift/step": msg.Step, "/lift/episode": msg.Episode, "/force": Float64})
    steps, ends = listener.received["/lift/step"], listener.received["/lift/episode"]
    words = ("--rate", "1000", "--topics", "/lift/step", "/lift/episode", "/force", "/unknown")
    process = start(run, *words)
    assert listener.wait(lambda: len(steps) == 5 and len(ends) == 2 and bool(listener.received["/force"]))
    output, errors = process.communicate(timeout=ENOUGH)
    assert process.returncode == 0
    replayed = [decode_step(bytes(serialize_message(message))) for message in steps]
    recorded: list[Step] = [step for episode in EPISODES for step in episode.steps]
    assert all(same(again, once) for again, once in zip(replayed, recorded, strict=True))
    assert [end.episode for end in ends] == [0, 1]
    assert listener.received["/force"][0].data == 1.5
    assert "/lift/step: 5 messages" in output
    assert "skipped /unknown: 'foreign_rig/msg/Move' is not installed" in errors


def test_loop_goes_on_under_a_prefix_until_interrupted(run: Path, listen: Callable[[dict[str, Any]], Listener]) -> None:
    listener = listen({"/again/lift/episode": msg.Episode})
    ends = listener.received["/again/lift/episode"]
    process = start(run, "--loop", "--prefix", "/again", "--topics", "/lift/episode", "--longest-pause", "0.05")
    assert listener.wait(lambda: len(ends) >= 5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=ENOUGH)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert [end.episode for end in ends[:4]] == [0, 1, 0, 1]


def test_messages_of_another_type_are_not_published(run: Path, ros_domain: int) -> None:
    report = replay(run, rate=1000, topics=["/torn", "/force"], wait=0)
    assert report.published == {"/force": 1}
    assert report.skipped == {"/torn": "its messages are not of the type that is installed here"}


def test_nothing_to_publish_is_an_error(run: Path, ros_domain: int) -> None:
    with pytest.raises(UserError, match=r"none of its topics can be published: /unknown: 'foreign_rig/msg/Move'"):
        replay(run, topics=["/unknown"], wait=0)
    with pytest.raises(UserError, match="--rate 0 must be more than 0"):
        replay(run, rate=0)
    assert not rclpy.ok()


def test_latched_topics_stay_latched() -> None:
    profiles = [("- durability: 1", 1), ("- durability: transient_local", 1), ("- durability: volatile", 2), ("", 2)]
    for text, durability in profiles:
        assert quality_of(RecordedTopic("/t", "a/msg/B", "", qos=text)).durability.value == durability
    assert quality_of(RecordedTopic("/t", "a/msg/B", "", qos=": [")).durability.value == 2


def test_message_classes_are_found_by_name() -> None:
    assert message_class("lift_ros/msg/Step") is msg.Step
    with pytest.raises(ImportError, match="Nothing has no definition below"):
        message_class("std_msgs/msg/Nothing")
