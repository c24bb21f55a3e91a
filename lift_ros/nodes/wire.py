"""The messages of the loop straight to and from the bytes that DDS carries, many times faster than through objects.

`rclpy` reads and writes the same bytes (a test says so), so any ROS node can talk to ours. What is checked, and what
is said when it is wrong, is the same as in `convert`, which stays the reference.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from rclpy.serialization import deserialize_message, serialize_message

import lift_ros.msg as msg
from lift_ros.array_types import FloatArray
from lift_ros.collection.exchange import Hold, Move, Observation, Proposal, Query, Receipt, Refusal, Reset
from lift_ros.collection.notices import Failed, Ready
from lift_ros.collection.records import Mode, Rejection, Source, Step
from lift_ros.nodes import convert
from lift_ros.nodes.convert import (
    CONTEXT_LIMIT,
    HASH_LIMIT,
    REASON_LIMIT,
    VECTOR_LIMIT,
    CommandKind,
    MessageError,
    ReceiptKind,
    shorten,
)

Picture: TypeAlias = npt.NDArray[np.uint8]
Fields: TypeAlias = tuple[tuple[str, str], ...]

LITTLE_ENDIAN = b"\x00\x01\x00\x00"
_NANO = 1_000_000_000
_NOTHING = np.empty(0)

# Kinds of fields: header, vector of finite numbers, wish (a vector that may hold NaN), context, text, picture;
# all others are codes of the module struct.
_HEADER, _VECTOR, _WISH, _CONTEXT, _TEXT, _PICTURE = "header", "vector", "wish", "context", "text", "picture"

OBSERVATION: Fields = (
    ("header", _HEADER),
    ("episode", "I"),
    ("step", "I"),
    ("values", _VECTOR),
    ("position", _VECTOR),
    ("goal", _VECTOR),
    ("context", _CONTEXT),
    ("reward", "d"),
    ("terminated", "B"),
    ("refusal", "B"),
    ("image", _PICTURE),
)
QUERY: Fields = (
    ("header", _HEADER),
    ("episode", "I"),
    ("step", "I"),
    ("seed", "Q"),
    ("values", _VECTOR),
    ("handoff", "B"),
    ("mode", "B"),
    ("image", _PICTURE),
)
PROPOSAL: Fields = (
    ("header", _HEADER),
    ("episode", "I"),
    ("step", "I"),
    ("source", "B"),
    ("action", _WISH),
    ("model_hash", _TEXT),
)
COMMAND: Fields = (
    ("header", _HEADER),
    ("episode", "I"),
    ("step", "I"),
    ("kind", "B"),
    ("seed", "Q"),
    ("action", _WISH),
)
RECEIPT: Fields = (("header", _HEADER), ("kind", "B"), ("episode", "I"), ("step", "I"), ("reason", _TEXT))
STEP: Fields = (
    ("header", _HEADER),
    ("episode", "I"),
    ("step", "I"),
    ("observation", _VECTOR),
    ("position", _VECTOR),
    ("action", _VECTOR),
    ("reward", "d"),
    ("source", "B"),
    ("logging_proposal", _WISH),
    ("augmentor_proposal", _WISH),
    ("rejection", "B"),
    ("draw", "d"),
    ("p", "d"),
    ("augmentations_left", "I"),
    ("model_hash", _TEXT),
    ("image", _PICTURE),
)


# --- writing -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _layout(fields: Fields, sizes: tuple[int, ...]) -> struct.Struct:
    """Return how a message is packed whose vectors and texts have these sizes, with CDR's alignment."""
    parts, offset, remaining = ["<4s"], 0, list(sizes)

    def add(code: str, alignment: int) -> None:
        nonlocal offset
        padding = -offset % alignment
        parts.append(f"{padding}x{code}" if padding else code)
        offset += padding + struct.calcsize("<" + code)

    def add_text() -> None:
        add("I", 4)
        add(f"{remaining.pop(0)}s", 1)

    for _, kind in fields:
        if kind == _HEADER:
            add("i", 4)
            add("I", 4)
            add_text()
        elif kind in (_VECTOR, _WISH, _CONTEXT):
            add("I", 4)
            if count := remaining.pop(0):
                add(f"{count}d", 8)
        elif kind == _TEXT:
            add_text()
        elif kind == _PICTURE:
            for code in ("i", "I"):
                add(code, 4)
            add_text()
            for code in ("I", "I"):
                add(code, 4)
            add_text()
            add("B", 1)
            add("I", 4)
            add("I", 4)
        else:
            add(kind, struct.calcsize("<" + kind))
    return struct.Struct("".join(parts))


