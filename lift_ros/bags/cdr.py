"""Step and Episode to and from CDR, the bytes that `rmw` would write for the same messages."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray
from lift_ros.bags.faults import Malformed
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source, Step
from lift_ros.errors import UserError

MAX_VALUES = 64
MAX_CONTEXT = 4096
MAX_HASH = 64
MAX_REASON = 256
_LITTLE_ENDIAN = b"\x00\x01\x00\x00"
_NANO = 1_000_000_000
_INFINITE = (math.inf, -math.inf)

# An MCAP message record up to its data: opcode, length, channel, sequence, log time, publish time. It is packed in
# one call with the message because packing is most of what writing a step costs.
ENVELOPE = "BQHIQQ"
MESSAGE_OPCODE = 5
Envelope = tuple[int, int, int]  # channel, sequence, time in nanoseconds


@dataclass(slots=True)
class EpisodeEnd:
    """An `Episode.msg`: the episode without its steps, and what it says about them."""

    episode: Episode
    steps: int
    augmentations: int
    episode_return: float


class _Layout:
    """Builds a struct format with CDR's alignment, which counts from behind the four bytes of encapsulation."""

    def __init__(self, enveloped: bool) -> None:
        self.parts = ["<", ENVELOPE if enveloped else "", "4s"]
        self.offset = 0

    def add(self, code: str, size: int, alignment: int) -> None:
        padding = -self.offset % alignment
        if padding:
            self.parts.append(f"{padding}x")
        self.parts.append(code)
        self.offset += padding + size

    def scalar(self, code: str) -> None:
        size = struct.calcsize("<" + code)
        self.add(code, size, size)

    def sequence(self, count: int) -> None:
        self.scalar("I")
        if count:
            self.add(f"{count}d", 8 * count, 8)

    def string(self, size: int) -> None:
        self.scalar("I")
        self.add(f"{size}s", size, 1)

    def stamp(self) -> None:
        self.scalar("i")
        self.scalar("I")

    def image(self, encoding_size: int) -> None:
        self.stamp()
        self.string(1)
        self.scalar("I")
        self.scalar("I")
        self.string(encoding_size)
        self.scalar("B")
        self.scalar("I")
        self.scalar("I")

    def build(self) -> struct.Struct:
        return struct.Struct("".join(self.parts))


@lru_cache(maxsize=256)
def _step_struct(enveloped: bool, sizes: tuple[int, int, int, int, int], hash_size: int, image: bool) -> struct.Struct:
    names = ("observation", "position", "action", "logging_proposal", "augmentor_proposal")
    for name, count in zip(names, sizes, strict=True):
        _check_size(name, count, MAX_VALUES)
    layout = _Layout(enveloped)
    layout.stamp()
    layout.string(1)
    layout.scalar("I")
    layout.scalar("I")
    for count in sizes[:3]:
        layout.sequence(count)
    layout.scalar("d")
    layout.scalar("B")
    for count in sizes[3:]:
        layout.sequence(count)
    layout.scalar("B")
    layout.scalar("d")
    layout.scalar("d")
    layout.scalar("I")
    layout.string(hash_size)
    layout.image(5 if image else 1)
    return layout.build()


@lru_cache(maxsize=256)
def _episode_struct(enveloped: bool, sizes: tuple[int, ...], reason_size: int, image: bool) -> struct.Struct:
    names = ("final_observation", "final_position", "goal", "context")
    for name, count in zip(names, sizes, strict=True):
        _check_size(name, count, MAX_CONTEXT if name == "context" else MAX_VALUES)
    layout = _Layout(enveloped)
    layout.stamp()
    layout.string(1)
    layout.stamp()
    layout.scalar("I")
    layout.scalar("Q")
    layout.scalar("B")
    layout.scalar("B")
    layout.string(reason_size)
    layout.scalar("I")
    layout.scalar("I")
    layout.scalar("d")
    for count in sizes:
        layout.sequence(count)
    layout.image(5 if image else 1)
    return layout.build()


def _check_size(name: str, count: int, limit: int) -> None:
    if count > limit:
        raise UserError(
            f"{name} has {count} values and the message holds at most {limit}. Record larger data on another topic."
        )


def _check_finite(**arrays: FloatArray) -> None:
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise UserError(
                f"{name} is {values.tolist()}; bags hold finite values only. Stop the episode when a sensor fails."
            )


def _check_vectors(record: Step | Episode) -> None:
    """Name the array that does not fit; called when packing has failed."""
    for name in type(record).__slots__:
        values = getattr(record, name)
        if isinstance(values, np.ndarray) and values.ndim != 1 and not name.endswith("image"):
            raise UserError(f"{name} has shape {values.shape}; a message holds vectors. Flatten it.")


def _sequence(arguments: list[Any], values: list[float]) -> None:
    arguments.append(len(values))
    arguments += values


