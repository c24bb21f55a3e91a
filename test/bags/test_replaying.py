from __future__ import annotations

from pathlib import Path

import pytest
from foreign_bag import STORE, nanoseconds, number
from sample_run import drive, write_run

from lift_ros.bags.mcap_records import RecordedMessage, RecordedTopic
from lift_ros.bags.replaying import choose_topics, in_time, recorded_messages, recorded_topics
from lift_ros.bags.writer import RunWriter
from lift_ros.errors import UserError

TOPIC = RecordedTopic("/t", "std_msgs/msg/Empty", "")


class FakeTime:
    """A clock that only moves when somebody sleeps, or works."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


def at(*seconds: float) -> list[RecordedMessage]:
    return [RecordedMessage(TOPIC, round(moment * 1e9), b"") for moment in seconds]


def play(
    messages: list[RecordedMessage], rate: float, longest_pause: float | None = None, work: float = 0.0
) -> list[float]:
    fake = FakeTime()
    for _ in in_time(messages, rate, longest_pause, fake.clock, fake.sleep):
        fake.now += work
    return fake.slept


def test_original_time_is_kept() -> None:
    assert play(at(5, 6, 6, 8.5), 1.0) == [1, 2.5]


def test_time_is_scaled() -> None:
    assert play(at(0, 1, 3), 4.0) == [0.25, 0.5]


def test_long_pauses_are_shortened() -> None:
    assert play(at(0, 1, 1000, 1001), 1.0, longest_pause=3) == [1, 3, 1]


def test_work_between_messages_does_not_add_up() -> None:
    assert play(at(0, 1, 2, 3), 1.0, work=0.25) == [0.75, 0.75, 0.75]


def test_late_messages_come_at_once() -> None:
    assert play(at(0, 1, 2), 1.0, work=5.0) == []


def test_time_running_backwards_is_no_wait() -> None:
    assert play(at(5, 1, 2), 1.0) == [1]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = write_run(tmp_path / "run", [drive(0, 3), drive(1, 2)])
    definition, _ = STORE.generate_msgdef("std_msgs/msg/Float64", ros_version=2)
    with RunWriter(path, {}, sync=False) as writer:
        data = bytes(STORE.serialize_cdr(number(1.5), "std_msgs/msg/Float64"))
        writer.write_other(RecordedTopic("/force", "std_msgs/msg/Float64", definition), data, nanoseconds(250))
        writer.write_episode(drive(2, 1))
    return path


def test_messages_come_in_order_over_all_files(run: Path) -> None:
    topics = recorded_topics(run)
    assert {name: topic.type_name for name, topic in topics.items()} == {
        "/lift/step": "lift_ros/msg/Step",
        "/lift/episode": "lift_ros/msg/Episode",
        "/force": "std_msgs/msg/Float64",
    }
    messages = list(recorded_messages(run, topics))
    assert [message.topic.name for message in messages].count("/lift/step") == 6
    assert [message.topic.name for message in messages].count("/lift/episode") == 3
    episodes = [message.topic.name for message in messages if message.topic.name != "/force"]
    assert episodes == ["/lift/step"] * 3 + ["/lift/episode"] + ["/lift/step"] * 2 + ["/lift/episode"] + [
        "/lift/step",
        "/lift/episode",
    ]


def test_only_chosen_topics(run: Path) -> None:
    chosen = choose_topics(run, ["/force"])
    assert [message.topic.name for message in recorded_messages(run, chosen)] == ["/force"]
    with pytest.raises(UserError, match="has no topic /forces; did you mean '/force'"):
        choose_topics(run, ["/forces"])


def test_one_file_is_a_run_of_one(run: Path) -> None:
    file = sorted(run.glob("*.mcap"))[1]
    assert len(list(recorded_messages(file, ["/lift/step"]))) == 2


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        recorded_topics(tmp_path / "absent")
    with pytest.raises(UserError, match="no finished .mcap file"):
        recorded_topics(tmp_path)
    (tmp_path / "bad.mcap").write_bytes(b"no bag")
    with pytest.raises(UserError, match="does not end like an MCAP file"):
        recorded_topics(tmp_path / "bad.mcap")
