"""The records of MCAP files: what ours are made of, and a walk through anybody's with every length checked."""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import zstandard
from mcap.data_stream import ReadDataStream, RecordBuilder
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Header, McapRecord, Metadata, MetadataIndex, Schema, Statistics
from mcap.stream_reader import get_chunk_data_stream

from lift_ros.bags.faults import Malformed, Tolerate, refuse

MAGIC = b"\x89MCAP0\r\n"
HEAD = struct.Struct("<BQ")  # opcode of a record and length of its body
MESSAGE_HEAD = struct.Struct("<BQHIQQ")  # with channel, sequence, log time, publish time
CHUNK_HEAD = struct.Struct("<BQQQQIIQ")  # with first and last time, size, CRC, length of the compression "", size
PACKED_HEAD = struct.Struct("<BQQQQII4sQ")  # of a chunk that is compressed with zstd
INDEX_HEAD = struct.Struct("<BQHI")  # of a message index, with channel and length of its entries
CHECKSUM_RECORD = struct.Struct("<BQI")  # the CRC-32 of all records of its chunk that lie before it
# What a chunk's head will be written over. Opcodes from here on are private: no reader minds them.
PLACEHOLDER = 0x80
CHECKSUM = 0x81
BEGINS_CHUNK = (PLACEHOLDER, Opcode.CHUNK)
ZSTD = "zstd"
_FOOTER_SIZE = HEAD.size + 20
_LARGEST_CHUNK = 2**32
_LARGEST_READ = 2**24  # bytes of a file that are held at once
_IN_JOURNAL = {
    *(Opcode.HEADER, Opcode.METADATA, Opcode.CHUNK, Opcode.MESSAGE_INDEX, PLACEHOLDER),
    *(Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE, CHECKSUM),
}
_CHECKED = (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE)
_BEFORE_CHUNKS = (Opcode.HEADER, Opcode.METADATA)


@dataclass(frozen=True, slots=True)
class RecordedTopic:
    """What a bag says about a topic."""

    name: str
    type_name: str
    definition: str
    type_hash: str = ""
    qos: str = ""  # YAML
    encoding: str = "cdr"


@dataclass(slots=True)
class RecordedMessage:
    """One message as it was on the wire."""

    topic: RecordedTopic
    time_ns: int
    data: bytes | memoryview
    offset: int = 0  # of its record, in the file or in its chunk


def written(*records: McapRecord) -> bytes:
    """Return the bytes of records."""
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    return bytes(builder.end())  # type: ignore[no-untyped-call]


# How files of ours begin. The first are from before 0.2.0, whose messages are not followed by checksums.
START_UNCHECKED = MAGIC + written(Header(profile="ros2", library="lift_ros"))
START = MAGIC + written(Header(profile="ros2", library="lift_ros, checksums"))


@lru_cache(maxsize=256)
def announcement(topic: RecordedTopic, channel: int, schema: int) -> tuple[bytes, bytes]:
    """Return the records that announce a topic's message type and the topic."""
    metadata = {"offered_qos_profiles": topic.qos, "topic_type_hash": topic.type_hash}
    return (
        written(Schema(id=schema, name=topic.type_name, encoding="ros2msg", data=topic.definition.encode())),
        written(Channel(channel, topic.name, topic.encoding, metadata, schema)),
    )


class _Strict(BytesIO):
    """The library takes what a stream has left for what it has asked for; this one never has less."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if len(data) != size:
            raise Malformed(f"a field of {size} bytes exceeds its record")
        return data


def parsed(kind: Any, body: memoryview) -> Any:
    """Return the fields of a record of the library's class `kind`."""
    try:
        return kind.read(ReadDataStream(_Strict(body)))
    except UnicodeDecodeError as error:
        raise Malformed("a text is not UTF-8") from error


@dataclass
class Announced:
    """What the records so far have said about schemas, topics and metadata."""

    schemas: dict[int, tuple[str, str]] = field(default_factory=dict)  # names and definitions
    topics: dict[int, RecordedTopic] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)

    def note(self, opcode: int, body: memoryview) -> None:
        """Take in a record; one that announces nothing is passed over."""
        if opcode == Opcode.SCHEMA:
            schema = parsed(Schema, body)
            self.schemas[schema.id] = schema.name, schema.data.decode(errors="replace")
        elif opcode == Opcode.CHANNEL:
            channel = parsed(Channel, body)
            kind = self.schemas.get(channel.schema_id, ("", ""))
            type_hash, qos = (channel.metadata.get(key, "") for key in ("topic_type_hash", "offered_qos_profiles"))
            self.topics[channel.id] = RecordedTopic(channel.topic, *kind, type_hash, qos, channel.message_encoding)
        elif opcode == Opcode.METADATA:
            metadata = parsed(Metadata, body)
            self.metadata[metadata.name] = metadata.metadata

    def message(self, offset: int, body: memoryview) -> RecordedMessage:
        """Return the message that a record holds."""
        if len(body) < 22:
            raise Malformed(f"a message record has {len(body)} bytes and needs 22")
        number, _, time_ns, _ = struct.unpack_from("<HIQQ", body)
        topic = self.topics.get(number)
        if topic is None:
            raise Malformed(f"a message belongs to channel {number}, which was never announced")
        return RecordedMessage(topic, time_ns, body[22:], offset)


