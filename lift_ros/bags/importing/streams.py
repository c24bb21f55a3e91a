"""Topics of a bag as streams over time: rows of numbers, moments of messages and moments of triggers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray, IntArray
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
    values: FloatArray


@dataclass(slots=True)
class Ticks:
    """When the messages of a topic were sent, in order of time, and when each was received."""

    times: IntArray
    received: IntArray


@dataclass(slots=True)
class Streams:
    """All streams that a mapping names."""

    observation: list[Stream]
    position: list[Stream]
    reward: list[Stream]
    goal: list[Stream]
    action: Stream | None
    image: Ticks | None
    clock: IntArray | None  # when samples are taken; None where they are taken at a rate


def _has_header(bag: ForeignBag, topic: str) -> bool:
    header = dict(bag.types(topic).fielddefs[bag.typename(topic)][1]).get("header")
    return header is not None and header[1] == "std_msgs/msg/Header"


def _require_header(bag: ForeignBag, topic: str, stamp: str) -> None:
    if stamp == "header" and not _has_header(bag, topic):
        raise UserError(f"topic {topic} ({bag.typename(topic)}) has no header; use time.stamp: received")


def _time_of(received: int, message: Any, stamp: str) -> int:
    if stamp == "received":
        return received
    at = message.header.stamp
    return int(at.sec) * 1_000_000_000 + int(at.nanosec)


def read_numbers(bag: ForeignBag, source: MappedTopic, stamp: str) -> Stream:
    """Read the numbers of one topic; messages that have none of the expected size are dropped and counted."""
    topic = source.topic
    paths = tuple(check_path(bag.types(topic), topic, bag.typename(topic), field) for field in source.fields)
    _require_header(bag, topic, stamp)
    times: list[int] = []
    rows: list[FloatArray] = []
    for received, message in bag.decoded(topic):
        try:
            row = numbers_at(message, paths)
        except LookupError:
            bag.dropped[f"{topic}: array is too short or lacks the name"] += 1
            continue
        if rows and row.size != rows[0].size:
            bag.dropped[f"{topic}: number of values differs from the first message"] += 1
            continue
        if row.size > LARGEST_VECTOR:
            raise UserError(
                f"topic {topic}: {', '.join(source.fields)} give {row.size} values, at most {LARGEST_VECTOR} "
                f"can be recorded; choose elements, for example {source.fields[0]}[0:3]"
            )
        times.append(_time_of(received, message, stamp))
        rows.append(row)
    if not rows:
        reasons = "; ".join(f"{count}x {reason}" for reason, count in bag.dropped.items())
        raise UserError(f"bag {bag.path}: topic {topic} gives no values{f' ({reasons})' if reasons else ''}")
    stamps = np.asarray(times, dtype=np.int64)
    order = np.argsort(stamps, kind="stable")
    return Stream(stamps[order], np.vstack(rows)[order])


def read_times(bag: ForeignBag, topic: str, stamp: str) -> Ticks:
    """Read only when a topic's messages were sent."""
    if stamp == "received":
        pairs = [(time, time) for time, _ in bag.messages(topic)]
    else:
        _require_header(bag, topic, stamp)
        pairs = [(_time_of(time, message, stamp), time) for time, message in bag.decoded(topic)]
    times, received = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    order = np.argsort(times, kind="stable")
    return Ticks(times[order], received[order])


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
    for received, message in bag.decoded(topic):
        try:
            true = bool(CONDITIONS[trigger.condition](value_at(message, path), trigger.limit))
        except (LookupError, TypeError, ValueError):
            raise UserError(
                f"topic {topic}: field {trigger.field!r} cannot be compared with {trigger.limit!r} "
                f"({trigger.condition})"
            ) from None
        found.append((_time_of(received, message, clock), true))
    found.sort(key=lambda entry: entry[0])
    before = [False, *(true for _, true in found)]
    return np.asarray([t for (t, true), was in zip(found, before, strict=False) if true and not was], dtype=np.int64)


def clocked_by_action(mapping: Mapping) -> bool:
    """Whether a sample is taken with each command."""
    action, timing = mapping.action.channel, mapping.time
    return action is not None and timing.rate is None and timing.topic in (None, action.topic)


def read_streams(bag: ForeignBag, mapping: Mapping) -> Streams:
    """Read every topic that the mapping names once."""
    stamp, command = mapping.time.stamp, mapping.action.channel

    def read_all(sources: tuple[MappedTopic, ...]) -> list[Stream]:
        return [read_numbers(bag, source, stamp) for source in sources]

    streams = Streams(
        observation=read_all(mapping.observation),
        position=read_all(mapping.position),
        reward=read_all(mapping.reward if isinstance(mapping.reward, tuple) else ()),
        goal=read_all(mapping.goal.channels),
        action=None if command is None else read_numbers(bag, command, stamp),
        image=None if mapping.image is None else read_times(bag, mapping.image, stamp),
        clock=None,
    )
    if mapping.time.topic is not None and not clocked_by_action(mapping):
        streams.clock = np.unique(read_times(bag, mapping.time.topic, stamp).times)
    elif mapping.time.rate is None:
        streams.clock = np.unique((streams.action or streams.position[0]).times)
    _check_sizes(mapping, streams)
    return streams


def _check_sizes(mapping: Mapping, streams: Streams) -> None:
    groups = {"observation": streams.observation, "position": streams.position, "reward": streams.reward}
    sizes = {name: sum(stream.values.shape[1] for stream in group) for name, group in groups.items()}
    for name in ("observation", "position"):
        if sizes[name] > LARGEST_VECTOR:
            raise UserError(f"mapping: {name} has {sizes[name]} values, at most {LARGEST_VECTOR} can be recorded")
    if sizes["reward"] > 1:
        raise UserError("mapping: reward must be one number; choose one field")
    if mapping.action.meaning == "target" and mapping.action.channel and streams.action:
        size = streams.action.values.shape[1]
        if size != sizes["position"]:
            raise UserError(
                f"mapping: the target on {mapping.action.channel.topic} has {size} values and the position "
                f"{sizes['position']}; they must agree"
            )
