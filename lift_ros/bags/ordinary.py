"""Finding the episodes of a file that `RunWriter` has written, without decoding message by message.

Steps of a run have one layout up to the fields that training needs, so these bytes are gathered as they are and
decoded later for all episodes at once. Whatever looks different from what `RunWriter` writes is left to `RunReader`,
which reads anything and names what is wrong.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from mcap.opcode import Opcode

from lift_ros.array_types import ByteArray, IntArray
from lift_ros.bags.contents import Sizes, is_alike
from lift_ros.bags.faults import UNREADABLE
from lift_ros.bags.files import EPISODE, STEP, known_as
from lift_ros.bags.mcap_records import (
    CHUNK_HEAD,
    HEAD,
    INDEX_HEAD,
    MAGIC,
    MESSAGE_HEAD,
    START,
    START_UNCHECKED,
    Announced,
    records,
    summary_records,
)
from lift_ros.collection.records import Step
from lift_ros.messages.layout import Kind, parts, prefix_dtype
from lift_ros.messages.records import decode_step

STEP_CHANNEL, EPISODE_CHANNEL = 1, 2
_CHUNK, _INDEX, _STATISTICS, _DATA_END = map(
    int, (Opcode.CHUNK, Opcode.MESSAGE_INDEX, Opcode.STATISTICS, Opcode.DATA_END)
)
_ANNOUNCED = 4  # records that announce our topics, a schema and a channel each
_NUMBER = MESSAGE_HEAD.size + prefix_dtype("Episode", {}, "episode").itemsize  # where an end's episode number ends
_INT64 = np.dtype("<i8")
_PICTURE_HEAD = 24  # bytes before a picture's pixels that decide about their format

Check = tuple[memoryview, int]  # bytes and their checksum


class Unusual(ValueError):
    """The file is not laid out as `RunWriter` lays it out."""


NOT_ORDINARY = (ValueError, LookupError, struct.error, *UNREADABLE)  # what reading beyond the expected raises


@lru_cache(maxsize=64)
def layout_of(message: str, upto: str, **sizes: int) -> np.dtype[Any]:
    """Return how the first fields of a message lie."""
    return prefix_dtype(message, sizes, upto)


@dataclass(slots=True)
class EpisodeBytes:
    """An episode's messages: of its steps the first bytes, laid out as `layout` says, and its end."""

    index: int
    steps: npt.NDArray[np.void]
    layout: np.dtype[Any]
    end: bytes
    images: ByteArray | None


@dataclass(slots=True)
class _Chunk:
    """Where a chunk's records begin, how long they are, and where the index of each channel's messages is."""

    content: int
    size: int
    crc: int
    index: dict[int, tuple[int, int]] = field(default_factory=dict)  # with the number of entries

    def end(self, data: memoryview) -> tuple[int, int] | None:
        """Return the number of the one episode and where its end begins; None where there are other topics only."""
        if STEP_CHANNEL not in self.index and EPISODE_CHANNEL not in self.index:
            return None
        place, count = self.index[EPISODE_CHANNEL]
        if count != 1:
            raise Unusual
        end = self.content + int.from_bytes(data[place + 8 : place + 16], "little")
        return int.from_bytes(data[end + _NUMBER - 4 : end + _NUMBER], "little"), end


@lru_cache(maxsize=16)
def _announces_ours(head: bytes) -> bool:
    """Whether a chunk's first records announce our topics; versions differ in their comments and constants alone."""
    announced = Announced()
    for opcode, _, body in records(memoryview(head), 0):
        announced.note(opcode, body)
    topics = {STEP_CHANNEL: STEP, EPISODE_CHANNEL: EPISODE}
    return announced.topics.keys() == topics.keys() and all(
        known_as(announced.topics[channel]) is topic and is_alike(announced.topics[channel], topic)
        for channel, topic in topics.items()
    )


def _after(data: memoryview, start: int, count: int) -> int:
    """Return where the last of so many records ends."""
    for _ in range(count):
        start = _end_of(data, start)
    return start


def _chunks(data: memoryview) -> list[_Chunk]:
    """Return the chunks of a finished file."""
    offset = next((len(start) for start in (START, START_UNCHECKED) if data[: len(start)] == start), 0)
    if not offset or data[-8:] != MAGIC:
        raise Unusual
    chunks: list[_Chunk] = []
    while (opcode := data[offset]) != _DATA_END:
        length = HEAD.unpack_from(data, offset)[1]
        if opcode == _CHUNK:
            _, _, _, _, size, crc, compression, stored = CHUNK_HEAD.unpack_from(data, offset)
            content = offset + CHUNK_HEAD.size
            if compression or size != stored or length != CHUNK_HEAD.size - HEAD.size + size:
                raise Unusual
            if not chunks and not _announces_ours(bytes(data[content : _after(data, content, _ANNOUNCED)])):
                raise Unusual
            chunks.append(_Chunk(content, size, crc))
        elif opcode == _INDEX:
            _, _, channel, size = INDEX_HEAD.unpack_from(data, offset)
            if size + 6 != length or size % 16 or channel in chunks[-1].index:
                raise Unusual
            chunks[-1].index[channel] = offset + INDEX_HEAD.size, size // 16
        offset += HEAD.size + length
    return chunks


