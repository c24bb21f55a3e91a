"""One MCAP file that is a journal while it is written: every record reaches the kernel at once, nothing is rewritten.

`rosbags` and `mcap` keep records in memory until a chunk is full, so a crash loses them. Here the chunk's header is
written first with its sizes left open, the messages follow one by one, and closing the chunk fills in the header.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = 1, 2, 3, 4, 5, 6, 7, 8
STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = 0x0B, 0x0C, 0x0D, 0x0E, 0x0F

RECORD_HEAD = struct.Struct("<BQ")
MESSAGE_HEAD = struct.Struct("<BQHIQQ")
CHUNK_HEAD = struct.Struct("<BQQQQIIQ")  # opcode, length, start, end, size, crc, length of "" and size again
_OPEN_CHUNK = CHUNK_HEAD.pack(CHUNK, 0, 0, 0, 0, 0, 0, 0)


def record(opcode: int, body: bytes) -> bytes:
    """Return an MCAP record."""
    return RECORD_HEAD.pack(opcode, len(body)) + body


def text(value: str) -> bytes:
    """Return an MCAP string."""
    data = value.encode()
    return len(data).to_bytes(4, "little") + data


def text_map(values: dict[str, str]) -> bytes:
    """Return an MCAP map from strings to strings."""
    body = b"".join(text(key) + text(value) for key, value in values.items())
    return len(body).to_bytes(4, "little") + body


@dataclass(frozen=True)
class Topic:
    """What a bag says about a topic."""

    name: str
    type_name: str
    definition: str
    type_hash: str
    qos: str  # YAML


def schema_record(schema: int, topic: Topic) -> bytes:
    """Return the record that announces a message type."""
    body = text(topic.type_name) + text("ros2msg") + text(topic.definition)
    return record(SCHEMA, schema.to_bytes(2, "little") + body)


def channel_record(channel: int, schema: int, topic: Topic) -> bytes:
    """Return the record that announces a topic."""
    metadata = {"offered_qos_profiles": topic.qos, "topic_type_hash": topic.type_hash}
    body = text(topic.name) + text("cdr") + text_map(metadata)
    return record(CHANNEL, struct.pack("<HH", channel, schema) + body)


@dataclass(slots=True)
class _Chunk:
    offset: int
    size: int = 0
    crc: int = 0
    indices: dict[int, list[int]] = field(default_factory=dict)  # channel: time, offset, time, offset, …


@dataclass
class FileSummary:
    """What metadata.yaml says about a finished file."""

    name: str
    first_time: int
    last_time: int
    messages: int
    counts: dict[str, int]  # messages per topic


class McapFile:
    """Appends messages to an MCAP file; `finish` turns the journal into a complete, indexed file."""

    def __init__(self, path: Path, metadata_name: str, metadata: dict[str, str]) -> None:
        self.path = path
        self._topics: list[Topic] = []
        self._schemas: dict[str, int] = {}
        self._counts: list[int] = []
        self._chunk: _Chunk | None = None
        self._chunk_indexes: list[bytes] = []
        self._metadata_name = metadata_name
        body = text("ros2") + text("lift_ros")
        start = MAGIC + record(HEADER, body)
        self._metadata_offset = len(start)
        metadata_record = record(METADATA, text(metadata_name) + text_map(metadata))
        self._metadata_length = len(metadata_record)
        self._size = 0
        self._first_time, self._last_time = 2**64 - 1, 0
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            self._append(start + metadata_record)
        except BaseException:
            self.discard()
            raise

    @property
    def messages(self) -> int:
        """Messages written so far."""
        return sum(self._counts)

    def _append(self, *parts: bytes | memoryview) -> int:
        """Write all of `parts` or nothing; returns the number of bytes."""
        wanted = sum(map(len, parts))
        try:
            written = os.writev(self._descriptor, parts)
            if written < wanted:
                rest = memoryview(b"".join(parts))[written:]
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self._roll_back(self._size)
            raise
        self._size += wanted
        return wanted

    def _roll_back(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        os.lseek(self._descriptor, size, os.SEEK_SET)
        self._size = size

    def _open_chunk(self) -> _Chunk:
        if self._chunk is None:
            chunk = _Chunk(self._size)
            self._append(_OPEN_CHUNK)
            self._chunk = chunk
        return self._chunk

    def add_topic(self, topic: Topic) -> int:
        """Announce a topic and return its channel."""
        channel = len(self._topics) + 1
        body = b""
        schema = self._schemas.get(topic.type_name)
        if schema is None:
            schema = len(self._schemas) + 1
            body = schema_record(schema, topic)
        body += channel_record(channel, schema, topic)
        chunk = self._open_chunk()
        chunk.size += self._append(body)
        chunk.crc = zlib.crc32(body, chunk.crc)
        self._schemas[topic.type_name] = schema
        self._topics.append(topic)
        self._counts.append(0)
        return channel

    def next_sequence(self, channel: int) -> int:
        """Return the sequence number of a channel's next message."""
        return self._counts[channel - 1]

    def write(self, channel: int, time_ns: int, *parts: bytes | memoryview) -> None:
        """Append a message record that the caller has packed."""
        chunk = self._chunk or self._open_chunk()
        size = self._append(*parts)
        for part in parts:
            chunk.crc = zlib.crc32(part, chunk.crc)
        if channel in chunk.indices:
            chunk.indices[channel] += (time_ns, chunk.size)
        else:
            chunk.indices[channel] = [time_ns, chunk.size]
        chunk.size += size
        self._counts[channel - 1] += 1

    def write_message(self, channel: int, time_ns: int, data: bytes) -> None:
        """Append a message."""
        head = MESSAGE_HEAD.pack(MESSAGE, 22 + len(data), channel, self.next_sequence(channel), time_ns, time_ns)
        self.write(channel, time_ns, head, data)

    def end_chunk(self) -> None:
        """Close the chunk: fill in its header and append its index."""
        chunk = self._chunk
        if chunk is None:
            return
        first_time = min((min(entries[::2]) for entries in chunk.indices.values()), default=0)
        last_time = max((max(entries[::2]) for entries in chunk.indices.values()), default=0)
        head = CHUNK_HEAD.pack(CHUNK, 40 + chunk.size, first_time, last_time, chunk.size, chunk.crc, 0, chunk.size)
        before = self._size
        index = b""
        offsets = b""
        for channel, entries in chunk.indices.items():
            offsets += struct.pack("<HQ", channel, before + len(index))
            body = struct.pack("<HI", channel, 8 * len(entries)) + struct.pack(f"<{len(entries)}Q", *entries)
            index += record(MESSAGE_INDEX, body)
        os.pwrite(self._descriptor, head, chunk.offset)
        if index:
            self._append(index)
        self._chunk_indexes.append(
            struct.pack("<QQQQI", first_time, last_time, chunk.offset, CHUNK_HEAD.size + chunk.size, len(offsets))
            + offsets
            + struct.pack("<QIQQ", len(index), 0, chunk.size, chunk.size)
        )
        self._chunk = None
        if chunk.indices:
            self._first_time = min(self._first_time, first_time)
            self._last_time = max(self._last_time, last_time)

    def finish(self, final: Path, *, sync: bool) -> FileSummary:
        """Complete the file, make it durable and give it its final name; after a failure it is a journal as before."""
        self.end_chunk()
        journal_size = self._size
        self._append(self._end())
        try:
            if sync:
                os.fsync(self._descriptor)
            os.rename(self.path, final)
        except OSError:
            self._roll_back(journal_size)
            raise
        self.release()
        counts = {topic.name: count for topic, count in zip(self._topics, self._counts, strict=True)}
        first_time = self._first_time if sum(self._counts) else 0
        return FileSummary(final.name, first_time, self._last_time, sum(self._counts), counts)

    def _end(self) -> bytes:
        """Return data end, summary, summary offsets, footer and magic."""
        schemas = {schema: topic for topic in self._topics for schema in [self._schemas[topic.type_name]]}
        counts = b"".join(struct.pack("<HQ", channel, count) for channel, count in enumerate(self._counts, 1))
        total = sum(self._counts)
        statistics = struct.pack(
            "<QHIIIIQQI",
            total,
            len(schemas),
            len(self._topics),
            0,
            1,
            len(self._chunk_indexes),
            self._first_time if total else 0,
            self._last_time,
            len(counts),
        )
        metadata_index = struct.pack("<QQ", self._metadata_offset, self._metadata_length) + text(self._metadata_name)
        groups = [
            (SCHEMA, b"".join(schema_record(schema, topic) for schema, topic in schemas.items())),
            (
                CHANNEL,
                b"".join(
                    channel_record(channel, self._schemas[topic.type_name], topic)
                    for channel, topic in enumerate(self._topics, 1)
                ),
            ),
            (STATISTICS, record(STATISTICS, statistics + counts)),
            (CHUNK_INDEX, b"".join(record(CHUNK_INDEX, body) for body in self._chunk_indexes)),
            (METADATA_INDEX, record(METADATA_INDEX, metadata_index)),
        ]
        data_end = record(DATA_END, bytes(4))
        start = position = self._size + len(data_end)
        summary, offsets = b"", b""
        for opcode, body in groups:
            if body:
                offsets += record(SUMMARY_OFFSET, struct.pack("<BQQ", opcode, position, len(body)))
                summary += body
                position += len(body)
        summary += offsets
        footer = RECORD_HEAD.pack(FOOTER, 20) + struct.pack("<QQ", start, position)
        crc = zlib.crc32(footer, zlib.crc32(summary))
        return data_end + summary + footer + crc.to_bytes(4, "little") + MAGIC

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
