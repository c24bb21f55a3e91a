"""Finding the episodes of a file that this package has written, without decoding message by message.

Steps of a run have one layout up to the fields that training needs, so these bytes are gathered as they are and
decoded later for all episodes at once. Whatever looks different from what `RunWriter` writes is left to `RunReader`,
which reads anything and names what is wrong.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lift_ros.bags.mcap_file import (
    CHUNK,
    CHUNK_HEAD,
    DATA_END,
    FOOTER,
    HEADER,
    MAGIC,
    MESSAGE,
    MESSAGE_INDEX,
    RECORD_HEAD,
    STATISTICS,
    channel_record,
    record,
    schema_record,
    text,
)
from lift_ros.bags.topics import EPISODE, STEP

STEP_CHANNEL, EPISODE_CHANNEL = 1, 2
_FOOTER_SIZE = 29
_START = MAGIC + record(HEADER, text("ros2") + text("lift_ros"))
_ANNOUNCEMENT = (
    schema_record(1, STEP)
    + channel_record(STEP_CHANNEL, 1, STEP)
    + schema_record(2, EPISODE)
    + channel_record(EPISODE_CHANNEL, 2, EPISODE)
)
_CDR = 31  # where a message's bytes begin in its record
_BODY = _CDR + 4  # what alignment counts from
LITTLE_ENDIAN = 0x100

_HEAD = RECORD_HEAD.unpack_from
_CHUNK = CHUNK_HEAD.unpack_from
_INDEX = struct.Struct("<BQHI").unpack_from
# An image up to its pixels: height, width, the encoding, its byte order, bytes per row and in all.
_NO_IMAGE = struct.pack("<III1sB2xII", 0, 0, 1, b"\0", 0, 0, 0)
_EPISODE_IN_END = _BODY + 24
_SMALLEST_MESSAGE = 100
_LARGEST_STEP = 2048  # up to what is needed of it

Content = bytes | mmap.mmap


@dataclass(slots=True, frozen=True)
class Shape:
    """Sizes that decide where the fields of a step lie."""

    observation: int
    position: int
    action: int


@dataclass(slots=True)
class Found:
    """An episode's bytes: the records of its steps, `stride` bytes each, up to `source` or further, and its end."""

    index: int
    count: int
    steps: bytes | memoryview
    stride: int
    end: bytes
    images: bytes  # pixels of all steps
    image_shape: tuple[int, int]  # (0, 0) where there are none


class Unusual(Exception):
    """The file is not laid out as `RunWriter` lays it out."""


class _Fields:
    """Collects the fields of a message for a structured dtype, with CDR's alignment."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.formats: list[Any] = []
        self.offsets: list[int] = []
        self.end = 0

    def add(self, name: str, code: str, count: int | None = None) -> None:
        size = np.dtype(code).itemsize
        self.end += -self.end % size if count != 0 else 0
        self.names.append(name)
        self.formats.append(code if count is None else (code, (count,)))
        self.offsets.append(_BODY + self.end)
        self.end += size * (1 if count is None else count)

    def vector(self, name: str, count: int) -> None:
        self.add(f"{name}_size", "<u4")
        self.add(name, "<f8", count)

    def build(self) -> np.dtype[Any]:
        names = ["opcode", "channel", "encoding", *self.names]
        formats = ["u1", "<u2", "<u4", *self.formats]
        offsets = [0, 9, _CDR, *self.offsets]
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": _BODY + self.end})


@lru_cache(maxsize=64)
def step_table(shape: Shape) -> np.dtype[Any]:
    """Return the layout of step records up to the field `source`."""
    fields = _Fields()
    fields.add("stamp", "<u4", 2)
    fields.add("frame_size", "<u4")
    fields.add("frame", "u1")
    fields.add("episode", "<u4")
    fields.add("step", "<u4")
    fields.vector("observation", shape.observation)
    fields.vector("position", shape.position)
    fields.vector("action", shape.action)
    fields.add("reward", "<f8")
    fields.add("source", "u1")
    return fields.build()


@lru_cache(maxsize=64)
def strided(layout: np.dtype[Any], stride: int) -> np.dtype[Any]:
    """Return records of which only the first `layout.itemsize` bytes of every `stride` are seen, as one field."""
    return np.dtype({"names": ["head"], "formats": [f"V{layout.itemsize}"], "offsets": [0], "itemsize": stride})


@lru_cache(maxsize=64)
def end_table(shape: Shape) -> np.dtype[Any]:
    """Return the layout of the records of episodes' ends that have no reason, up to a goal as long as positions."""
    fields = _Fields()
    fields.add("stamp", "<u4", 2)
    fields.add("frame_size", "<u4")
    fields.add("frame", "u1")
    fields.add("start", "<u4", 2)
    fields.add("episode", "<u4")
    fields.add("seed", "<u8")
    fields.add("mode", "u1")
    fields.add("outcome", "u1")
    fields.add("reason_size", "<u4")
    fields.add("reason", "u1")
    fields.add("steps", "<u4")
    fields.add("augmentations", "<u4")
    fields.add("episode_return", "<f8")
    fields.vector("final_observation", shape.observation)
    fields.vector("final_position", shape.position)
    fields.vector("goal", shape.position)
    return fields.build()