def records(data: memoryview, offset: int, *, journal: bool = False) -> Iterator[tuple[int, int, memoryview]]:
    """Yield opcode, place and body of each record; raises Malformed at one that is not whole.

    A journal's chunks may not have their sizes yet: their heads are records of their own there, and what lies inside
    follows as if it lay outside. It ends before what no journal holds.
    """
    end = len(data)
    while offset < end:
        if end - offset < HEAD.size:
            raise Malformed(f"the file ends inside a record at byte {offset}")
        opcode, size = HEAD.unpack_from(data, offset)
        if journal and opcode == Opcode.CHUNK:
            size = CHUNK_HEAD.size - HEAD.size
        if journal and opcode not in _IN_JOURNAL:
            return
        start, offset = offset, offset + HEAD.size + size
        if offset > end:
            raise Malformed(f"a record at byte {start} claims {size} bytes and {end - start - HEAD.size} are left")
        yield opcode, start, data[start + HEAD.size : offset]


def _chunk_records(body: memoryview) -> memoryview:
    """Return the unpacked and checked records of a chunk."""
    if len(body) < 40:
        raise Malformed(f"a chunk has {len(body)} bytes and needs 40")
    _, _, size, crc, compression, stored = struct.unpack_from("<QQQIIQ", body)
    content = _of_any_kind(parsed(Chunk, body)) if compression else body[40 : 40 + stored]
    if len(content) != size:
        raise Malformed(f"a chunk has {len(content)} bytes and claims {size}")
    if crc and zlib.crc32(content) != crc:
        raise Malformed("the checksum of a chunk does not match its content")
    return content


def _of_any_kind(chunk: Chunk) -> memoryview:
    """Return the content of a compressed chunk."""
    if chunk.compression == ZSTD:
        return unpacked(memoryview(chunk.data), chunk.uncompressed_size)
    if chunk.compression != "lz4":
        raise Malformed(f"a chunk is compressed with {chunk.compression!r}; known are zstd and lz4")
    _check_claim(chunk.uncompressed_size)
    try:
        stream, size = get_chunk_data_stream(chunk)
        return memoryview(stream.read(size))
    except Exception as error:  # each library has errors of its own for damaged data
        raise Malformed(f"a chunk cannot be unpacked ({error})") from error


def unpacked(stored: memoryview, size: int) -> memoryview:
    """Return what was compressed with zstd and had so many bytes before; no more memory is taken than that."""
    _check_claim(size)
    try:
        if zstandard.frame_content_size(stored) not in (size, -1):  # -1: it does not say
            raise Malformed(f"a chunk holds other than the {size} bytes unpacked that it claims")
        return memoryview(zstandard.ZstdDecompressor().decompress(stored, max_output_size=size))
    except zstandard.ZstdError as error:
        raise Malformed(f"a chunk cannot be unpacked ({error})") from error


def _check_claim(size: int) -> None:
    if size > _LARGEST_CHUNK:
        raise Malformed(f"a chunk claims {size} bytes unpacked and may have {_LARGEST_CHUNK}")


def _messages(found: Iterable[tuple[int, int, memoryview]], announced: Announced) -> Iterator[RecordedMessage]:
    for opcode, offset, body in found:
        if opcode == Opcode.MESSAGE:
            yield announced.message(offset, body)
        else:
            announced.note(opcode, body)


