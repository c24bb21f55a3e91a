"""Any rosbag as streams of time-stamped numbers, decoded with the definitions that the bag itself holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag2 import Reader as Reader2
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.bags.importing.fields import Part, check_path, numbers_at, undefined_types, value_at
from lift_ros.bags.importing.mapping import CONDITIONS, Channel, Trigger, suggest
from lift_ros.errors import UserError

LARGEST_VECTOR = 64  # what Step.msg can hold
SHOWN_TOPICS = 20
LAST_TIME = 2**62  # [ns], in the year 2116; leaves room to add and subtract
_IDL_SEPARATOR = "=" * 80 + "\n"
_SERVICE_EVENT_TYPE = 4  # the CDR header is 4 bytes long, then comes ServiceEventInfo.event_type


@dataclass(slots=True)
class Stream:
    """What a topic said and when, in order of time: one row of values per message."""

    times: IntArray
    values: FloatArray


@dataclass(slots=True)
class Ticks:
    """When the messages of a topic were sent, in order of time, and when each was received."""

    times: IntArray
    received: IntArray


class Bag:
    """An open bag of ROS 1 or ROS 2 whose topics are decoded on demand.

    Only the definitions of topics that are asked for are parsed, so that a topic nobody needs cannot make a bag
    unreadable (definitions of service events are often incomplete).
    """

    def __init__(self, path: Path, reader: Any, *, ros1: bool) -> None:
        self.path = path
        self.dropped: Counter[str] = Counter()
        self._reader = reader
        self._ros1 = ros1
        self._typestores: dict[str, Typestore] = {}
        self._connections: dict[str, list[Connection]] = {}
        for connection in reader.connections:
            self._connections.setdefault(connection.topic, []).append(connection)

    @property
    def topics(self) -> dict[str, str]:
        """Topic names and their message types."""
        return {topic: connections[0].msgtype for topic, connections in sorted(self._connections.items())}

    def require(self, topic: str) -> list[Connection]:
        """Return the connections of a topic, or say which topics there are."""
        if topic not in self._connections:
            known = self.topics
            shown = [f"{name} ({typename})" for name, typename in list(known.items())[:SHOWN_TOPICS]]
            more = f" and {len(known) - SHOWN_TOPICS} more" if len(known) > SHOWN_TOPICS else ""
            listing = f"Topics: {', '.join(shown)}{more}" if known else "It has no topics"
            raise UserError(f"bag {self.path} has no topic {topic}{suggest(topic, known)} {listing}")
        return self._connections[topic]

    def typestore(self, topic: str) -> Typestore:
        """Return the types needed to decode a topic: from the bag, or the common ones for bags without definitions."""
        if topic not in self._typestores:
            connection = self.require(topic)[0]
            self._typestores[topic] = self._types_of(connection)
        return self._typestores[topic]

    def _types_of(self, connection: Connection) -> Typestore:
        definition = connection.msgdef
        if definition.format == MessageDefinitionFormat.NONE:
            store = get_typestore(Stores.LATEST)
            if connection.msgtype not in store.fielddefs:
                raise UserError(
                    f"bag {self.path} holds no definition of {connection.msgtype} (topic {connection.topic}) and it is "
                    "none of the common types; convert the bag to MCAP where that package is installed: "
                    "ros2 bag convert"
                )
            return store
        store = get_typestore(Stores.EMPTY)
        try:
            if definition.format == MessageDefinitionFormat.MSG:
                store.register(get_types_from_msg(definition.data, connection.msgtype))
            else:
                for text in _idl_parts(definition.data):
                    store.register(get_types_from_idl(text))
        except Exception as error:  # the parsers raise whatever a damaged definition provokes
            raise UserError(
                f"bag {self.path}: the definition of {connection.msgtype} (topic {connection.topic}) cannot be "
                f"parsed: {error}"
            ) from error
        if missing := undefined_types(store, connection.msgtype):
            raise UserError(
                f"bag {self.path}: the definition of {connection.msgtype} (topic {connection.topic}) does not define "
                f"{', '.join(missing)}"
            )
        return store

    def messages(self, topic: str, start: int | None = None, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the received times and raw messages of one topic."""
        connections = self.require(topic)
        try:
            for _, time, data in self._reader.messages(connections, start, stop):
                if 0 <= time <= LAST_TIME:
                    yield time, data
                else:
                    self.dropped[f"{topic}: received at a time that does not exist"] += 1
        except Exception as error:  # readers raise struct, zstd, sqlite and assertion errors on damaged files
            raise UserError(f"bag {self.path} is damaged at topic {topic}: {error!r}; try `mcap recover`") from error

    def decoded(self, topic: str, start: int | None = None, stop: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the received times and decoded messages of one topic; what cannot be decoded is counted."""
        store = self.typestore(topic)
        typename = self.require(topic)[0].msgtype
        decode = store.deserialize_ros1 if self._ros1 else store.deserialize_cdr
        for time, data in self.messages(topic, start, stop):
            try:
                message = decode(data, typename)
            except Exception:  # generated decoders raise struct, index, unicode and assertion errors alike
                self.dropped[f"{topic}: message cannot be decoded"] += 1
                continue
            yield time, message


def _idl_parts(text: str) -> list[str]:
    if not text.startswith(f"{_IDL_SEPARATOR}IDL: "):
        return [text]
    return [part.split("\n", 1)[1] for part in text.split(_IDL_SEPARATOR)[1:]]


@contextmanager
def open_bag(path: Path) -> Iterator[Bag]:
    """Open a rosbag2 directory, a single .mcap or .db3 file, or a ROS 1 .bag."""
    if not path.exists():
        raise UserError(f"bag {path} does not exist")
    if path.is_dir() and not (path / "metadata.yaml").exists():
        files = sorted(entry.name for entry in path.iterdir() if entry.suffix in (".mcap", ".db3"))
        remedy = f"name one of its files instead: {', '.join(files)}" if files else "it is no bag"
        raise UserError(f"bag {path} has no metadata.yaml; {remedy}")
    ros1 = path.suffix == ".bag"
    try:
        reader: Any = Reader1(path) if ros1 else Reader2(path)
        reader.open()
    except Exception as error:  # readers raise struct, zstd, sqlite and assertion errors on files that are no bags
        raise UserError(
            f"bag {path} cannot be opened: {error}; expected .mcap, .db3, .bag or their directory"
        ) from error
    try:
        yield Bag(path, reader, ros1=ros1)
    finally:
        reader.close()


def _has_header(store: Typestore, typename: str) -> bool:
    header = dict(store.fielddefs[typename][1]).get("header")
    return header is not None and header[1] == "std_msgs/msg/Header"


def require_header(bag: Bag, topic: str) -> None:
    """Refuse `stamp: header` for topics whose messages have none."""
    typename = bag.require(topic)[0].msgtype
    if not _has_header(bag.typestore(topic), typename):
        raise UserError(f"topic {topic} ({typename}) has no header; use time.stamp: received")


def _time_of(received: int, message: Any, stamp: str) -> int:
    if stamp == "received":
        return received
    at = message.header.stamp
    return int(at.sec) * 1_000_000_000 + int(at.nanosec)


def _sorted(times: list[int], values: FloatArray) -> Stream:
    stamps = np.asarray(times, dtype=np.int64)
    order = np.argsort(stamps, kind="stable")
    return Stream(stamps[order], values[order])


def read_channel(bag: Bag, channel: Channel, stamp: str) -> Stream:
    """Read the numbers of one channel; messages that have none of the expected size are dropped and counted."""
    typename = bag.require(channel.topic)[0].msgtype
    store = bag.typestore(channel.topic)
    paths: tuple[tuple[Part, ...], ...] = tuple(
        check_path(store, channel.topic, typename, field) for field in channel.fields
    )
    if stamp == "header":
        require_header(bag, channel.topic)
    times: list[int] = []
    rows: list[FloatArray] = []
    for received, message in bag.decoded(channel.topic):
        try:
            row = numbers_at(message, paths)
        except LookupError:
            bag.dropped[f"{channel.topic}: array is too short or lacks the name"] += 1
            continue
        if rows and row.size != rows[0].size:
            bag.dropped[f"{channel.topic}: number of values differs from the first message"] += 1
            continue
        if row.size > LARGEST_VECTOR:
            raise UserError(
                f"topic {channel.topic}: {', '.join(channel.fields)} give {row.size} values, at most {LARGEST_VECTOR} "
                f"can be recorded; choose elements, for example {channel.fields[0]}[0:3]"
            )
        times.append(_time_of(received, message, stamp))
        rows.append(row)
    if not rows:
        reasons = "; ".join(f"{count}x {reason}" for reason, count in bag.dropped.items())
        raise UserError(f"bag {bag.path}: topic {channel.topic} gives no values{f' ({reasons})' if reasons else ''}")
    return _sorted(times, np.vstack(rows))


def read_channels(bag: Bag, channels: Iterable[Channel], stamp: str) -> list[Stream]:
    """Read several channels."""
    return [read_channel(bag, channel, stamp) for channel in channels]


def read_times(bag: Bag, topic: str, stamp: str) -> Ticks:
    """Read only when a topic's messages were sent."""
    if stamp == "received":
        received = np.asarray([time for time, _ in bag.messages(topic)], dtype=np.int64)
        times = received
    else:
        require_header(bag, topic)
        pairs = [(_time_of(time, message, stamp), time) for time, message in bag.decoded(topic)]
        times, received = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    order = np.argsort(times, kind="stable")
    return Ticks(times[order], received[order])


def read_events(bag: Bag, trigger: Trigger, stamp: str) -> IntArray:
    """Return the moments of a trigger: all messages, or those where its condition becomes true."""
    if trigger.service_event is not None:
        kinds = ((time, data[_SERVICE_EVENT_TYPE]) for time, data in bag.messages(trigger.topic) if len(data) > 4)
        return np.asarray(sorted(time for time, kind in kinds if kind == trigger.service_event), dtype=np.int64)
    typename = bag.require(trigger.topic)[0].msgtype
    if trigger.field is None or trigger.condition is None:
        return np.asarray(sorted(time for time, _ in bag.messages(trigger.topic)), dtype=np.int64)
    store = bag.typestore(trigger.topic)
    parts = check_path(store, trigger.topic, typename, trigger.field, numeric=False)
    # A topic without header can still trigger: its received time is the best there is.
    clock = stamp if _has_header(store, typename) else "received"
    holds = CONDITIONS[trigger.condition]
    found: list[tuple[int, bool]] = []
    for received, message in bag.decoded(trigger.topic):
        try:
            true = holds(value_at(message, parts), trigger.limit)
        except (LookupError, TypeError, ValueError):
            raise UserError(
                f"topic {trigger.topic}: field {trigger.field!r} cannot be compared with {trigger.limit!r} "
                f"({trigger.condition})"
            ) from None
        found.append((_time_of(received, message, clock), true))
    found.sort(key=lambda entry: entry[0])
    edges = [
        time for (time, true), (_, before) in zip(found, [(0, False), *found], strict=False) if true and not before
    ]
    return np.asarray(edges, dtype=np.int64)
