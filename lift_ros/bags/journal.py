"""One MCAP file while it is written: every record reaches the kernel at once, and a crash leaves whole records.

Writers that keep a chunk in memory until it is full lose it in a crash. Here a chunk's records follow a placeholder as
long as its head; sealing the chunk writes the head over the placeholder and appends the index, completing the file
appends the summary. A journal that a crash has left is taken up from its bytes and then sealed and completed alike.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mcap.opcode import Opcode
from mcap.records import ChunkIndex, DataEnd, Footer, Header, Metadata, MetadataIndex, Statistics, SummaryOffset

from lift_ros.bags.faults import Malformed
from lift_ros.bags.files import JOURNAL_SUFFIX, first_episode_of, tail_name
from lift_ros.bags.records import (
    CHUNK_HEAD,
    HEAD,
    INDEX_HEAD,
    MAGIC,
    MESSAGE_HEAD,
    PLACEHOLDER,
    Announced,
    RecordedTopic,
    records,
    written,
)
from lift_ros.bags.topics import EPISODE

START = MAGIC + written(Header(profile="ros2", library="lift_ros"))
_PLACEHOLDER = HEAD.pack(PLACEHOLDER, CHUNK_HEAD.size - HEAD.size).ljust(CHUNK_HEAD.size, b"\0")


@dataclass
class FileSummary:
    """What metadata.yaml says about a finished file."""

    name: str
    first_time: int
    last_time: int
    messages: int
    counts: dict[RecordedTopic, int]


@dataclass(slots=True)
class _Chunk:
    """The chunk under way."""

    start: int
    crc: int = 0
    index: dict[int, list[int]] = field(default_factory=dict)  # channel: time, offset, time, offset, …


class Journal:
    """Appends messages to a file under way; `content` is what an earlier process has left of one.

    Of `content`, the first `size` bytes are whole records in order. The file is touched only once `create` or `reopen`
    is called.
    """

    def __init__(self, path: Path, content: memoryview | None = None) -> None:
        self.path = path
        self.size = 0
        self._descriptor = -1
        self._announced = Announced()
        self._announcements: dict[int, bytes] = {Opcode.SCHEMA: b"", Opcode.CHANNEL: b""}
        self._channels: dict[str, int] = {}
        self._counts: Counter[int] = Counter()  # messages of each channel
        self._metadata: list[MetadataIndex] = []
        self._chunk: _Chunk | None = None
        self._chunks: list[ChunkIndex] = []
        self._repairs: list[tuple[bytes, int]] = []
        if content is not None and content[: len(MAGIC)] == MAGIC:
            with suppress(Malformed):
                self._take_up(content)

    def create(self, metadata: Metadata, topics: Iterable[RecordedTopic]) -> None:
        """Make the file and begin it with header, metadata and topics."""
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            start = START + written(metadata)
            self._append(start)
            self._take_up(memoryview(start))
            for topic in topics:
                self.announce(topic)
        except BaseException:
            self.discard()
            raise

    def reopen(self) -> None:
        """Go on with the file as it was taken up; what lies behind that is cut off."""
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        os.ftruncate(self._descriptor, self.size)
        for data, offset in self._repairs:
            os.pwrite(self._descriptor, data, offset)

    def _take_up(self, content: memoryview) -> None:
        """Note all records up to the first that cannot have been written there."""
        self.size = len(MAGIC)
        for opcode, start, body in records(content, self.size, journal=True):
            end = start + HEAD.size + len(body)
            if self._chunk is not None and opcode in (Opcode.MESSAGE_INDEX, Opcode.CHUNK, PLACEHOLDER):
                head, index, entry = self._sealing(self._chunk)
                self._repairs += (head, self._chunk.start), (index, self.size)
                self.size += len(index)
                self._chunks.append(entry)
                self._chunk = None
            if opcode == Opcode.MESSAGE_INDEX and end <= self.size:
                continue
            if opcode == Opcode.MESSAGE_INDEX or start != self.size:
                return
            self._note(opcode, start, content[start:end], body)
            self.size = end

    def _note(self, opcode: int, start: int, record: memoryview, body: memoryview) -> None:
        if opcode in (PLACEHOLDER, Opcode.CHUNK):
            self._chunk = _Chunk(start)
            return
        if opcode == Opcode.MESSAGE:
            if self._chunk is None:
                raise Malformed(f"a message at byte {start} lies outside of a chunk")
            time_ns = self._announced.message(start, body).time_ns
            self._count(self._chunk, int.from_bytes(body[:2], "little"), time_ns, start)
        self._announced.note(opcode, body)
        if opcode == Opcode.METADATA:
            self._metadata = [MetadataIndex(start, len(record), next(iter(self._announced.metadata)))]
        elif opcode in self._announcements:
            self._announcements[opcode] += bytes(record)
            self._channels = {topic.name: number for number, topic in self._announced.topics.items()}
        if self._chunk is not None:
            self._chunk.crc = zlib.crc32(record, self._chunk.crc)

    def _count(self, chunk: _Chunk, channel: int, time_ns: int, start: int) -> None:
        entries = chunk.index.setdefault(channel, [])
        entries += (time_ns, start - chunk.start - CHUNK_HEAD.size)
        self._counts[channel] += 1

    def _append(self, *parts: bytes | memoryview) -> None:
        """Write all of `parts` or nothing."""
        wanted = sum(map(len, parts))
        try:
            done = os.pwritev(self._descriptor, parts, self.size)
            while done < wanted:
                done += os.pwrite(self._descriptor, b"".join(parts)[done:], self.size + done)
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += wanted

    def _open_chunk(self) -> _Chunk:
        if self._chunk is None:
            start = self.size
            self._append(_PLACEHOLDER)
            self._chunk = _Chunk(start)
        return self._chunk

    def announce(self, topic: RecordedTopic) -> int:
        """Return the channel of a topic, which is announced where it was not yet."""
        if topic.name in self._channels:
            return self._channels[topic.name]
        self._open_chunk()
        types = {schema.name: number for number, schema in self._announced.schemas.items()}
        schema = types.get(topic.type_name, len(types) + 1)
        if topic.type_name not in types:
            self._announce(written(topic.schema(schema)))
        self._announce(written(topic.channel(len(self._channels) + 1, schema)))
        return self._channels[topic.name]

    def _announce(self, record: bytes) -> None:
        start = self.size
        self._append(record)
        self._note(record[0], start, memoryview(record), memoryview(record)[HEAD.size :])

    def write(self, topic: RecordedTopic, time_ns: int, data: bytes | memoryview) -> None:
        """Append a message."""
        channel = self._channels.get(topic.name) or self.announce(topic)
        chunk, start = self._chunk or self._open_chunk(), self.size
        size = MESSAGE_HEAD.size - HEAD.size + len(data)
        head = MESSAGE_HEAD.pack(Opcode.MESSAGE, size, channel, self._counts[channel], time_ns, time_ns)
        self._append(head, data)
        chunk.crc = zlib.crc32(data, zlib.crc32(head, chunk.crc))
        self._count(chunk, channel, time_ns, start)

    def seal(self) -> None:
        """Close the chunk under way: append its index and write its head over the placeholder."""
        if self._chunk is not None:
            head, index, entry = self._sealing(self._chunk)
            self._append(index)
            os.pwrite(self._descriptor, head, self._chunk.start)
            self._chunks.append(entry)
            self._chunk = None

    def _sealing(self, chunk: _Chunk) -> tuple[bytes, bytes, ChunkIndex]:
        """Return head, message index and the summary's entry of a chunk that ends here."""
        times = [time for entries in chunk.index.values() for time in entries[::2]] or [0]
        first, last, size = min(times), max(times), self.size - chunk.start - CHUNK_HEAD.size
        length = CHUNK_HEAD.size + size
        head = CHUNK_HEAD.pack(Opcode.CHUNK, length - HEAD.size, first, last, size, chunk.crc, 0, size)
        index, offsets = b"", {}
        for channel, entries in chunk.index.items():
            offsets[channel] = self.size + len(index)
            entries_size = 8 * len(entries)
            index += INDEX_HEAD.pack(Opcode.MESSAGE_INDEX, 6 + entries_size, channel, entries_size)
            index += struct.pack(f"<{len(entries)}Q", *entries)
        return head, index, ChunkIndex(length, chunk.start, "", size, last, len(index), offsets, first, size)

    def complete(self, *, sync: bool) -> FileSummary | None:
        """Seal, append the summary, make the file durable and give it its final name; None where nothing is in it.

        After a failure it is a journal as before. A file without an episode's end is named a tail.
        """
        if not self._counts:
            self.discard()
            return None
        self.seal()
        counts = {topic: self._counts[channel] for channel, topic in self._announced.topics.items()}
        name = self.path.name.removesuffix(JOURNAL_SUFFIX)
        if not any(count for topic, count in counts.items() if topic == EPISODE):
            name = tail_name(self.path.parent, first_episode_of(name) or 0)
        filled = [chunk for chunk in self._chunks if chunk.message_index_offsets]
        first, last = min(c.message_start_time for c in filled), max(c.message_end_time for c in filled)
        summary = FileSummary(name, first, last, self._counts.total(), counts)
        before = self.size
        self._append(self._end(summary))
        try:
            if sync:
                os.fsync(self._descriptor)
            os.rename(self.path, self.path.with_name(name))
        except OSError:
            self.size = before
            os.ftruncate(self._descriptor, before)
            raise
        self.release()
        return summary

    def _end(self, summary: FileSummary) -> bytes:
        """Return data end, summary, summary offsets, footer and magic."""
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self._announced.topics),
            channel_message_counts={channel: self._counts[channel] for channel in self._announced.topics},
            chunk_count=len(self._chunks),
            message_count=summary.messages,
            message_end_time=summary.last_time,
            message_start_time=summary.first_time,
            metadata_count=len(self._metadata),
            schema_count=len(self._announced.schemas),
        )
        groups = {
            **self._announcements,
            Opcode.STATISTICS: written(statistics),
            Opcode.CHUNK_INDEX: written(*self._chunks),
            Opcode.METADATA_INDEX: written(*self._metadata),
        }
        data_end = written(DataEnd(0))
        start = position = self.size + len(data_end)
        offsets = []
        for opcode, group in groups.items():
            if group:
                offsets.append(SummaryOffset(opcode, position, len(group)))
                position += len(group)
        content = b"".join(groups.values()) + written(*offsets, Footer(start, position, 0))[:-4]
        return data_end + content + zlib.crc32(content).to_bytes(4, "little") + MAGIC

    def sync(self) -> None:
        """Make all that was written durable."""
        os.fdatasync(self._descriptor)

    def discard(self) -> None:
        """Close and remove the file."""
        self.release()
        self.path.unlink(missing_ok=True)

    def release(self) -> None:
        """Close the file as it is."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
