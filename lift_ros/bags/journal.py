"""One MCAP file while it is written: every record reaches the kernel at once, and a crash leaves whole records.

Writers that keep a chunk in memory until it is full lose it in a crash. Here a chunk's records follow a placeholder as
long as its head, and each message is followed by the checksum of the chunk so far; sealing the chunk writes the head
over the placeholder and appends the index, completing the file appends the summary. A journal that a crash has left is
taken up from its bytes and then sealed and completed alike.
"""

from __future__ import annotations

import os
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from mcap.opcode import Opcode
from mcap.records import ChunkIndex, DataEnd, Footer, Metadata, MetadataIndex, Statistics, SummaryOffset

from lift_ros.bags.appended import AppendedFile
from lift_ros.bags.faults import Malformed
from lift_ros.bags.files import EPISODE, JOURNAL_SUFFIX, first_episode_of, known_as, sync_directory, tail_name
from lift_ros.bags.mcap_records import (
    BEGINS_CHUNK,
    CHECKSUM,
    CHECKSUM_RECORD,
    CHUNK_HEAD,
    HEAD,
    INDEX_HEAD,
    MAGIC,
    MESSAGE_HEAD,
    PLACEHOLDER,
    START,
    Announced,
    RecordedTopic,
    announcement,
    journal_records,
    parsed,
    written,
)
from lift_ros.bags.packing import PackedCopy, copy_path

_PLACEHOLDER = HEAD.pack(PLACEHOLDER, CHUNK_HEAD.size - HEAD.size).ljust(CHUNK_HEAD.size, b"\0")
_MESSAGE = int(Opcode.MESSAGE)
_BEFORE_DATA = MESSAGE_HEAD.size - HEAD.size  # bytes of a message's record before its data
_CHECKSUM_SIZE = CHECKSUM_RECORD.size - HEAD.size


@dataclass
class FileSummary:
    """What metadata.yaml says about a finished file."""

    name: str
    first_time: int
    last_time: int
    messages: int
    counts: dict[RecordedTopic, int]


@dataclass(slots=True)
class _OpenChunk:
    """The chunk under way: where its records begin, their checksum and what their index will say."""

    inside: int
    crc: int = 0
    # channel: time, offset, time, offset, …
    entries: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    @property
    def start(self) -> int:
        """Where its head lies, or the placeholder."""
        return self.inside - CHUNK_HEAD.size

    def ends(self, end: int) -> tuple[bytes, bytes, ChunkIndex]:
        """Return head, message index and the summary's entry of the chunk that ends at `end`."""
        size, length = end - self.inside, end - self.start
        times = [time for values in self.entries.values() for time in values[::2]] or [0]
        first, last = min(times), max(times)
        head = CHUNK_HEAD.pack(Opcode.CHUNK, length - HEAD.size, first, last, size, self.crc, 0, size)
        index, offsets = b"", {}
        for channel, values in self.entries.items():
            offsets[channel] = end + len(index)
            stored = 8 * len(values)
            index += INDEX_HEAD.pack(Opcode.MESSAGE_INDEX, 6 + stored, channel, stored)
            index += struct.pack(f"<{len(values)}Q", *values)
        return head, index, ChunkIndex(length, self.start, "", size, last, len(index), offsets, first, size)