def _encode(fields: Fields, values: tuple[Any, ...]) -> bytes:
    arguments: list[Any] = [LITTLE_ENDIAN]
    sizes: list[int] = []
    pixels = b""
    for (name, kind), value in zip(fields, values, strict=True):
        if kind in (_VECTOR, _WISH, _CONTEXT):
            numbers = _numbers(name, kind, value)
            sizes.append(len(numbers))
            arguments.append(len(numbers))
            arguments += numbers
        elif kind == _HEADER:
            text = value[1].encode() + b"\0"
            sizes.append(len(text))
            arguments += (*divmod(value[0], _NANO), len(text), text)
        elif kind == _TEXT:
            text = _encoded_text(name, value)
            sizes.append(len(text))
            arguments += (len(text), text)
        elif kind == _PICTURE:
            pixels = _add_picture(arguments, sizes, name, value)
        else:
            arguments.append(value)
    try:
        return _layout(fields, tuple(sizes)).pack(*arguments) + pixels
    except struct.error as error:
        raise MessageError("a number", error, "what its field can hold") from error


def _numbers(name: str, kind: str, value: FloatArray) -> list[float]:
    limit = CONTEXT_LIMIT if kind == _CONTEXT else VECTOR_LIMIT
    if value.ndim != 1:
        raise MessageError(name, f"an array of shape {value.shape}", "a vector")
    numbers: list[float] = value.tolist()
    if len(numbers) > limit:
        raise MessageError(name, f"{len(numbers)} entries long", f"at most {limit}")
    total = sum(numbers)
    if kind != _WISH and total - total != 0.0 and not np.isfinite(value).all():
        raise MessageError(name, numbers, "finite entries")
    return numbers


def _encoded_text(name: str, value: str) -> bytes:
    limit = REASON_LIMIT if name == "reason" else HASH_LIMIT
    text = value.encode()
    if len(text) > limit:
        raise MessageError(name, f"{len(text)} bytes long", f"at most {limit}")
    return text + b"\0"


def _add_picture(arguments: list[Any], sizes: list[int], name: str, image: Picture | None) -> bytes:
    if image is None:
        sizes += (1, 1)
        arguments += (0, 0, 1, b"\0", 0, 0, 1, b"\0", 0, 0, 0)
        return b""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise MessageError(name, f"{image.dtype} of shape {image.shape}", "uint8 of shape (height, width, 3)")
    height, width, _ = image.shape
    sizes += (1, 5)
    arguments += (0, 0, 1, b"\0", height, width, 5, b"rgb8\0", 0, 3 * width, image.size)
    return image.tobytes()


# --- reading -------------------------------------------------------------------------------------------------------

_UNPACK: dict[str, tuple[Callable[..., tuple[Any, ...]], int]] = {
    code: (struct.Struct("<" + code).unpack_from, struct.calcsize("<" + code)) for code in ("B", "I", "Q", "d")
}
_PAIR = struct.Struct("<iI").unpack_from
_LENGTH = struct.Struct("<I").unpack_from
_SIZE = struct.Struct("<II").unpack_from


class _NotPlain(Exception):
    """The bytes are in another encoding than plain little-endian CDR."""


def _decode(fields: Fields, data: bytes) -> list[Any]:
    """Return the fields in their order; the header as time in nanoseconds."""
    if data[:2] != LITTLE_ENDIAN[:2]:
        raise _NotPlain
    view = memoryview(data)[4:]
    values: list[Any] = []
    offset = 0
    try:
        for name, kind in fields:
            if kind in _UNPACK:
                unpack, size = _UNPACK[kind]
                offset += -offset % size
                values.append(unpack(view, offset)[0])
                offset += size
            elif kind in (_VECTOR, _WISH, _CONTEXT):
                vector, offset = _read_vector(view, offset, name, kind)
                values.append(vector)
            elif kind == _HEADER:
                seconds, nanoseconds = _PAIR(view, offset)
                _, offset = _read_text(view, offset + 8, "frame_id", len(data))
                values.append(seconds * _NANO + nanoseconds)
            elif kind == _TEXT:
                text, offset = _read_text(view, offset, name, REASON_LIMIT if name == "reason" else HASH_LIMIT)
                values.append(text)
            else:
                picture, offset = _read_picture(view, offset, name)
                values.append(picture)
    except struct.error:
        raise MessageError(name, f"cut off after {len(data)} bytes", "a whole message") from None
    return values


