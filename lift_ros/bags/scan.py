"""Walking through the records of MCAP files with every length checked against the bytes that are there."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lift_ros.bags.faults import Malformed
from lift_ros.bags.mcap_file import (
    CHANNEL,
    CHUNK,
    CHUNK_HEAD,
    DATA_END,
    FOOTER,
    HEADER,
    MAGIC,
    MESSAGE,
    MESSAGE_INDEX,
    METADATA,
    RECORD_HEAD,
    SCHEMA,
    STATISTICS,
)

_MAX_UNPACKED = 2**32
_PIECE = 2**20
FOOTER_SIZE = 29
_INSIDE_CHUNK = (SCHEMA, CHANNEL, MESSAGE)


@dataclass(slots=True)
class Channel:
    """A topic as a file announces it."""

    topic: str
    type_name: str
    encoding: str
    definition: str
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Message:
    """One message; `data` points into the file."""

    channel: Channel
    time_ns: int
    data: memoryview


@dataclass
class Announced:
    """What the records so far have said about schemas, channels and metadata."""

    schemas: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)


class _Fields:
    """Reads the fields of one record and never past its end."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.offset = 0

    def take(self, size: int) -> memoryview:
        if size > len(self.data) - self.offset:
            raise Malformed(f"a field of {size} bytes exceeds its record of {len(self.data)} bytes")
        start = self.offset
        self.offset += size
        return self.data[start : self.offset]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def text(self) -> str:
        try:
            return str(self.take(self.number(4)), "utf-8")
        except UnicodeDecodeError as error:
            raise Malformed("a text is not UTF-8") from error

    def text_map(self) -> dict[str, str]:
        inner = _Fields(self.take(self.number(4)))
        values = {}
        while inner.offset < len(inner.data):
            key = inner.text()
            values[key] = inner.text()
        return values


def _announce(opcode: int, body: memoryview, announced: Announced) -> None:
    fields = _Fields(body)
    if opcode == SCHEMA:
        number = fields.number(2)
        announced.schemas[number] = (fields.text(), fields.text(), fields.text())
    elif opcode == CHANNEL:
        number = fields.number(2)
        schema = announced.schemas.get(fields.number(2), ("", "", ""))
        topic, encoding = fields.text(), fields.text()
        announced.channels[number] = Channel(topic, schema[0], encoding, schema[2], fields.text_map())
    elif opcode == METADATA:
        name = fields.text()
        announced.metadata[name] = fields.text_map()


def _message(body: memoryview, announced: Announced) -> Message:
    if len(body) < 22:
        raise Malformed(f"a message record has {len(body)} bytes and needs 22")
    number, _, time_ns, _ = struct.unpack_from("<HIQQ", body)
    channel = announced.channels.get(number)
    if channel is None:
        raise Malformed(f"a message belongs to channel {number}, which was never announced")
    return Message(channel, time_ns, body[22:])


def _records(data: memoryview, offset: int) -> Iterator[tuple[int, memoryview]]:
    """Yield opcode and body of each record."""
    end = len(data)
    while offset < end:
        if end - offset < 9:
            raise Malformed(f"the file ends inside a record at byte {offset}")
        opcode, size = RECORD_HEAD.unpack_from(data, offset)
        if size > end - offset - 9:
            raise Malformed(f"a record at byte {offset} claims {size} bytes and {end - offset - 9} are left")
        offset += 9 + size
        yield opcode, data[offset - size : offset]


def _read_pieces(read: Callable[[int], bytes], size: int) -> memoryview:
    """Read `size` bytes in pieces: memory grows with what is there, not with what the file claims."""
    pieces = []
    while size and (piece := read(min(size, _PIECE))):
        pieces.append(piece)
        size -= len(piece)
    return memoryview(b"".join(pieces))


def _unpack(compression: str, packed: memoryview, size: int) -> memoryview:
    if compression == "":
        return packed
    if size > _MAX_UNPACKED:
        raise Malformed(f"a compressed chunk claims {size} bytes unpacked and at most {_MAX_UNPACKED} are allowed")
    if compression == "zstd":
        import zstandard

        try:
            reader = zstandard.ZstdDecompressor().stream_reader(bytes(packed))
            return _read_pieces(reader.read, size)
        except zstandard.ZstdError as error:
            raise Malformed(f"a chunk cannot be unpacked ({error})") from error
    if compression == "lz4":
        import lz4.frame  # type: ignore[import-untyped]

        try:
            return _read_pieces(lz4.frame.LZ4FrameFile(io.BytesIO(packed)).read, size)
        except (RuntimeError, EOFError) as error:
            raise Malformed(f"a chunk cannot be unpacked ({error})") from error
    raise Malformed(f"a chunk is compressed with {compression!r}; known are zstd and lz4")


