"""The chunks of a file that `RunWriter` has written: one holds one episode, and its index tells where messages lie.

Whatever looks different from what `RunWriter` writes is `Unusual` and left to `RunReader`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from mcap.opcode import Opcode

from lift_ros.array_types import IntArray
from lift_ros.bags.contents import is_alike
from lift_ros.bags.faults import UNREADABLE
from lift_ros.bags.files import EPISODE, STEP, known_as
from lift_ros.bags.mcap_records import (
    CHUNK_HEAD,
    HEAD,
    INDEX_HEAD,
    MAGIC,
    MESSAGE_HEAD,
    PACKED_HEAD,
    START,
    START_UNCHECKED,
    ZSTD,
    Announced,
    let_go,
    records,
    summary_records,
    unpacked,
)
from lift_ros.messages.layout import prefix_dtype

STEP_CHANNEL, EPISODE_CHANNEL = 1, 2
INT64 = np.dtype("<i8")
_CHUNK, _INDEX, _STATISTICS, _DATA_END = map(
    int, (Opcode.CHUNK, Opcode.MESSAGE_INDEX, Opcode.STATISTICS, Opcode.DATA_END)
)
_ANNOUNCED = 4  # records that announce our topics, a schema and a channel each
_NUMBER = MESSAGE_HEAD.size + prefix_dtype("Episode", {}, "episode").itemsize  # where an end's episode number ends


class Unusual(ValueError):
    """The file is not laid out as `RunWriter` lays it out."""


NOT_ORDINARY = (ValueError, LookupError, struct.error, *UNREADABLE)  # what reading beyond the expected raises


@dataclass(slots=True)
class EpisodeChunk:
    """Where a chunk's records lie in the data of its file, and where the index of each channel's messages is."""

    data: memoryview
    begin: int
    stored: int  # bytes in the file
    size: int  # bytes of the records
    crc: int
    packed: bool
    announces: bool  # what the file's topics are
    index: dict[int, tuple[int, int]] = field(default_factory=dict)  # with the number of entries

    @property
    def holds_episode(self) -> bool:
        """Whether messages of ours are in it, and not other topics only."""
        return STEP_CHANNEL in self.index or EPISODE_CHANNEL in self.index

    def records(self) -> memoryview:
        """Return what is in the chunk, not checked yet."""
        content = self.data[self.begin : self.begin + self.stored]
        if self.packed:
            content = unpacked(content, self.size)
        if self.announces and not _announces_ours(bytes(content[: _after(content, 0, _ANNOUNCED)])):
            raise Unusual
        return content

    def checked(self) -> memoryview:
        """Return what is in the chunk, which matches its checksum; zero would mean that there is none."""
        content = self.records()
        if not self.crc or zlib.crc32(content) != self.crc:
            raise Unusual
        return content

    def end(self, content: memoryview) -> tuple[int, int]:
        """Return the number of the one episode, and where in the chunk its end begins."""
        place, count = self.index[EPISODE_CHANNEL]
        if count != 1:
            raise Unusual
        end = int.from_bytes(self.data[place + 8 : place + 16], "little")
        return int.from_bytes(content[end + _NUMBER - 4 : end + _NUMBER], "little"), end

    def starts(self) -> IntArray:
        """Return where in the chunk steps begin."""
        place, count = self.index[STEP_CHANNEL]
        return np.frombuffer(self.data, INT64, 2 * count, place)[1::2]

    def let_go(self) -> None:
        """Give back the memory that a look at the chunk took."""
        let_go(self.data, self.begin, self.begin + self.stored)


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
        start = end_of(data, start)
    return start


def _chunks(data: memoryview) -> list[EpisodeChunk]:
    """Return the chunks of a finished file."""
    offset = next((len(start) for start in (START, START_UNCHECKED) if data[: len(start)] == start), 0)
    if not offset or data[-8:] != MAGIC:
        raise Unusual
    chunks: list[EpisodeChunk] = []
    while (opcode := data[offset]) != _DATA_END:
        length = HEAD.unpack_from(data, offset)[1]
        if opcode == _CHUNK:
            chunks.append(_chunk_at(data, offset, length, first=not chunks))
        elif opcode == _INDEX:
            _, _, channel, size = INDEX_HEAD.unpack_from(data, offset)
            if size + 6 != length or size % 16 or channel in chunks[-1].index:
                raise Unusual
            chunks[-1].index[channel] = offset + INDEX_HEAD.size, size // 16
        offset += HEAD.size + length
    if chunks and not chunks[0].holds_episode:
        chunks[0].records()  # whose first ones nobody would look at otherwise
    return chunks


def _chunk_at(data: memoryview, offset: int, length: int, *, first: bool) -> EpisodeChunk:
    """Return the chunk whose record of this length lies here."""
    _, _, _, _, size, crc, compression, stored = CHUNK_HEAD.unpack_from(data, offset)
    head, name = CHUNK_HEAD, ""
    if compression == len(ZSTD):
        head = PACKED_HEAD
        _, _, _, _, size, crc, _, packing, stored = PACKED_HEAD.unpack_from(data, offset)
        name = packing.decode()
    elif compression or size != stored:
        raise Unusual
    if name not in ("", ZSTD) or length != head.size - HEAD.size + stored:
        raise Unusual
    return EpisodeChunk(data, offset + head.size, stored, size, crc, packed=bool(name), announces=first)


def episode_chunks(data: memoryview, wanted: Collection[int] | None = None) -> list[EpisodeChunk]:
    """Return the chunks with the episodes of a file, only the wanted ones if some are named. Raises NOT_ORDINARY.

    What is in a compressed chunk is known only when it is unpacked, so all of these are among them.
    """
    chunks = [chunk for chunk in _chunks(data) if chunk.holds_episode]
    if wanted is None:
        return chunks
    return [chunk for chunk in chunks if chunk.packed or chunk.end(chunk.records())[0] in wanted]


def list_episodes(data: memoryview, first: int | None = None) -> list[int]:
    """Return the episodes of a file from its index, checked against its summary. Raises NOT_ORDINARY.

    Compressed ones are not unpacked where the file's name tells the `first`: each chunk holds the next one.
    """
    chunks = _chunks(data)
    statistics = next((body for opcode, _, body in summary_records(data) if opcode == _STATISTICS), b"")
    if int.from_bytes(statistics[:8], "little") != sum(count for chunk in chunks for _, count in chunk.index.values()):
        raise Unusual
    found = [chunk for chunk in chunks if chunk.holds_episode]
    if first is not None and any(chunk.packed for chunk in found):
        return list(range(first, first + len(found)))
    return [chunk.end(chunk.records())[0] for chunk in found]


def end_of(data: memoryview, start: int) -> int:
    """Return where a record ends."""
    return start + HEAD.size + int(HEAD.unpack_from(data, start)[1])