class Journal(AppendedFile):
    """Appends messages to a file under way; `content` is what an earlier process has left of one.

    Of `content`, the first `size` bytes are whole records in order. The file is touched only once `create` or `reopen`
    is called. Where it is `packed`, a compressed copy is made as chunks are sealed, which takes its place at the end.
    """

    def __init__(self, path: Path, content: memoryview | None = None, *, packed: bool = False) -> None:
        super().__init__(path)
        self._copy = PackedCopy(path) if packed else None
        self._announced = Announced()
        self._announcements: dict[int, bytes] = {Opcode.SCHEMA: b"", Opcode.CHANNEL: b""}
        self._channels: dict[str, int] = {}
        self._counts: Counter[int] = Counter()  # messages of each channel
        self._metadata: list[MetadataIndex] = []
        self._chunk: _OpenChunk | None = None
        self._chunks: list[ChunkIndex] = []
        self._repairs: list[tuple[bytes, int]] = []
        if content is not None and content[: len(MAGIC)] == MAGIC:
            with suppress(Malformed):
                self._take_up(content)
            self._sum_up(content)

    def create(self, metadata: Mapping[str, bytes], topics: Iterable[RecordedTopic]) -> None:
        """Make the file and begin it with header, metadata records by name, and topics."""
        self._open(os.O_CREAT | os.O_EXCL)
        try:
            start = START
            for name, record in metadata.items():
                self._metadata.append(MetadataIndex(len(start), len(record), name))
                start += record
            self._append(start)
            for topic in topics:
                self._announce(topic)
        except BaseException:
            self.discard()
            raise

    def reopen(self) -> None:
        """Go on with the file as it was taken up; what lies behind that is cut off."""
        copy_path(self.path).unlink(missing_ok=True)
        self._open(0)
        self._cut(self.size)
        for data, offset in self._repairs:
            os.pwrite(self._descriptor, data, offset)

    def _take_up(self, content: memoryview) -> None:
        """Note all records up to the first that cannot have been written there."""
        self.size = len(MAGIC)
        for opcode, start, body in journal_records(content):
            end = start + HEAD.size + len(body)
            if self._chunk is not None and (opcode == Opcode.MESSAGE_INDEX or opcode in BEGINS_CHUNK):
                self._chunk.crc = crc32(content[self._chunk.inside : start])
                head, index, entry = self._chunk.ends(start)
                self._repairs += (head, self._chunk.start), (index, start)
                self._chunks.append(entry)
                self._chunk = None
                self.size += len(index)
            if opcode == Opcode.MESSAGE_INDEX and end <= self.size:
                continue
            if start != self.size or (self._chunk is None and opcode in (Opcode.MESSAGE_INDEX, Opcode.MESSAGE)):
                return
            if opcode in BEGINS_CHUNK and end - start != CHUNK_HEAD.size:
                return
            self._note(opcode, start, content[start:end], body)
            self.size = end

    def _sum_up(self, content: memoryview) -> None:
        """Reckon the checksum of the chunk that is under way."""
        if self._chunk is not None:
            self._chunk.crc = crc32(content[self._chunk.inside : self.size])

    def _note(self, opcode: int, start: int, record: memoryview, body: memoryview) -> None:
        self._announced.note(opcode, body)
        if opcode in BEGINS_CHUNK:
            self._chunk = _OpenChunk(start + CHUNK_HEAD.size)
        elif opcode == Opcode.MESSAGE and self._chunk is not None:
            message = self._announced.message(start, body)
            channel = self._channels[message.topic.name]
            self._counts[channel] += 1
            self._chunk.entries[channel] += message.time_ns, start - self._chunk.inside
        elif opcode == Opcode.METADATA:
            self._metadata.append(MetadataIndex(start, len(record), parsed(Metadata, body).name))
        elif opcode in self._announcements:
            self._announcements[opcode] += bytes(record)
            self._channels = {topic.name: number for number, topic in self._announced.topics.items()}

    def _open_chunk(self) -> _OpenChunk:
        if self._chunk is None:
            self._append(_PLACEHOLDER)
            self._chunk = _OpenChunk(self.size)
        return self._chunk

    def _announce(self, topic: RecordedTopic) -> int:
        """Announce a topic and return its channel."""
        chunk = self._open_chunk()
        numbers = {name: number for number, (name, _) in self._announced.schemas.items()}
        number, channel = numbers.get(topic.type_name, len(numbers) + 1), len(self._channels) + 1
        schema, record = announcement(topic, channel, number)
        schema = b"" if topic.type_name in numbers else schema
        self._append(schema + record)
        chunk.crc = crc32(schema + record, chunk.crc)
        self._announcements[Opcode.SCHEMA] += schema
        self._announcements[Opcode.CHANNEL] += record
        self._announced.schemas[number] = topic.type_name, topic.definition
        self._announced.topics[channel] = topic
        self._channels[topic.name] = channel
        return channel

    def write(self, topic: RecordedTopic, time_ns: int, data: bytes | memoryview) -> None:
        """Append a message, and the checksum of the chunk up to here."""
        channel = self._channels.get(topic.name) or self._announce(topic)
        chunk = self._chunk or self._open_chunk()
        count, place = self._counts[channel], self.size
        record = MESSAGE_HEAD.pack(_MESSAGE, _BEFORE_DATA + len(data), channel, count, time_ns, time_ns) + data
        crc = crc32(record, chunk.crc)
        checksum = CHECKSUM_RECORD.pack(CHECKSUM, _CHECKSUM_SIZE, crc)
        self._append(record + checksum)
        chunk.crc = crc32(checksum, crc)
        chunk.entries[channel] += time_ns, place - chunk.inside
        self._counts[channel] = count + 1

    def seal(self) -> None:
        """Close the chunk under way: write its head over the placeholder and append its index."""
        if self._chunk is not None:
            head, index, entry = self._chunk.ends(self.size)
            os.pwrite(self._descriptor, head, self._chunk.start)
            self._append(index)
            self._chunks.append(entry)
            self._chunk = None
        if self._copy is not None:
            self._copy.follow(self._descriptor, self._chunks)

    @property
    def unpacked(self) -> int:
        """How many bytes are still to be compressed, which takes at most as many more on the disk."""
        return 0 if self._copy is None else self.size - self._copy.packed

    def complete(self, *, sync: bool) -> FileSummary | None:
        """Seal, append the summary, make the file durable and give it its final name; None where nothing is in it.

        After a failure it is a journal as before. A file without an episode's end is named a tail; a tail is never
        packed, since its name does not tell whether the journal's content is in it already.
        """
        if not self._counts:
            self.discard()
            return None
        self.seal()
        name = self.path.name.removesuffix(JOURNAL_SUFFIX)
        ends = [channel for channel, topic in self._announced.topics.items() if known_as(topic) is EPISODE]
        if not any(self._counts[channel] for channel in ends):
            name = tail_name(self.path.parent, first_episode_of(name) or 0)
            self._drop_copy()
        filled = [chunk for chunk in self._chunks if chunk.message_index_offsets]
        summary = FileSummary(
            name,
            first_time=min(chunk.message_start_time for chunk in filled),
            last_time=max(chunk.message_end_time for chunk in filled),
            messages=self._counts.total(),
            counts={topic: self._counts[channel] for channel, topic in self._announced.topics.items()},
        )
        if self._copy is None:
            self.finish(self._end(summary, self.size, self._chunks), name, sync=sync)
        else:
            self._copy.finish(self._end(summary, self._copy.size, self._copy.chunks), name, sync=sync)
            if sync:
                sync_directory(self.path.parent)
            self.path.unlink()
        self.release()
        return summary

    def discard(self) -> None:
        """Close and remove the file, and its copy."""
        self._drop_copy()
        super().discard()

    def release(self) -> None:
        """Close the file as it is, and its copy."""
        super().release()
        if self._copy is not None:
            self._copy.release()

    def _drop_copy(self) -> None:
        if self._copy is not None:
            self._copy.discard()
            self._copy = None

    def _end(self, summary: FileSummary, size: int, chunks: Sequence[ChunkIndex]) -> bytes:
        """Return data end, summary, summary offsets, footer and magic of a file of so many bytes with these chunks."""
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            channel_message_counts={channel: self._counts[channel] for channel in self._channels.values()},
            chunk_count=len(chunks),
            message_count=summary.messages,
            message_end_time=summary.last_time,
            message_start_time=summary.first_time,
            metadata_count=len(self._metadata),
            schema_count=len(self._announced.schemas),
        )
        groups = {
            **self._announcements,
            Opcode.STATISTICS: written(statistics),
            Opcode.CHUNK_INDEX: written(*chunks),
            Opcode.METADATA_INDEX: written(*self._metadata),
        }
        data_end = written(DataEnd(0))
        start = position = size + len(data_end)
        offsets = []
        for opcode, group in groups.items():
            if group:
                offsets.append(SummaryOffset(opcode, position, len(group)))
                position += len(group)
        content = b"".join(groups.values()) + written(*offsets, Footer(start, position, 0))[:-4]
        return data_end + content + crc32(content).to_bytes(4, "little") + MAGIC