def _image_fields(
    arguments: list[Any], stamp: tuple[int, int], image: npt.NDArray[np.uint8] | None
) -> bytes | memoryview:
    """Append the fields before the pixels and return the pixels."""
    if image is None:
        arguments += (*stamp, 1, b"\0", 0, 0, 1, b"\0", 0, 0, 0)
        return b""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise UserError(
            f"an image is an array of {image.dtype} with shape {image.shape}; a step holds rgb8, that is uint8 and "
            "(height, width, 3). Convert it, or pass None for no image."
        )
    height, width, _ = image.shape
    arguments += (*stamp, 1, b"\0", height, width, 5, b"rgb8\0", 0, 3 * width, image.size)
    return image.data.cast("B") if image.flags.c_contiguous else image.tobytes()


@lru_cache(maxsize=64)
def _text(name: str, value: str, limit: int) -> bytes:
    data = value.encode()
    if len(data) > limit or b"\0" in data:
        raise UserError(f"{name} is {value!r}; it must hold at most {limit} bytes and no NUL. Shorten it.")
    return data + b"\0"


def _pack(layout: struct.Struct, arguments: list[Any], pixels: int, envelope: Envelope | None) -> bytes:
    if envelope is None:
        return layout.pack(*arguments)
    channel, sequence, time_ns = envelope
    return layout.pack(MESSAGE_OPCODE, layout.size - 9 + pixels, channel, sequence, time_ns, time_ns, *arguments)


def encode_step(step: Step, envelope: Envelope | None = None) -> tuple[bytes, bytes | memoryview]:
    """Return all bytes of a step up to its pixels, inside an MCAP record where an envelope is given, and its pixels.

    This is most of what recording a step costs, hence one check over all vectors and one call that packs everything.
    """
    observation, position, action = step.observation.tolist(), step.position.tolist(), step.action.tolist()
    logging_proposal, augmentor_proposal = step.logging_proposal.tolist(), step.augmentor_proposal.tolist()
    model_hash = _text("model_hash", step.model_hash, MAX_HASH)
    reward = step.reward
    stamp = divmod(step.time_ns, _NANO)
    arguments: list[Any] = [_LITTLE_ENDIAN, *stamp, 1, b"\0", step.episode, step.index, len(observation)]
    try:
        total = sum(observation) + sum(position) + sum(action)
        if total - total != 0.0:
            _check_finite(observation=step.observation, position=step.position, action=step.action)
        if reward in _INFINITE:
            raise UserError(f"reward is {reward}; it must be finite, or NaN where it is unknown.")
        arguments += observation
        _sequence(arguments, position)
        _sequence(arguments, action)
        arguments += (reward, step.source, len(logging_proposal))
        # Proposals are kept as they came, NaN included: that is why they were rejected.
        arguments += logging_proposal
        _sequence(arguments, augmentor_proposal)
        arguments += (step.rejection, step.draw, step.p, step.augmentations_left, len(model_hash), model_hash)
        pixels = _image_fields(arguments, stamp, step.image)
        sizes = (len(observation), len(position), len(action), len(logging_proposal), len(augmentor_proposal))
        layout = _step_struct(envelope is not None, sizes, len(model_hash), step.image is not None)
        return _pack(layout, arguments, len(pixels), envelope), pixels
    except (struct.error, TypeError) as error:
        _check_vectors(step)
        raise UserError(
            f"step {step.index} of episode {step.episode} does not fit into its message: {error}."
        ) from error


def encode_episode(end: EpisodeEnd, envelope: Envelope | None = None) -> tuple[bytes, bytes | memoryview]:
    """Return all bytes of an episode's end up to its pixels, as `encode_step` does."""
    episode = end.episode
    vectors = (episode.final_observation, episode.final_position, episode.goal, episode.context)
    reason = _text("reason", episode.reason, MAX_REASON)
    stamp = divmod(episode.end_time_ns, _NANO)
    arguments: list[Any] = [_LITTLE_ENDIAN, *stamp, 1, b"\0", *divmod(episode.start_time_ns, _NANO)]
    arguments += (episode.index, episode.seed, episode.mode, episode.outcome, len(reason), reason)
    arguments += (end.steps, end.augmentations, end.episode_return)
    try:
        _check_finite(final_observation=vectors[0], final_position=vectors[1], goal=vectors[2], context=vectors[3])
        for values in vectors:
            _sequence(arguments, values.tolist())
        pixels = _image_fields(arguments, stamp, episode.final_image)
        sizes = tuple(len(values) for values in vectors)
        layout = _episode_struct(envelope is not None, sizes, len(reason), episode.final_image is not None)
        return _pack(layout, arguments, len(pixels), envelope), pixels
    except (struct.error, TypeError) as error:
        _check_vectors(episode)
        raise UserError(f"the end of episode {episode.index} does not fit into its message: {error}.") from error


