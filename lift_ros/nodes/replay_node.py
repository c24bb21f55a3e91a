"""Publishes a recorded run again: any topic whose message package is installed, byte for byte as it was recorded."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rclpy.duration import Duration
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from lift_ros.bags.mcap_records import RecordedMessage, RecordedTopic
from lift_ros.bags.replaying import choose_topics, in_time, recorded_messages
from lift_ros.errors import UserError
from lift_ros.graph.qos import quality
from lift_ros.nodes.executor import ros
from lift_ros.nodes.message_types import message_class
from lift_ros.untrusted import brief, parse_yaml

QUEUE = 1000
POLL_SECONDS = 0.05
LAST_WORDS_SECONDS = 5.0  # how long readers may take to confirm the last messages


@dataclass(slots=True)
class ReplayReport:
    """How many messages were published, and which topics could not be and why."""

    published: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def quality_of(topic: RecordedTopic) -> QoSProfile:
    """Return a profile that reaches every reader and keeps what was latched latched."""
    try:
        profiles = parse_yaml(topic.qos)
    except ValueError:
        profiles = []
    listed = profiles if isinstance(profiles, list) else []
    durabilities = [profile.get("durability") for profile in listed if isinstance(profile, dict)]
    latched = bool(durabilities) and all(entry in (1, "transient_local") for entry in durabilities)
    return quality(QUEUE, latched=latched)


class ReplayNode(Node):
    """Holds one publisher per recorded topic."""

    def __init__(self, topics: Iterable[RecordedTopic], prefix: str = "") -> None:
        super().__init__("replay")
        self.report = ReplayReport()
        self._talkers: dict[str, Publisher[Any]] = {}
        for topic in topics:
            try:
                kind = message_class(topic.type_name)
                self._talkers[topic.name] = self.create_publisher(kind, prefix + topic.name, quality_of(topic))
            except ImportError as error:
                self.report.skipped[topic.name] = f"{brief(topic.type_name)} is not installed ({error})"
                continue
            except (InvalidTopicNameException, ValueError) as error:
                self.report.skipped[topic.name] = f"{brief(prefix + topic.name)} is no name of a topic ({error})"
                continue
            self.report.published[topic.name] = 0

    def wait_for_readers(self, seconds: float) -> None:
        """Wait until somebody listens to each of the topics, but not longer than that."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not all(map(Publisher.get_subscription_count, self._talkers.values())):
            time.sleep(POLL_SECONDS)

    def publish(self, message: RecordedMessage) -> None:
        """Publish one recorded message as it is; the first of each topic is decoded to see that types agree."""
        name, data = message.topic.name, bytes(message.data)
        talker = self._talkers.get(name)
        if talker is None:
            return
        if self.report.published[name] == 0:
            try:
                deserialize_message(data, talker.msg_type)
            except Exception:  # rmw raises different errors for different middlewares
                self.report.skipped[name] = "its messages are not of the type that is installed here"
                del self.report.published[name]
                self.destroy_publisher(self._talkers.pop(name))
                return
        talker.publish(data)
        self.report.published[name] += 1

    def flush(self) -> None:
        """Wait until readers have confirmed what they were sent."""
        for talker in self._talkers.values():
            talker.wait_for_all_acked(Duration(seconds=LAST_WORDS_SECONDS))


def replay(
    run: Path,
    *,
    rate: float = 1.0,
    topics: list[str] | None = None,
    loop: bool = False,
    prefix: str = "",
    wait: float = 1.0,
    longest_pause: float | None = None,
) -> ReplayReport:
    """Publish a run's topics in original or scaled time, once or until interrupted."""
    if not rate > 0:
        raise UserError(f"--rate {rate:g} must be more than 0; 2 is twice the original speed")
    chosen = choose_topics(run, topics)
    with ros():
        node = ReplayNode(chosen.values(), prefix)
        try:
            if not node.report.published:
                reasons = "; ".join(f"{name}: {reason}" for name, reason in node.report.skipped.items())
                raise UserError(f"run {run}: none of its topics can be published: {reasons or 'it has none'}")
            node.wait_for_readers(wait)
            while True:
                for message in in_time(recorded_messages(run, chosen), rate, longest_pause):
                    node.publish(message)
                node.flush()
                if not loop:
                    return node.report
        finally:
            node.destroy_node()