def _read_vector(view: memoryview, offset: int, name: str, kind: str) -> tuple[FloatArray, int]:
    offset += -offset % 4
    (count,) = _LENGTH(view, offset)
    offset += 4
    if not count:
        return _NOTHING.copy(), offset
    limit = CONTEXT_LIMIT if kind == _CONTEXT else VECTOR_LIMIT
    if count > limit:
        raise MessageError(name, f"{count} entries long", f"at most {limit}")
    offset += -offset % 8
    end = offset + 8 * count
    if end > len(view):
        raise MessageError(name, f"cut off after {len(view) + 4} bytes", "a whole message")
    vector = np.frombuffer(view, "<f8", count, offset).astype(np.float64)
    total = sum(vector.tolist())
    if kind != _WISH and total - total != 0.0 and not np.isfinite(vector).all():
        raise MessageError(name, vector.tolist(), "finite entries")
    return vector, end


def _read_text(view: memoryview, offset: int, name: str, limit: int) -> tuple[str, int]:
    offset += -offset % 4
    (size,) = _LENGTH(view, offset)
    end = offset + 4 + size
    if size > limit + 1:
        raise MessageError(name, f"{size - 1} bytes long", f"at most {limit}")
    if end > len(view):
        raise MessageError(name, f"cut off after {len(view) + 4} bytes", "a whole message")
    if size <= 1:
        return "", end
    try:
        text = str(view[offset + 4 : end - 1], "utf-8")
    except UnicodeDecodeError:
        raise MessageError(name, "not UTF-8", "text") from None
    if "\0" in text or view[end - 1]:
        raise MessageError(name, repr(text), "text that ends with its only NUL")
    return text, end


def _read_picture(view: memoryview, offset: int, name: str) -> tuple[Picture | None, int]:
    offset += -offset % 4
    _, offset = _read_text(view, offset + 8, name, len(view))
    offset += -offset % 4
    height, width = _SIZE(view, offset)
    encoding, offset = _read_text(view, offset + 8, f"{name}.encoding", len(view))
    offset += 1
    offset += -offset % 4
    step, size = _SIZE(view, offset)
    offset += 8
    if size > len(view) - offset:
        raise MessageError(f"{name}.data", f"cut off after {len(view) + 4} bytes", "a whole message")
    if not width:
        return None, offset + size
    if encoding != "rgb8":
        raise MessageError(f"{name}.encoding", repr(encoding), "'rgb8'")
    if step < 3 * width:
        raise MessageError(f"{name}.step", step, f"at least {3 * width} for width {width}")
    if height == 0 or size != step * height:
        expected = f"{step * height} for {height} rows of {step} bytes, not 0"
        raise MessageError(f"{name}.data", f"{size} bytes long", expected)
    rows = np.frombuffer(view, np.uint8, size, offset).reshape(height, step)
    return rows[:, : 3 * width].reshape(height, width, 3).copy(), offset + size


def _decoded(kind: type, fields: Fields, data: bytes) -> list[Any]:
    """Return the fields of a message in whatever encoding it came."""
    try:
        return _decode(fields, data)
    except _NotPlain:
        return _decode(fields, _plain(kind, data))


def _plain(kind: type, data: bytes) -> bytes:
    """Return a message of another encoding as plain little-endian CDR, by way of objects."""
    try:
        return bytes(serialize_message(deserialize_message(data, kind)))
    except Exception as error:  # what DDS raises for bytes it cannot read is its own affair
        raise MessageError("the message", "in an unknown encoding", "CDR") from error


# --- the messages --------------------------------------------------------------------------------------------------


def encode_observation(observation: Observation, frame_id: str = "") -> bytes:
    """Return what the plant reports."""
    o = observation
    convert.real("reward", o.reward)
    header = (o.time_ns, frame_id)
    vectors = (o.values, o.position, o.goal, o.context)
    return _encode(OBSERVATION, (header, o.episode, o.step, *vectors, o.reward, o.terminated, o.refusal, o.image))


def decode_observation(data: bytes, time_ns: int) -> Observation:
    """Return what the plant reports, received at `time_ns`."""
    _, episode, step, values, position, goal, context, reward, terminated, refusal, image = _decoded(
        msg.Observation, OBSERVATION, data
    )
    return Observation(
        episode,
        step,
        values,
        position,
        goal,
        context,
        convert.real("reward", reward),
        terminated != 0,
        convert.constant("refusal", refusal, Refusal),
        image,
        time_ns,
    )


def encode_query(query: Query, time_ns: int) -> bytes:
    """Return a question asked at `time_ns`."""
    q = query
    return _encode(QUERY, ((time_ns, ""), q.episode, q.step, q.seed, q.values, q.handoff, q.mode, q.image))