class _Cursor:
    """Reads CDR fields one after another and never past the end."""

    def __init__(self, data: bytes | memoryview) -> None:
        if len(data) < 4 or data[0] != 0 or data[1] not in (0, 1):
            raise Malformed("the message is not plain CDR")
        self.data = data
        self.order = "<" if data[1] == 1 else ">"
        self.offset = 4

    def take(self, size: int, alignment: int = 1) -> int:
        start = self.offset + (4 - self.offset) % alignment
        if size > len(self.data) - start:
            raise Malformed(f"the message ends after {len(self.data)} bytes and a field needs {start + size}")
        self.offset = start + size
        return start

    def number(self, code: str) -> Any:
        size = struct.calcsize("<" + code)
        return struct.unpack_from(self.order + code, self.data, self.take(size, size))[0]

    def floats(self, limit: int) -> FloatArray:
        count = self.number("I")
        if count > limit:
            raise Malformed(f"a sequence claims {count} values and the message type allows {limit}")
        if not count:
            return np.empty(0)
        start = self.take(8 * count, 8)
        return np.frombuffer(self.data, self.order + "f8", count, start).astype(np.float64)

    def text(self, limit: int) -> str:
        size = self.number("I")
        if size > limit + 1:
            raise Malformed(f"a text claims {size} bytes and the message type allows {limit}")
        start = self.take(size)
        try:
            return bytes(self.data[start : start + size]).removesuffix(b"\0").decode()
        except UnicodeDecodeError as error:
            raise Malformed("a text is not UTF-8") from error

    def time_ns(self) -> int:
        seconds = self.number("i")
        return int(seconds * _NANO + self.number("I"))

    def header(self) -> int:
        time_ns = self.time_ns()
        self.text(len(self.data))
        return time_ns

    def image(self) -> npt.NDArray[np.uint8] | None:
        self.header()
        height, width = self.number("I"), self.number("I")
        encoding = self.text(len(self.data))
        self.number("B")
        row, size = self.number("I"), self.number("I")
        start = self.take(size)
        if not width and not height and not size:
            return None
        if encoding != "rgb8" or row != 3 * width or size != row * height:
            raise Malformed(
                f"an image of {width}×{height} pixels, {row} bytes per row, {size} bytes and encoding {encoding!r} "
                "is no rgb8 image"
            )
        return np.frombuffer(self.data, np.uint8, size, start).reshape(height, width, 3).copy()


def _enumerated(kind: Any, value: int) -> Any:
    try:
        return kind(value)
    except ValueError as error:
        raise Malformed(f"{value} is no {kind.__name__.lower()}; known are {[int(item) for item in kind]}") from error


def decode_step(data: bytes | memoryview) -> Step:
    """Return the step that `data` holds."""
    cursor = _Cursor(data)
    time_ns = cursor.header()
    return Step(
        time_ns=time_ns,
        episode=cursor.number("I"),
        index=cursor.number("I"),
        observation=cursor.floats(MAX_VALUES),
        position=cursor.floats(MAX_VALUES),
        action=cursor.floats(MAX_VALUES),
        reward=cursor.number("d"),
        source=_enumerated(Source, cursor.number("B")),
        logging_proposal=cursor.floats(MAX_VALUES),
        augmentor_proposal=cursor.floats(MAX_VALUES),
        rejection=_enumerated(Rejection, cursor.number("B")),
        draw=cursor.number("d"),
        p=cursor.number("d"),
        augmentations_left=cursor.number("I"),
        model_hash=cursor.text(MAX_HASH),
        image=cursor.image(),
    )


def decode_episode(data: bytes | memoryview) -> EpisodeEnd:
    """Return the episode's end that `data` holds; the episode has no steps yet."""
    cursor = _Cursor(data)
    end_time_ns = cursor.header()
    start_time_ns = cursor.time_ns()
    index, seed = cursor.number("I"), cursor.number("Q")
    mode, outcome = _enumerated(Mode, cursor.number("B")), _enumerated(Outcome, cursor.number("B"))
    reason = cursor.text(MAX_REASON)
    steps, augmentations, episode_return = cursor.number("I"), cursor.number("I"), cursor.number("d")
    episode = Episode(
        index=index,
        seed=seed,
        mode=mode,
        outcome=outcome,
        steps=[],
        reason=reason,
        final_observation=cursor.floats(MAX_VALUES),
        final_position=cursor.floats(MAX_VALUES),
        goal=cursor.floats(MAX_VALUES),
        context=cursor.floats(MAX_CONTEXT),
        final_image=cursor.image(),
        start_time_ns=start_time_ns,
        end_time_ns=end_time_ns,
    )
    return EpisodeEnd(episode, steps, augmentations, episode_return)
