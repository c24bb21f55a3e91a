"""Topics of a bag as streams over time: rows of numbers, moments of messages and moments of triggers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import IntArray
from lift_ros.bags.importing.fields import check_path, numbers_at, value_at
from lift_ros.bags.importing.foreign_bag import ForeignBag
from lift_ros.bags.importing.mapping import CONDITIONS, MappedTopic, Mapping, Trigger
from lift_ros.errors import UserError

LARGEST_VECTOR = 64  # what Step.msg can hold
_EVENT_TYPE = slice(4, 5)  # the CDR header is 4 bytes long, then comes ServiceEventInfo.event_type


@dataclass(slots=True)
class Stream:
    """What a topic said and when, in order of time: one row of values per message."""

    times: IntArray
    values: npt.NDArray[Any]


Streams = dict[str, list[Stream]]  # all that a mapping names, by what it is


def _stream(bag: ForeignBag, topic: str, times: list[int], rows: list[Any]) -> Stream:
    """Return what was read in order of time, or say why there is nothing."""
    if not rows:
        reasons = "; ".join(f"{count}x {reason}" for reason, count in bag.dropped.items())
        raise UserError(f"bag {bag.path}: topic {topic} gives no values{f' ({reasons})' if reasons else ''}")
    order = np.argsort(times, kind="stable")
    return Stream(np.asarray(times, dtype=np.int64)[order], np.asarray(rows)[order])


def _has_header(bag: ForeignBag, topic: str) -> bool:
    header = dict(bag.types(topic).fielddefs[bag.typename(topic)][1]).get("header")
    return header is not None and header[1] == "std_msgs/msg/Header"


def _timed(bag: ForeignBag, topic: str, stamp: str) -> Iterator[tuple[int, int, Any]]:
    """Yield when each message counts as sent, when it was received, and the message."""
    if stamp == "header" and not _has_header(bag, topic):
        raise UserError(f"topic {topic} ({bag.typename(topic)}) has no header; use time.stamp: received")
    for received, message in bag.decoded(topic):
        if stamp == "received":
            yield received, received, message
        else:
            at = message.header.stamp
            yield int(at.sec) * 1_000_000_000 + int(at.nanosec), received, message


def read_numbers(bag: ForeignBag, source: MappedTopic, stamp: str) -> Stream:
    """Read the numbers of one topic; messages that have none of the expected size are dropped and counted."""
    topic = source.topic
    paths = tuple(check_path(bag.types(topic), topic, bag.typename(topic), field) for field in source.fields)
    times: list[int] = []
    rows: list[Any] = []
    for time, _, message in _timed(bag, topic, stamp):
        try:
            row = numbers_at(message, paths)
        except LookupError:
            bag.dropped[f"{topic}: array is too short or lacks the name"] += 1
            continue
        if rows and row.size != rows[0].size:
            bag.dropped[f"{topic}: number of values differs from the first message"] += 1
            continue
        if row.size > LARGEST_VECTOR:
            problem = f"{', '.join(source.fields)} give {row.size} values, at most {LARGEST_VECTOR} can be recorded"
            raise UserError(f"topic {topic}: {problem}; choose elements, for example {source.fields[0]}[0:3]")
        times.append(time)
        rows.append(row)
    return _stream(bag, topic, times, rows)


def read_times(bag: ForeignBag, topic: str, stamp: str) -> Stream:
    """Read only when a topic's messages were sent, and as values when they were received."""
    if stamp == "received":
        pairs = [(time, time) for time, _ in bag.messages(topic)]
    else:
        pairs = [(time, received) for time, received, _ in _timed(bag, topic, stamp)]
    return _stream(bag, topic, [time for time, _ in pairs], [[received] for _, received in pairs])


def read_events(bag: ForeignBag, trigger: Trigger, stamp: str) -> IntArray:
    """Return the moments of a trigger: all messages, or those where its condition becomes true."""
    topic = trigger.topic
    if trigger.field is None or trigger.condition is None:
        event = trigger.service_event
        times = [t for t, data in bag.messages(topic) if event is None or data[_EVENT_TYPE] == bytes([event])]
        return np.sort(np.asarray(times, dtype=np.int64))
    path = check_path(bag.types(topic), topic, bag.typename(topic), trigger.field, numeric=False)
    # A topic without header can still trigger: its received time is the best there is.
    clock = stamp if _has_header(bag, topic) else "received"
    found: list[tuple[int, bool]] = []
    for time, _, message in _timed(bag, topic, clock):
        try:
            found.append((time, bool(CONDITIONS[trigger.condition](value_at(message, path), trigger.limit))))
        except (LookupError, TypeError, ValueError):
            problem = f"field {trigger.field!r} cannot be compared with {trigger.limit!r} ({trigger.condition})"
            raise UserError(f"topic {topic}: {problem}") from None
    moments, true = np.asarray(sorted(found, key=lambda entry: entry[0]), dtype=np.int64).reshape(-1, 2).T
    return moments[np.diff(true, prepend=0) > 0]


def read_streams(bag: ForeignBag, mapping: Mapping) -> Streams:
    """Read every topic that the mapping names once; the values of `image` are when its pictures were received."""
    stamp, timer = mapping.time.stamp, mapping.time.topic
    streams = {
        name: [read_numbers(bag, source, stamp) for source in group] for name, group in mapping.sources().items()
    }
    streams["image"] = [] if mapping.image is None else [read_times(bag, mapping.image, stamp)]
    streams["clock"] = [] if timer is None or mapping.clocked_by_action else [read_times(bag, timer, stamp)]
    sizes = {name: sum(stream.values.shape[1] for stream in group) for name, group in streams.items()}
    for name in ("observation", "position"):
        if sizes[name] > LARGEST_VECTOR:
            raise UserError(f"mapping: {name} has {sizes[name]} values, at most {LARGEST_VECTOR} can be recorded")
    if sizes["reward"] > 1:
        raise UserError("mapping: reward must be one number; choose one field")
    if mapping.action.meaning == "target" and mapping.action.channel and sizes["action"] != sizes["position"]:
        found = f"{sizes['action']} values and the position {sizes['position']}"
        raise UserError(f"mapping: the target on {mapping.action.channel.topic} has {found}; they must agree")
    return streams