def list_episodes(data: memoryview) -> list[int]:
    """Return the episodes of a file from its index, checked against its summary. Raises NOT_ORDINARY."""
    chunks = _chunks(data)
    statistics = next((body for opcode, _, body in summary_records(data) if opcode == _STATISTICS), b"")
    if int.from_bytes(statistics[:8], "little") != sum(count for chunk in chunks for _, count in chunk.index.values()):
        raise Unusual
    return [end[0] for chunk in chunks if (end := chunk.end(data)) is not None]


def intact(check: Check) -> bool:
    """Whether bytes match their checksum; zero would mean that there is none."""
    return check[1] != 0 and zlib.crc32(check[0]) == check[1]


class Locator:
    """Gathers the bytes of episodes; how steps are laid out is known from the first that is seen."""

    def __init__(self, columns: Sequence[str], images: bool) -> None:
        self.sizes: Sizes | None = None
        self.layout: np.dtype[Any] | None = None
        self._columns = columns
        self._images = images
        self._picture = (0, 0, b"")  # height, width and what lies before the pixels

    def locate(
        self,
        data: memoryview,
        wanted: Collection[int] | None = None,
        verify: Callable[[Callable[[Check], bool], list[Check]], Iterable[bool]] = map,
    ) -> list[EpisodeBytes]:
        """Return the episodes of a file, only the wanted ones if some are named.

        `verify` maps `intact` over the checks. Raises NOT_ORDINARY where the file is anything but ordinary.
        """
        found, checks = [], []
        for chunk in _chunks(data):
            end = chunk.end(data)
            if end is not None and (wanted is None or end[0] in wanted):
                checks.append((data[chunk.content : chunk.content + chunk.size], chunk.crc))
                found.append(self._take(data, chunk, *end))
        if not all(verify(intact, checks)):
            raise Unusual
        return found

    def _take(self, data: memoryview, chunk: _Chunk, index: int, end: int) -> EpisodeBytes:
        place, count = chunk.index[STEP_CHANNEL]
        starts = np.frombuffer(data, _INT64, 2 * count, place)[1::2] + chunk.content
        layout = self.layout or self._learn_layout(data, int(starts[0]))
        steps = _windows(data, layout.itemsize, MESSAGE_HEAD.size)[starts]
        images = self._pictures(data, starts) if self._images else None
        message = bytes(data[end + MESSAGE_HEAD.size : _end_of(data, end)])
        return EpisodeBytes(index, steps, layout, message, images)

    def _learn_layout(self, data: memoryview, start: int) -> np.dtype[Any]:
        step = decode_step(data[start + MESSAGE_HEAD.size : _end_of(data, start)])
        sizes: dict[str, int] = {}
        for name in Step.__slots__:
            value = getattr(step, name)
            if isinstance(value, str) and name in self._columns:
                raise Unusual  # texts have no place in a table of numbers
            if isinstance(value, str | np.ndarray):
                sizes[name] = len(value.encode()) + 1 if isinstance(value, str) else value.size
        layouts = [layout_of("Step", name, **sizes) for name in ("source", *self._columns)]
        if self._images and parts("Step")[-1].kind is not Kind.PICTURE:
            raise Unusual  # below, pictures are what ends a record
        self.sizes = Sizes.of(step)
        height, width, _ = (0, 0, 3) if step.image is None else step.image.shape
        pixels = _end_of(data, start) - 3 * height * width
        self._picture = height, width, bytes(data[pixels - _PICTURE_HEAD : pixels])
        self.layout = max(layouts, key=lambda layout: layout.itemsize)
        return self.layout

    def _pictures(self, data: memoryview, starts: IntArray) -> ByteArray | None:
        """Return the pictures that end the records of steps; all are of the format that the first has."""
        height, width, head = self._picture
        size = len(head) + 3 * height * width
        ends = starts + HEAD.size + _windows(data, 8, 1)[starts].view(_INT64)
        pieces = _windows(data, size)[ends - size].view(np.uint8).reshape(len(starts), size)
        if (pieces[:, : len(head)] != np.frombuffer(head, np.uint8)).any():
            raise Unusual
        return pieces[:, len(head) :].reshape(-1, height, width, 3) if height else None


def _end_of(data: memoryview, start: int) -> int:
    """Return where a record ends."""
    return start + HEAD.size + int(HEAD.unpack_from(data, start)[1])


def _windows(data: memoryview, width: int, offset: int = 0) -> npt.NDArray[np.void]:
    """Return what lies in `width` bytes from `offset` bytes behind each place in the data on, without copying."""
    return np.ndarray((len(data) - width - offset + 1,), np.dtype((np.void, width)), data, offset, (1,))
