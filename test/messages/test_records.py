"""Every record survives the way into bytes and back; what must not travel is refused, with field, value and limit."""

from __future__ import annotations

import contextlib
import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_samples import CASES, NOW, agree, make_step

from lift_ros.collection.exchange import Failed, Hold, Move, Observation, Proposal, Query, Ready, Refusal
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source
from lift_ros.errors import UserError
from lift_ros.messages import MessageError, records
from lift_ros.messages.definitions import constants
from lift_ros.messages.records import CommandKind, EpisodeEnd, ReceiptKind

each = pytest.mark.parametrize("name", CASES)


@each
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_record_returns_bit_for_bit(name: str, data: st.DataObject) -> None:
    strategy, encode, decode = CASES[name]
    record = data.draw(strategy)
    assert agree(decode(encode(record)), record)


@each
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_cut_off_messages_are_refused(name: str, data: st.DataObject) -> None:
    strategy, encode, decode = CASES[name]
    whole = encode(data.draw(strategy))
    with pytest.raises(MessageError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@each
@settings(max_examples=40, deadline=None)
@given(garbage=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_but_never_raise_anything_else(name: str, garbage: bytes) -> None:
    with contextlib.suppress(MessageError):
        CASES[name][2](b"\x00\x01\x00\x00" + garbage)


@each
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_changed_bytes_are_read_or_refused_but_never_raise_anything_else(name: str, data: st.DataObject) -> None:
    strategy, encode, decode = CASES[name]
    changed = bytearray(encode(data.draw(strategy)))
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MessageError):
        decode(bytes(changed))


@each
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_what_a_middleware_adds_behind_a_message_is_ignored(name: str, data: st.DataObject) -> None:
    strategy, encode, decode = CASES[name]
    record = data.draw(strategy)
    assert agree(decode(encode(record) + bytes(16)), record)


@pytest.mark.parametrize(
    ("message", "field", "kind"),
    [
        ("Step", "source", Source),
        ("Step", "rejection", Rejection),
        ("Proposal", "source", Source),
        ("Query", "mode", Mode),
        ("Episode", "mode", Mode),
        ("Episode", "outcome", Outcome),
        ("Observation", "refusal", Refusal),
        ("Command", "kind", CommandKind),
        ("Receipt", "kind", ReceiptKind),
    ],
)
def test_constants_of_messages_and_records_agree(message: str, field: str, kind: Any) -> None:
    assert constants(message)[field] == {member.value: member.name for member in kind}


def test_big_endian_messages_are_read() -> None:
    header = struct.pack(">iI", 0, 0) + struct.pack(">I", 1) + b"\0\0\0\0"
    body = struct.pack(">II", 7, 3) + b"\x02\0\0\0" + b"\0\0\0\0" + struct.pack(">Q", 0) + struct.pack(">I", 0)
    assert records.decode_command(b"\x00\x00\x00\x00" + header + body) == Hold(7, 3)


def test_unknown_encoding_is_refused() -> None:
    with pytest.raises(MessageError, match="plain CDR"):
        records.decode_command(b"\xff\xff\x00\x00" + bytes(40))


def test_received_arrays_are_own_copies() -> None:
    data = bytearray(records.encode_step(make_step(image=np.zeros((2, 2, 3), np.uint8))))
    step = records.decode_step(data)
    step.observation[0], step.image[0, 0, 0] = 99.0, 1
    data[:] = bytes(len(data))
    assert step.observation[1] == -0.2


def test_numbers_and_arrays_of_numpy_are_written_as_plain_ones() -> None:
    step = make_step(
        episode=np.int64(3),
        index=np.uint8(1),
        reward=np.float32(-0.5),
        observation=np.array([1, 2, 3], dtype=np.float32)[::-1],
    )
    read = records.decode_step(records.encode_step(step))
    assert (read.episode, read.index, read.reward, read.observation.tolist()) == (3, 1, -0.5, [3.0, 2.0, 1.0])
    assert read.observation.dtype == np.float64


def test_picture_has_the_stamp_of_its_message() -> None:
    data = records.encode_step(make_step(image=np.zeros((2, 2, 3), np.uint8)))
    assert data.count(struct.pack("<iI", *divmod(NOW, 10**9))) == 2


def test_time_of_arrival_can_stand_in_for_the_senders() -> None:
    data = records.encode_proposal(Proposal(0, 0, Source.AUGMENTOR, np.zeros(2), time_ns=5))
    assert records.decode_proposal(data).time_ns == 5
    assert records.decode_proposal(data, 7).time_ns == 7


def test_frame_travels_with_observations_and_token_with_receipts() -> None:
    assert b"\x04\0\0\0rig\0" in records.encode_observation(Observation(0, 0, np.zeros(1)), frame_id="rig")
    assert records.decode_receipt(records.encode_receipt(Ready(4, "token"), NOW)) == Ready(4, "token")


def test_long_reason_is_cut_visibly_and_fits() -> None:
    receipt = records.decode_receipt(records.encode_receipt(Failed("ü" * 300), NOW))
    assert isinstance(receipt, Failed)
    assert receipt.reason.endswith("…")
    assert len(receipt.reason.encode()) <= 256


def test_nul_in_a_reason_becomes_a_blank() -> None:
    episode = Episode(0, 0, Mode.COLLECT, Outcome.ABORTED, [], np.zeros(1), reason="a\0b")
    assert records.decode_episode(records.encode_episode(EpisodeEnd.of(episode))).episode.reason == "a b"


@pytest.mark.parametrize(
    ("field", "value", "limit"),
    [
        ("observation", np.array([math.nan]), "finite"),
        ("observation", np.array([math.inf, -math.inf]), "finite"),
        ("observation", np.zeros(65), "at most 64"),
        ("observation", np.zeros((2, 2)), "a vector"),
        ("observation", [1.0], "a vector"),
        ("action", np.array([0.0, math.nan]), "finite"),
        ("position", np.array([-math.inf]), "finite"),
        ("logging_proposal", np.zeros(65), "at most 64"),
        ("reward", math.inf, "finite"),
        ("draw", 1.5, "between 0.0 and 1.0"),
        ("p", math.nan, "between 0.0 and 1.0"),
        ("p", -0.1, "between 0.0 and 1.0"),
        ("episode", -1, "between 0 and 4294967295"),
        ("augmentations_left", 2**32, "between 0 and 4294967295"),
        ("source", 0, "1 (LOGGING_POLICY), 2 (AUGMENTOR)"),
        ("rejection", 13, "one of 0 (NONE)"),
        ("model_hash", "a" * 65, "at most 64"),
        ("model_hash", "a\0b", "text without NUL"),
        ("image", np.zeros((2, 2, 1), dtype=np.uint8), "of shape (height, width) or (height, width, 3)"),
        ("image", np.zeros((2, 2, 3)), "uint8, uint16 or float32"),
        ("image", np.zeros((0, 2, 3), dtype=np.uint8), "of shape (height, width) or (height, width, 3)"),
        ("image", np.full((2, 2), np.nan, dtype=np.float32), "finite values"),
    ],
)
def test_step_that_must_not_travel_is_refused(field: str, value: Any, limit: str) -> None:
    with pytest.raises(MessageError) as caught:
        records.encode_step(make_step(**{field: value}))
    assert caught.value.field == field
    assert limit in str(caught.value)
    assert isinstance(caught.value, UserError)


def test_time_before_the_epoch_is_refused() -> None:
    with pytest.raises(MessageError, match=r"header is -1"):
        records.encode_step(make_step(time_ns=-1))


def test_giant_vectors_do_not_pass_in_wishes_either() -> None:
    with pytest.raises(MessageError, match="action is 65 entries long, expected at most 64"):
        records.encode_command(Move(1, 2, np.zeros(65)), NOW)


def test_wishes_may_hold_anything() -> None:
    action = np.array([math.nan, math.inf])
    assert np.array_equal(records.decode_command(records.encode_command(Move(1, 2, action), NOW)).action, action, True)


def test_sizes_that_the_receiver_does_not_expect_are_refused() -> None:
    query = records.encode_query(Query(0, 0, 0, np.zeros(3), False, Mode.COLLECT), NOW)
    assert records.decode_query(query, 3).values.size == 3
    with pytest.raises(MessageError, match="values is 3 entries long, expected 2"):
        records.decode_query(query, 2)