def shape_of(step: bytes) -> Shape:
    """Return the sizes that a step's record states."""
    sizes = []
    end = _BODY + 24
    for _ in range(3):
        if end + 4 > len(step):
            raise Unusual
        size = int.from_bytes(step[end : end + 4], "little")
        sizes.append(size)
        end += 4
        if size:
            end += (_BODY - end) % 8 + 8 * size
    return Shape(*sizes)


@dataclass(slots=True)
class _Chunk:
    """Where a chunk's records begin, how long they are, and where in them the messages begin."""

    content: int
    size: int
    crc: int
    steps: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    messages: int = 0

    def end(self, data: Content) -> tuple[int, int] | None:
        """Return the number of the one episode and where its end begins; None where there are other topics only."""
        if not self.ends and not self.steps:
            return None
        if len(self.ends) != 1 or self.ends[0] > self.size - _SMALLEST_MESSAGE:
            raise Unusual
        end = self.content + self.ends[0]
        return int.from_bytes(data[end + _EPISODE_IN_END : end + _EPISODE_IN_END + 4], "little"), end


def list_episodes(data: Content) -> list[int]:
    """Return the episodes of a file from its index, checked against its summary. Raises Unusual."""
    chunks = _chunks(data)
    if _promised_messages(data) != sum(chunk.messages for chunk in chunks):
        raise Unusual
    ends = [chunk.end(data) for chunk in chunks]
    return [end[0] for end in ends if end is not None]


Check = tuple[memoryview, int]  # bytes and their checksum


def intact(check: Check) -> bool:
    """Whether bytes match their checksum; zero would mean that there is none."""
    return check[1] != 0 and zlib.crc32(check[0]) == check[1]


def find_episodes(
    data: Content,
    *,
    images: bool,
    wanted: Collection[int] | None = None,
    verify: Callable[[Callable[[Check], bool], list[Check]], Iterable[bool]] = map,
) -> tuple[list[Found], Shape | None]:
    """Return the episodes of a file, only the wanted ones if some are named, and the shape of their first step.

    `verify` maps `intact` over the checks. Raises Unusual where the file is anything but ordinary.
    """
    shape: Shape | None = None
    width = 0
    found = []
    checks = []
    view = memoryview(data)
    for chunk in _chunks(data):
        end = chunk.end(data)
        if end is None or (wanted is not None and end[0] not in wanted):
            continue
        limit = chunk.content + chunk.size
        if chunk.steps and shape is None:
            start = chunk.content + chunk.steps[0]
            shape = shape_of(data[start : min(start + _LARGEST_STEP, limit)])
            width = step_table(shape).itemsize
        checks.append((view[chunk.content : limit], chunk.crc))
        found.append(_take(data, chunk, *end, width, images))
    if not all(verify(intact, checks)):
        raise Unusual
    return found, shape


def _chunks(data: Content) -> list[_Chunk]:
    """Return the chunks of a finished file."""
    end = len(data) - _FOOTER_SIZE - 8
    if data[: len(_START)] != _START or data[-8:] != MAGIC:
        raise Unusual
    chunks: list[_Chunk] = []
    offset = len(_START)
    while True:
        opcode = data[offset]
        if opcode == CHUNK:
            _, length, _, _, size, crc, compression, stored = _CHUNK(data, offset)
            content = offset + CHUNK_HEAD.size
            if compression or size != stored or length != 40 + size:
                raise Unusual
            if not chunks and data[content : content + len(_ANNOUNCEMENT)] != _ANNOUNCEMENT:
                raise Unusual
            chunks.append(_Chunk(content, size, crc))
        elif opcode == MESSAGE_INDEX:
            _, length, channel, size = _INDEX(data, offset)
            if not chunks or size + 6 != length or size % 16 or offset + length > end:
                raise Unusual
            _note_index(chunks[-1], channel, struct.unpack_from(f"<{size // 8}Q", data, offset + 15)[1::2])
        elif opcode == DATA_END:
            return chunks
        else:
            _, length = _HEAD(data, offset)
        offset += 9 + length
        if offset >= end:
            raise Unusual


