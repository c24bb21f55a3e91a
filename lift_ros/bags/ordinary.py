"""Finding the episodes of a file that `RunWriter` has written, without decoding message by message.

Steps of a run have one layout up to the fields that training needs, so these bytes are gathered as they are and
decoded later for all episodes at once. Whatever looks different from what `RunWriter` writes is left to `RunReader`,
which reads anything and names what is wrong.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from mcap.opcode import Opcode

from lift_ros.array_types import IntArray, Picture
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
from lift_ros.positioning.pictures import PictureFormat

STEP_CHANNEL, EPISODE_CHANNEL = 1, 2
_CHUNK, _INDEX, _STATISTICS, _DATA_END = map(
    int, (Opcode.CHUNK, Opcode.MESSAGE_INDEX, Opcode.STATISTICS, Opcode.DATA_END)
)
_ANNOUNCED = 4  # records that announce our topics, a schema and a channel each
_NUMBER = MESSAGE_HEAD.size + prefix_dtype("Episode", {}, "episode").itemsize  # where an end's episode number ends
_INT64 = np.dtype("<i8")
_PICTURE_HEAD = struct.Struct("<II8sII")  # before pixels: width, length of the encoding, encoding, row, pixels' size
_NO_PICTURE = struct.pack("<III4sII", 0, 0, 1, b"", 0, 0)  # height and width 0, an empty encoding, no pixels


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
    images: Picture | None


@dataclass(slots=True)
class _Chunk:
    """Where a chunk's records begin, how long they are, and where the index of each channel's messages is."""

    content: int
    size: int
    crc: int
    index: dict[int, tuple[int, int]] = field(default_factory=dict)  # with the number of entries

    def records(self, data: memoryview) -> memoryview:
        """Return the records in the chunk, not checked yet."""
        return data[self.content : self.content + self.size]

    def checked(self, data: memoryview) -> memoryview:
        """Return the records in the chunk, which match their checksum; zero would mean that there is none."""
        records = self.records(data)
        if not self.crc or zlib.crc32(records) != self.crc:
            raise Unusual
        return records

    @property
    def holds_episode(self) -> bool:
        """Whether messages of ours are in it, and not other topics only."""
        return STEP_CHANNEL in self.index or EPISODE_CHANNEL in self.index

    def end(self, data: memoryview, records: memoryview) -> tuple[int, int]:
        """Return the number of the one episode and where its end begins among the records."""
        place, count = self.index[EPISODE_CHANNEL]
        if count != 1:
            raise Unusual
        end = int.from_bytes(data[place + 8 : place + 16], "little")
        return int.from_bytes(records[end + _NUMBER - 4 : end + _NUMBER], "little"), end

    def starts(self, data: memoryview) -> IntArray:
        """Return where steps begin among the records."""
        place, count = self.index[STEP_CHANNEL]
        return np.frombuffer(data, _INT64, 2 * count, place)[1::2]


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
    return [chunk.end(data, chunk.records(data))[0] for chunk in chunks if chunk.holds_episode]


class Locator:
    """Gathers the bytes of episodes; how steps are laid out is known from the first that is seen."""

    def __init__(self, columns: Sequence[str], images: bool) -> None:
        self.sizes: Sizes | None = None
        self.layout: np.dtype[Any] | None = None
        self._columns = columns
        self._images = images
        self._picture: PictureFormat | None = None  # of the steps' pictures, where they have some

    def locate(
        self, data: memoryview, wanted: Collection[int] | None = None, mapping: Callable[..., Iterable[Any]] = map
    ) -> Iterator[EpisodeBytes]:
        """Yield the episodes of a file, only the wanted ones if some are named.

        `mapping` maps the check of a chunk over chunks. Raises NOT_ORDINARY where the file is anything but ordinary.
        """
        chunks = [chunk for chunk in _chunks(data) if chunk.holds_episode]
        if wanted is not None:
            chunks = [chunk for chunk in chunks if chunk.end(data, chunk.records(data))[0] in wanted]
        for chunk, inside in zip(chunks, mapping(lambda chunk: chunk.checked(data), chunks), strict=True):
            yield self._take(data, chunk, inside)

    def _take(self, data: memoryview, chunk: _Chunk, records: memoryview) -> EpisodeBytes:
        index, end = chunk.end(data, records)
        starts = chunk.starts(data)
        layout = self.layout or self._learn_layout(records, int(starts[0]))
        steps = _windows(records, layout.itemsize, MESSAGE_HEAD.size)[starts]
        images = self._pictures(records, starts) if self._images else None
        message = bytes(records[end + MESSAGE_HEAD.size : _end_of(records, end)])
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
        self._picture = None if step.image is None else PictureFormat.of(step.image)
        self.layout = max(layouts, key=lambda layout: layout.itemsize)
        return self.layout

    def _pictures(self, records: memoryview, starts: IntArray) -> Picture | None:
        """Return the pictures of steps as one array; all are of the format that the first has, or there is none."""
        kind = self._picture
        places = _pixels(records, starts, kind)
        if kind is None:
            return None
        stored = kind.dtype.newbyteorder("<")
        pixels = _windows(records, _size_of(kind))[places].view(stored)
        pictures = pixels.reshape(len(starts), *kind.shape).astype(kind.dtype, copy=False)
        if kind.dtype.kind == "f" and not np.isfinite(pictures).all():
            raise Unusual
        return pictures


def _size_of(kind: PictureFormat) -> int:
    return math.prod(kind.shape) * kind.dtype.itemsize


def _pixels(records: memoryview, starts: IntArray, kind: PictureFormat | None) -> IntArray:
    """Return where the pixels of steps begin, which end their records; Unusual where one is not of this format."""
    ends = starts + HEAD.size + _windows(records, 8, 1)[starts].view(_INT64)
    if kind is None:
        expected, size = _NO_PICTURE, 0
    else:
        size = _size_of(kind)
        encoding = kind.encoding.encode()
        expected = _PICTURE_HEAD.pack(kind.width, len(encoding) + 1, encoding, size // kind.height, size)
    heads = _windows(records, len(expected))[ends - size - len(expected)]
    if (heads != np.frombuffer(expected, heads.dtype)).any():
        raise Unusual
    return np.asarray(ends - size, dtype=np.int64)


def _end_of(data: memoryview, start: int) -> int:
    """Return where a record ends."""
    return start + HEAD.size + int(HEAD.unpack_from(data, start)[1])


def _windows(data: memoryview, width: int, offset: int = 0) -> npt.NDArray[np.void]:
    """Return what lies in `width` bytes from `offset` bytes behind each place in the data on, without copying."""
    return np.ndarray((len(data) - width - offset + 1,), np.dtype((np.void, width)), data, offset, (1,))