def journal_records(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield the records of a file under way up to the last that is whole and matches its checksum.

    Only a file that begins exactly as those without checksums is read without: no damage makes another of it.
    """
    if data[:8] != MAGIC:
        return
    with suppress(Malformed):
        found = records(data, len(MAGIC), journal=True)
        yield from found if data[: len(START_UNCHECKED)] == START_UNCHECKED else _matching(data, found)


def _matching(data: memoryview, found: Iterable[tuple[int, int, memoryview]]) -> Iterator[tuple[int, int, memoryview]]:
    """Yield records as soon as the checksum behind them is there and right."""
    unproven: list[tuple[int, int, memoryview]] = []
    crc, in_chunks = 0, False
    for record in found:
        opcode, start, body = record
        if opcode in _CHECKED:
            unproven.append(record)
        elif opcode == CHECKSUM:
            if body != crc.to_bytes(4, "little"):
                return
            yield from unproven
            unproven = []
            yield record
        elif unproven or (in_chunks and opcode in _BEFORE_CHUNKS):
            return
        else:
            yield record
        in_chunks = in_chunks or opcode in BEGINS_CHUNK
        crc = 0 if opcode in BEGINS_CHUNK else zlib.crc32(data[start : start + HEAD.size + len(body)], crc)


def journal_messages(data: memoryview, announced: Announced) -> Iterator[RecordedMessage]:
    """Yield the messages of a file under way up to the last good one."""
    with suppress(Malformed):
        yield from _messages(journal_records(data), announced)


def walk(data: memoryview, announced: Announced, tolerate: Tolerate = refuse) -> Iterator[RecordedMessage]:
    """Yield the messages of a finished MCAP file in the order they were written.

    `tolerate` is told of each bad chunk; unless it raises, the others are read.
    """
    if data[:8] != MAGIC:
        raise Malformed("it does not begin like an MCAP file")
    promised = None
    try:
        summary, statistics = read_summary(data)
        promised = None if statistics is None else statistics.message_count
        # The chunk that announces may be the bad one.
        announced.schemas.update(summary.schemas)
        announced.topics.update(summary.topics)
    except Malformed as error:
        if data[-8:] != MAGIC:
            raise
        tolerate(error)
    count = 0
    for opcode, offset, body in records(data[:-8], 8):
        if opcode in (Opcode.DATA_END, Opcode.FOOTER):
            break
        try:
            found = records(_chunk_records(body), 0) if opcode == Opcode.CHUNK else [(opcode, offset, body)]
            messages = list(_messages(found, announced))
        except Malformed as error:
            tolerate(error)
            continue
        count += len(messages)
        yield from messages
    if promised is not None and count != promised:
        tolerate(Malformed(f"it holds {count} messages and its summary counts {promised}"))


def summary_records(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield opcode, place and body of the records in the summary of a finished file, after its checksum was checked."""
    footer = len(data) - 8 - _FOOTER_SIZE
    if footer < 8 or data[-8:] != MAGIC or HEAD.unpack_from(data, footer) != (Opcode.FOOTER, _FOOTER_SIZE - HEAD.size):
        raise Malformed("it does not end like an MCAP file, so it was cut off")
    start, _, crc = struct.unpack_from("<QQI", data, footer + HEAD.size)
    if start and not 8 < start <= footer:
        raise Malformed(f"its summary begins at byte {start} of {len(data)}")
    if start and crc and zlib.crc32(data[start : footer + _FOOTER_SIZE - 4]) != crc:
        raise Malformed("the checksum of its summary does not match")
    return records(data[:footer], start or footer)


def read_summary(data: memoryview) -> tuple[Announced, Statistics | None]:
    """Return what a finished file's summary announces, and its statistics where it has them."""
    announced, statistics = Announced(), None
    for opcode, _, body in summary_records(data):
        announced.note(opcode, body)
        if opcode == Opcode.STATISTICS:
            statistics = parsed(Statistics, body)
    return announced, statistics


def read_metadata(data: memoryview) -> dict[str, dict[str, str]]:
    """Return the metadata records with which a file begins, or else those that its summary points to."""
    announced = Announced()
    if data[:8] != MAGIC:
        raise Malformed("it does not begin like an MCAP file")
    for opcode, _, body in records(data, 8):
        if opcode not in _BEFORE_CHUNKS:
            break
        announced.note(opcode, body)
    if announced.metadata or data[-8:] != MAGIC:
        return announced.metadata
    for opcode, _, body in summary_records(data):
        if opcode == Opcode.METADATA_INDEX:
            _, _, record = next(records(data, min(parsed(MetadataIndex, body).offset, len(data) - 1)))
            announced.note(Opcode.METADATA, record)
    return announced.metadata


def file_bytes(path: str | Path, *, whole: bool) -> memoryview:
    """Return the bytes of a finished file; those of a large one, or not wanted whole, are read when looked at."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if (whole and size <= _LARGEST_READ) or not size:
            return memoryview(os.read(descriptor, size))
        return memoryview(mmap.mmap(descriptor, size, prot=mmap.PROT_READ))
    finally:
        os.close(descriptor)


def let_go(data: memoryview, begin: int, end: int) -> None:
    """Give back the memory of a part of `file_bytes` that was looked at; a further look reads it again."""
    if isinstance(data.obj, mmap.mmap):
        begin, end = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
        if end > begin:
            data.obj.madvise(mmap.MADV_DONTNEED, begin, end - begin)