def _note_index(chunk: _Chunk, channel: int, entries: tuple[int, ...]) -> None:
    chunk.messages += len(entries)
    if channel == STEP_CHANNEL and not chunk.steps:
        chunk.steps = entries
    elif channel == EPISODE_CHANNEL and not chunk.ends:
        chunk.ends = entries
    elif channel in (STEP_CHANNEL, EPISODE_CHANNEL):
        raise Unusual


def _promised_messages(data: Content) -> int:
    """Return how many messages the summary counts, after checking the summary."""
    end = len(data) - _FOOTER_SIZE - 8
    opcode, length, start, _, crc = struct.unpack_from("<BQQQI", data, end)
    if opcode != FOOTER or length != 20 or not 8 < start <= end:
        raise Unusual
    if zlib.crc32(data[start : end + 25]) != crc:
        raise Unusual
    offset = start
    while offset < end:
        opcode, length = _HEAD(data, offset)
        if opcode == STATISTICS and length >= 8:
            return int.from_bytes(data[offset + 9 : offset + 17], "little")
        offset += 9 + length
    raise Unusual


def _take(data: Content, chunk: _Chunk, index: int, end: int, width: int, images: bool) -> Found:
    """Gather the bytes of an episode; `width` is the size of a step up to what is needed of it."""
    content, steps = chunk.content, chunk.steps
    if data[end] != MESSAGE or (steps and max(steps) > chunk.size - width):
        raise Unusual
    rows, stride = _rows(data, content, steps, width, content + chunk.size)
    pixels, image_shape = _pixels(data, [content + step for step in steps]) if images else (b"", (0, 0))
    end_size = 9 + int.from_bytes(data[end + 1 : end + 9], "little")
    return Found(index, len(steps), rows, stride, data[end : end + end_size], pixels, image_shape)


def _rows(
    data: Content, content: int, steps: tuple[int, ...], width: int, limit: int
) -> tuple[bytes | memoryview, int]:
    """Return the steps' bytes and how far they lie apart: in one piece where they are small and seem to be of one size.

    Whoever decodes them sees whether they were: each step states its number.
    """
    count = len(steps)
    if count > 1:
        stride = steps[1] - steps[0]
        start, stop = content + steps[0], content + steps[0] + count * stride
        if width <= stride <= 4 * width and stop <= limit and steps[-1] - steps[0] == (count - 1) * stride:
            return memoryview(data)[start:stop] if isinstance(data, bytes) else data[start:stop], stride
    return b"".join([data[content + step : content + step + width] for step in steps]), width


def _pixels(data: Content, starts: list[int]) -> tuple[bytes, tuple[int, int]]:
    """Return the pixels of steps' images, which end their records, and height and width."""
    shape: tuple[int, int] | None = None
    pieces = []
    for start in starts:
        end = start + 9 + int.from_bytes(data[start + 1 : start + 9], "little")
        if shape is None:
            shape = _image_shape(data, start, end)
        size = 3 * shape[0] * shape[1]
        head = _image_head(shape) if size else _NO_IMAGE
        if data[end - size - len(head) : end - size] != head:
            raise Unusual
        pieces.append(data[end - size : end])
    return b"".join(pieces), shape or (0, 0)


@lru_cache(maxsize=16)
def _image_head(shape: tuple[int, int]) -> bytes:
    height, width = shape
    return struct.pack("<III5sB2xII", height, width, 5, b"rgb8\0", 0, 3 * width, 3 * height * width)


def _image_shape(data: Content, start: int, end: int) -> tuple[int, int]:
    """Find height and width of the image that ends a record; (0, 0) where there is none."""
    if data[end - len(_NO_IMAGE) : end] == _NO_IMAGE:
        return 0, 0
    place = data[start:end].find(b"\5\0\0\0rgb8\0")
    if place < 8:
        raise Unusual
    height, width = struct.unpack_from("<II", data, start + place - 8)
    return height, width
