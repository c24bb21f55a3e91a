"""What is guessed of a foreign bag's topics, and what is shown of those that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from foreign_bag import Entry, flag, header, joints, make, move, nanoseconds, number, picture, point, write_bag

from lift_ros.bags.importing import open_bag, propose_mapping, summarise_topics
from lift_ros.bags.importing.mapping import parse_mapping
from lift_ros.errors import UserError


def twist(seconds: float, x: float) -> object:
    vector = lambda value: make("geometry_msgs/msg/Vector3", x=value, y=0.0, z=0.0)  # noqa: E731
    content = make("geometry_msgs/msg/Twist", linear=vector(x), angular=vector(0.0))
    return make("geometry_msgs/msg/TwistStamped", header=header(seconds), twist=content)


def proposal(folder: Path, entries: list[Entry]) -> dict[str, object]:
    with open_bag(write_bag(folder / "bag", entries)) as bag:
        text = propose_mapping(bag, summarise_topics(bag))
    content = yaml.safe_load(text)
    parse_mapping(content)  # raises where it could not be imported
    return {**content, "comments": [line for line in text.splitlines() if line.startswith("#")]}


def regular(topic: str, message: object, count: int = 4, period: float = 0.1) -> list[Entry]:
    """Return a message again and again; one that is a function is asked for each moment."""
    moments = [period * k for k in range(count)]
    return [(topic, message(t) if callable(message) else message, nanoseconds(t)) for t in moments]


def test_velocities_and_targets_are_known_by_type_and_name(tmp_path: Path) -> None:
    place = regular("/tool", lambda t: point(t, t, 0.0))
    found = proposal(tmp_path, place + regular("/base/cmd_vel", lambda t: twist(t, t)))
    assert found["action"] == {"topic": "/base/cmd_vel", "field": "twist.linear.x", "meaning": "velocity"}
    assert found["position"] == {"topic": "/tool", "field": "point.x"}, "what never changes is left out"
    (tmp_path / "other").mkdir()
    found = proposal(tmp_path / "other", place + regular("/arm/target", lambda t: point(t, t, 0.0)))
    assert found["action"] == {"topic": "/arm/target", "field": "point.x", "meaning": "target"}


def test_without_a_command_actions_are_differences(tmp_path: Path) -> None:
    found = proposal(tmp_path, regular("/joints", lambda t: joints(t, a=t, b=2 * t)))
    assert found["action"] == "difference_of_positions"
    assert found["position"] == {"topic": "/joints", "fields": ["position[name=a]", "position[name=b]"]}
    assert found["observation"] == [found["position"]]


def test_pictures_flags_and_rewards_are_offered_as_comments(tmp_path: Path) -> None:
    pixels = np.zeros((2, 3, 3), dtype=np.uint8)
    others = (
        regular("/camera", lambda t: picture(t, pixels)) + regular("/done", flag(True)) + regular("/cost", number(1))
    )
    found = proposal(tmp_path, regular("/tool", lambda t: point(t, t, t)) + others)
    assert [entry["topic"] for entry in found["observation"]] == ["/tool"]  # type: ignore[index, attr-defined]
    comments = found["comments"]
    assert isinstance(comments, list)
    for line in (
        "# image: {topic: /camera}",
        "# a trigger: {topic: /done, field: data, equals: true}",
        "# reward: {topic: /cost, field: data}",
    ):
        assert line in comments


def test_a_topic_that_cannot_be_read_says_why_and_the_others_are_shown(tmp_path: Path) -> None:
    entries = [*regular("/tool", lambda t: point(t, t, t)), ("/srv/_service_event", b"\0" * 8, nanoseconds(0.0))]
    with open_bag(write_bag(tmp_path / "bag", entries)) as bag:
        topics = {topic.topic: topic for topic in summarise_topics(bag)}
    assert "cannot be used" in topics["/srv/_service_event"].content()
    assert topics["/tool"].messages == 4
    assert "point.x" in topics["/tool"].content()


def test_nothing_is_proposed_where_nothing_can_be_seen(tmp_path: Path) -> None:
    with (
        open_bag(write_bag(tmp_path / "bag", regular("/move", lambda t: move(t, 1.0)))) as bag,
        pytest.raises(UserError, match="no topic with numbers that a policy could see"),
    ):
        propose_mapping(bag, summarise_topics(bag))