def decode_query(data: bytes, size: int | None = None) -> Query:
    """Return a question; `size` is what the receiver expects, where it knows."""
    _, episode, step, seed, values, handoff, mode, image = _decoded(msg.Query, QUERY, data)
    if size is not None and values.size != size:
        raise MessageError("values", f"{values.size} entries long", f"{size}")
    return Query(episode, step, seed, values, handoff != 0, convert.constant("mode", mode, Mode), image)


def encode_proposal(proposal: Proposal) -> bytes:
    """Return an answer."""
    p = proposal
    return _encode(PROPOSAL, ((p.time_ns, ""), p.episode, p.step, p.source, p.action, p.model_hash))


def decode_proposal(data: bytes, time_ns: int) -> Proposal:
    """Return an answer, received at `time_ns`."""
    _, episode, step, source, action, model_hash = _decoded(msg.Proposal, PROPOSAL, data)
    return Proposal(episode, step, convert.constant("source", source, Source), action, model_hash, time_ns)


def encode_command(command: Reset | Move | Hold, time_ns: int) -> bytes:
    """Return a command given at `time_ns`."""
    header = (time_ns, "")
    match command:
        case Move():
            values = (header, command.episode, command.step, CommandKind.MOVE, 0, command.action)
        case Reset():
            values = (header, command.episode, 0, CommandKind.RESET, command.seed, _NOTHING)
        case Hold():
            values = (header, command.episode, command.step, CommandKind.HOLD, 0, _NOTHING)
    return _encode(COMMAND, values)


def decode_command(data: bytes) -> Reset | Move | Hold:
    """Return a command."""
    _, episode, step, number, seed, action = _decoded(msg.Command, COMMAND, data)
    match convert.constant("kind", number, CommandKind):
        case CommandKind.MOVE:
            return Move(episode, step, action)
        case CommandKind.RESET:
            return Reset(episode, seed)
        case CommandKind.HOLD:
            return Hold(episode, step)


def encode_receipt(receipt: Ready | Receipt | Failed, time_ns: int, frame_id: str = "") -> bytes:
    """Return what the recorder says at `time_ns`."""
    header = (time_ns, frame_id)
    match receipt:
        case Ready():
            return _encode(RECEIPT, (header, ReceiptKind.READY, receipt.episode, 0, ""))
        case Failed():
            return _encode(RECEIPT, (header, ReceiptKind.FAILED, receipt.episode, 0, shorten(receipt.reason)))
        case Receipt(step=None):
            return _encode(RECEIPT, (header, ReceiptKind.EPISODE, receipt.episode, 0, ""))
        case Receipt():
            return _encode(RECEIPT, (header, ReceiptKind.STEP, receipt.episode, receipt.step, ""))


def decode_receipt(data: bytes, time_ns: int) -> Ready | Receipt | Failed:
    """Return what the recorder says, received at `time_ns`."""
    _, number, episode, step, reason = _decoded(msg.Receipt, RECEIPT, data)
    match convert.constant("kind", number, ReceiptKind):
        case ReceiptKind.STEP:
            return Receipt(episode, step, time_ns)
        case ReceiptKind.EPISODE:
            return Receipt(episode, None, time_ns)
        case ReceiptKind.READY:
            return Ready(episode)
        case ReceiptKind.FAILED:
            return Failed(reason, episode)


def encode_step(step: Step) -> bytes:
    """Return an executed step."""
    s = step
    convert.real("reward", s.reward)
    convert.real("draw", s.draw, low=0.0, high=1.0)
    convert.real("p", s.p, low=0.0, high=1.0, unknown=False)
    made = (s.observation, s.position, s.action, s.reward, s.source)
    proposed = (s.logging_proposal, s.augmentor_proposal, s.rejection, s.draw, s.p, s.augmentations_left)
    return _encode(STEP, ((s.time_ns, ""), s.episode, s.index, *made, *proposed, s.model_hash, s.image))


def decode_step(data: bytes) -> Step:
    """Return an executed step."""
    time_ns, episode, index, observation, position, action, reward, source, *rest = _decoded(msg.Step, STEP, data)
    logging_proposal, augmentor_proposal, rejection, draw, p, left, model_hash, image = rest
    return Step(
        episode,
        index,
        time_ns,
        observation,
        action,
        convert.constant("source", source, Source),
        position,
        convert.real("reward", reward),
        logging_proposal,
        augmentor_proposal,
        convert.constant("rejection", rejection, Rejection),
        convert.real("draw", draw, low=0.0, high=1.0),
        convert.real("p", p, low=0.0, high=1.0, unknown=False),
        left,
        model_hash,
        image,
    )