def chunk_records(body: memoryview) -> memoryview:
    """Return the unpacked and checked records of a chunk."""
    fields = _Fields(body)
    fields.take(16)
    size, crc = fields.number(8), fields.number(4)
    compression = fields.text()
    records = _unpack(compression, fields.take(fields.number(8)), size)
    if len(records) != size:
        raise Malformed(f"a chunk has {len(records)} bytes and claims {size}")
    if crc and zlib.crc32(records) != crc:
        raise Malformed("the checksum of a chunk does not match its content")
    return records


Tolerate = Callable[[Malformed], None]


def walk(data: memoryview, announced: Announced, tolerate: Tolerate | None = None) -> Iterator[Message]:
    """Yield the messages of a finished MCAP file in the order they were written.

    Where `tolerate` is given, it is told of each bad chunk and the others are read.
    """
    if data[:8] != MAGIC:
        raise Malformed("it does not begin like an MCAP file")
    if len(data) < 8 + FOOTER_SIZE + 8 or data[-8:] != MAGIC:
        raise Malformed("it does not end like an MCAP file, so it was cut off")
    summary = Announced()
    try:
        promised = _read_summary(data, summary)
        if tolerate is not None:  # the chunk that announces may be the bad one
            announced.schemas.update(summary.schemas)
            announced.channels.update(summary.channels)
    except Malformed as error:
        if tolerate is None:
            raise
        promised = None
        tolerate(error)
    found = 0
    for message in _walk_data(data, announced, tolerate):
        found += 1
        yield message
    if promised is not None and found != promised:
        mismatch = Malformed(f"it holds {found} messages and its summary counts {promised}")
        if tolerate is None:
            raise mismatch
        tolerate(mismatch)


def _walk_data(data: memoryview, announced: Announced, tolerate: Tolerate | None) -> Iterator[Message]:
    for opcode, body in _records(data[:-8], 8):
        if opcode == MESSAGE:
            yield _message(body, announced)
        elif opcode == CHUNK:
            try:
                messages = list(_chunk_messages(body, announced))
            except Malformed as error:
                if tolerate is None:
                    raise
                tolerate(error)
                continue
            yield from messages
        elif opcode in (SCHEMA, CHANNEL, METADATA):
            _announce(opcode, body, announced)
        elif opcode in (DATA_END, FOOTER):
            return


def _chunk_messages(body: memoryview, announced: Announced) -> Iterator[Message]:
    for opcode, record_body in _records(chunk_records(body), 0):
        if opcode == MESSAGE:
            yield _message(record_body, announced)
        elif opcode in (SCHEMA, CHANNEL):
            _announce(opcode, record_body, announced)
        else:
            raise Malformed(f"a chunk holds a record with opcode {opcode}")


def _read_summary(data: memoryview, announced: Announced) -> int | None:
    """Learn schemas and channels from the summary and return how many messages it counts, if it does."""
    footer = len(data) - 8 - FOOTER_SIZE
    if RECORD_HEAD.unpack_from(data, footer) != (FOOTER, FOOTER_SIZE - 9):
        raise Malformed("it has no footer, so it was cut off")
    start, _, crc = struct.unpack_from("<QQI", data, footer + 9)
    if not start:
        return None
    if not 8 < start <= footer:
        raise Malformed(f"its summary begins at byte {start} of {len(data)}")
    if crc and zlib.crc32(data[start : footer + 25]) != crc:
        raise Malformed("the checksum of its summary does not match")
    count = None
    for opcode, body in _records(data[:footer], start):
        if opcode in (SCHEMA, CHANNEL):
            _announce(opcode, body, announced)
        elif opcode == STATISTICS:
            count = _Fields(body).number(8)
    return count


def walk_journal(data: memoryview, announced: Announced) -> Iterator[Message]:
    """Yield the messages of a file that was never finished, up to its last whole record."""
    if data[:8] != MAGIC:
        return
    offset = 8
    while len(data) - offset >= 9:
        opcode, size = RECORD_HEAD.unpack_from(data, offset)
        if opcode == CHUNK:
            # Its sizes may not have been filled in: the records inside are walked through as if they lay outside.
            offset += CHUNK_HEAD.size
            continue
        if opcode not in (*_INSIDE_CHUNK, HEADER, METADATA, MESSAGE_INDEX) or size > len(data) - offset - 9:
            return
        body = data[offset + 9 : offset + 9 + size]
        try:
            if opcode == MESSAGE:
                yield _message(body, announced)
            else:
                _announce(opcode, body, announced)
        except Malformed:
            return
        offset += 9 + size
