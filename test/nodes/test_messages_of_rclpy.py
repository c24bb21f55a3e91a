"""Our bytes are those of rclpy: any ROS node can talk to ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_samples import CASES, NOW, agree, make_step
from rclpy.serialization import deserialize_message, serialize_message

import lift_ros.msg as msg
from lift_ros.collection.exchange import Hold, Observation, Proposal, Query, Ready
from lift_ros.collection.records import Episode, Mode, Outcome, Source
from lift_ros.messages import MessageError, records
from lift_ros.messages.records import EpisodeEnd

each = pytest.mark.parametrize("name", CASES)
SENT: dict[str, Any] = {
    "Query": Query(0, 0, 0, np.zeros(2), False, Mode.COLLECT),
    "Command": Hold(0, 0),
    "Proposal": Proposal(0, 0, Source.AUGMENTOR, np.zeros(2)),
    "Receipt": Ready(0),
    "Episode": EpisodeEnd.of(Episode(0, 0, Mode.COLLECT, Outcome.REACHED, [], np.zeros(2))),
    "Step": make_step(),
    "Observation": Observation(0, 0, np.zeros(2)),
}


@each
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_rclpy_reads_what_we_write_and_we_read_what_it_writes(name: str, data: st.DataObject) -> None:
    strategy, encode, decode = CASES[name]
    record = data.draw(strategy)
    message = deserialize_message(encode(record), getattr(msg, name))
    assert agree(decode(bytes(serialize_message(message))), record)


def test_fields_lie_where_rclpy_expects_them() -> None:
    message: Any = deserialize_message(records.encode_step(make_step()), msg.Step)
    assert (message.episode, message.step, message.header.stamp.sec) == (3, 0, NOW // 10**9)
    assert list(message.observation) == [0.1, -0.2, 0.3]
    assert (message.draw, message.p, message.augmentations_left, message.model_hash) == (0.25, 0.5, 19, "ab" * 32)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("encoding", "bgr8", "one of rgb8"),
        ("data", bytes(11), "12 for 2 rows"),
        ("step", 3, "at least 6"),
        ("height", 0, "not 0"),
    ],
)
def test_received_image_is_checked(field: str, value: Any, named: str) -> None:
    message = _with_image(2, 2)
    setattr(message.image, field, value)
    with pytest.raises(MessageError, match=r"^image") as caught:
        records.decode_step(bytes(serialize_message(message)))
    assert named in str(caught.value)


def test_rows_with_padding_are_read() -> None:
    message = _with_image(2, 4)
    message.image.step = 16
    message.image.data = bytes(range(32))
    image = records.decode_step(bytes(serialize_message(message))).image
    assert image is not None
    assert image.reshape(2, 12).tolist() == [list(range(12)), list(range(16, 28))]


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("Query", "mode", 99),
        ("Command", "kind", 99),
        ("Proposal", "source", 99),
        ("Receipt", "kind", 99),
        ("Episode", "outcome", 99),
        ("Step", "source", 0),
        ("Step", "p", 2.0),
        ("Step", "draw", -0.5),
        ("Observation", "refusal", 10),
        ("Observation", "values", [float("nan")]),
        ("Observation", "reward", float("-inf")),
    ],
)
def test_what_a_careless_sender_sets_is_refused_by_name(name: str, field: str, value: Any) -> None:
    message: Any = deserialize_message(CASES[name][1](SENT[name]), getattr(msg, name))
    setattr(message, field, value)
    with pytest.raises(MessageError) as caught:
        CASES[name][2](bytes(serialize_message(message)))
    assert caught.value.field == field


def _with_image(height: int, width: int) -> Any:
    message: Any = deserialize_message(records.encode_step(make_step()), msg.Step)
    message.image.height, message.image.width, message.image.encoding = height, width, "rgb8"
    message.image.step, message.image.data = 3 * width, bytes(3 * width * height)
    return message
