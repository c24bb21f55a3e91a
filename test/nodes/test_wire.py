"""The fast way to bytes and back is the way of `convert` and `rclpy`, for good messages and bad ones."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rclpy.serialization import deserialize_message, serialize_message

import lift_ros.msg as msg
from lift_ros.collection.exchange import Hold, Move, Observation, Proposal, Query, Receipt, Refusal, Reset
from lift_ros.collection.notices import Failed, Ready
from lift_ros.collection.records import Mode, Rejection, Source, Step
from lift_ros.nodes import convert, wire
from lift_ros.nodes.convert import MessageError

NOW = 1_794_800_000_123_456_789


def vectors(limit: int = 64, **options: Any) -> st.SearchStrategy[Any]:
    return arrays(np.float64, st.integers(0, limit), elements=st.floats(**options))


FINITE = {"allow_nan": False, "allow_infinity": False}
finite, wishes = vectors(9, **FINITE), vectors(9)
u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
numbers = st.floats(allow_infinity=False)
shares = st.floats(0, 1)
hashes = st.text("0123456789abcdef", max_size=64)
pictures = st.none() | st.tuples(st.integers(1, 4), st.integers(1, 4), st.just(3)).flatmap(
    lambda shape: arrays(np.uint8, shape)
)

observations = st.builds(
    Observation,
    u32,
    u32,
    finite,
    finite,
    finite,
    vectors(70, **FINITE),
    numbers,
    st.booleans(),
    st.sampled_from(Refusal),
    pictures,
    st.just(NOW),
)
queries = st.builds(Query, u32, u32, u64, finite, st.booleans(), st.sampled_from(Mode), pictures)
proposals = st.builds(Proposal, u32, u32, st.sampled_from(Source), wishes, hashes, st.just(NOW))
commands = st.builds(Move, u32, u32, wishes) | st.builds(Reset, u32, u64) | st.builds(Hold, u32, u32)
receipts = (
    st.builds(Ready, u32)
    | st.builds(Failed, st.text(max_size=300).filter(lambda text: "\0" not in text), u32)
    | st.builds(Receipt, u32, st.none() | u32, st.just(NOW))
)
steps = st.builds(
    Step,
    u32,
    u32,
    st.just(NOW),
    finite,
    finite,
    st.sampled_from(Source),
    finite,
    numbers,
    wishes,
    wishes,
    st.sampled_from(Rejection),
    shares | st.just(float("nan")),
    shares,
    u32,
    hashes,
    pictures,
)

Case = tuple[Any, type, Callable[[Any], bytes], Callable[[Any], Any], Callable[[bytes], Any], Callable[[Any], Any]]
CASES: dict[str, Case] = {
    # content, kind, fast encoder, its reference, fast decoder, its reference
    "observation": (
        observations,
        msg.Observation,
        wire.encode_observation,
        convert.observation_to_message,
        lambda data: wire.decode_observation(data, NOW),
        lambda message: convert.observation_from_message(message, NOW),
    ),
    "query": (
        queries,
        msg.Query,
        lambda query: wire.encode_query(query, NOW),
        lambda query: convert.query_to_message(query, NOW),
        wire.decode_query,
        convert.query_from_message,
    ),
    "proposal": (
        proposals,
        msg.Proposal,
        wire.encode_proposal,
        convert.proposal_to_message,
        lambda data: wire.decode_proposal(data, NOW),
        lambda message: convert.proposal_from_message(message, NOW),
    ),
    "command": (
        commands,
        msg.Command,
        lambda command: wire.encode_command(command, NOW),
        lambda command: convert.command_to_message(command, NOW),
        wire.decode_command,
        convert.command_from_message,
    ),
    "receipt": (
        receipts,
        msg.Receipt,
        lambda receipt: wire.encode_receipt(receipt, NOW),
        lambda receipt: convert.receipt_to_message(receipt, NOW),
        lambda data: wire.decode_receipt(data, NOW),
        lambda message: convert.receipt_from_message(message, NOW),
    ),
    "step": (
        steps,
        msg.Step,
        wire.encode_step,
        convert.step_to_message,
        wire.decode_step,
        convert.step_from_message,
    ),
}
each = pytest.mark.parametrize("name", CASES)


def alike(first: Any, second: Any) -> bool:
    """Compare two dataclasses field by field and bit by bit."""
    if type(first) is not type(second):
        return False
    return all(repr(getattr(first, name)) == repr(getattr(second, name)) for name in type(first).__slots__)


@each
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rclpy_reads_our_bytes_as_the_message_of_convert(name: str, data: st.DataObject) -> None:
    strategy, kind, encode, to_message, _, _ = CASES[name]
    content = data.draw(strategy)
    assert repr(deserialize_message(encode(content), kind)) == repr(to_message(content))


@each
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_bytes_of_rclpy_are_read_as_convert_reads_them(name: str, data: st.DataObject) -> None:
    strategy, _, _, to_message, decode, from_message = CASES[name]
    message = to_message(data.draw(strategy))
    assert alike(decode(bytes(serialize_message(message))), from_message(message))


@each
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_cut_off_messages_are_refused(name: str, data: st.DataObject) -> None:
    strategy, _, encode, _, decode, _ = CASES[name]
    whole = encode(data.draw(strategy))
    with pytest.raises(MessageError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@each
@settings(max_examples=100, deadline=None)
@given(garbage=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_but_never_raise_anything_else(name: str, garbage: bytes) -> None:
    decode = CASES[name][4]
    with contextlib.suppress(MessageError):
        decode(b"\x00\x01\x00\x00" + garbage)


@each
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_changed_bytes_are_read_as_rclpy_and_convert_read_them(name: str, data: st.DataObject) -> None:
    strategy, kind, encode, _, decode, from_message = CASES[name]
    changed = bytearray(encode(data.draw(strategy)))
    changed[data.draw(st.integers(4, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        ours = decode(bytes(changed))
    except MessageError:
        return
    theirs = from_message(deserialize_message(bytes(changed), kind))
    assert alike(ours, theirs)


def test_other_encodings_are_read_by_way_of_objects() -> None:
    header = struct.pack(">iI", 0, 0) + struct.pack(">I", 1) + b"\0\0\0\0"
    body = struct.pack(">II", 7, 3) + b"\x02\0\0\0" + b"\0\0\0\0" + struct.pack(">Q", 0) + struct.pack(">I", 0)
    big_endian = b"\x00\x00\x00\x00" + header + body
    assert alike(wire.decode_command(big_endian), Hold(7, 3))


def test_unknown_encoding_is_refused() -> None:
    with pytest.raises(MessageError):
        wire.decode_command(b"\xff\xff\x00\x00" + bytes(40))


@pytest.mark.parametrize(
    ("encode", "content", "field"),
    [
        (wire.encode_observation, Observation(0, 0, np.array([np.nan])), "values"),
        (wire.encode_observation, Observation(0, 0, np.zeros(65)), "values"),
        (wire.encode_observation, Observation(0, 0, np.zeros((2, 2))), "values"),
        (wire.encode_observation, Observation(0, 0, np.zeros(2), reward=float("inf")), "reward"),
        (wire.encode_observation, Observation(0, 0, np.zeros(2), image=np.zeros((2, 2), np.uint8)), "image"),
        (wire.encode_observation, Observation(-1, 0, np.zeros(2)), "number"),
        (wire.encode_proposal, Proposal(0, 0, Source.AUGMENTOR, np.zeros(2), "x" * 65), "model_hash"),
        (wire.encode_step, Step(0, 0, NOW, np.zeros(1), np.zeros(1), Source.AUGMENTOR, p=2.0), "p"),
    ],
)
def test_what_a_message_cannot_carry_is_not_sent(encode: Callable[[Any], bytes], content: Any, field: str) -> None:
    with pytest.raises(MessageError, match=field):
        encode(content)


def test_sizes_that_the_receiver_does_not_expect_are_refused() -> None:
    query = wire.encode_query(Query(0, 0, 0, np.zeros(3), False, Mode.COLLECT), NOW)
    assert wire.decode_query(query, 3).values.size == 3
    with pytest.raises(MessageError, match="values is 3 entries long, expected 2"):
        wire.decode_query(query, 2)
