"""Topics of a bag as streams over time, and samples of them: which belong together, what was commanded between two."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.bags.importing.foreign_bag import ForeignBag, check_path, value_at
from lift_ros.bags.importing.mapping import CONDITIONS, DIFFERENCE, MappedTopic, Mapping, Separation, Trigger
from lift_ros.errors import UserError

SECOND = 1_000_000_000
LARGEST_GRID = 5_000_000
SAMPLED = ("observation", "position", "reward", "image")
EARLIEST, LATEST = -(2**62), 2**62  # open ends that still leave room to add and subtract
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
            yield int(at.sec) * SECOND + int(at.nanosec), received, message


def read_numbers(bag: ForeignBag, source: MappedTopic, stamp: str) -> Stream:
    """Read the numbers of one topic; messages that have none of the expected size are dropped and counted."""
    topic = source.topic
    paths = tuple(check_path(bag, topic, field) for field in source.fields)
    times: list[int] = []
    rows: list[Any] = []
    for time, _, message in _timed(bag, topic, stamp):
        try:
            row = np.concatenate([np.asarray(value_at(message, path), float).ravel() for path in paths])
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
    path = check_path(bag, topic, trigger.field, numeric=False)
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


@dataclass(frozen=True, slots=True)
class EpisodeSpan:
    """A stretch of time that may hold an episode, and whether its end was marked."""

    start: int
    stop: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Samples:
    """Consecutive samples of one episode; the last one shows what the last action led to."""

    span: EpisodeSpan  # up to its end signals still belong to these samples
    times: IntArray
    columns: dict[str, npt.NDArray[Any]]  # one row per sample of all that SAMPLED names

    @property
    def position(self) -> FloatArray:
        """Where the plant was."""
        return self.columns["position"]

    def take(self, rows: IntArray | slice) -> Samples:
        """Return some of the samples."""
        return Samples(self.span, self.times[rows], {name: values[rows] for name, values in self.columns.items()})


def match(stamps: IntArray, at: IntArray, rule: str, tolerance: int) -> IntArray:
    """Return for each moment the row of `stamps` that the rule picks, or -1 where none is within the tolerance."""
    rows = np.searchsorted(stamps, at, side="right") - 1
    if rule == "nearest":
        after, first = np.minimum(rows + 1, stamps.size - 1), np.maximum(rows, 0)
        rows = np.where(np.abs(stamps[after] - at) < np.abs(at - stamps[first]), after, first)
    far = (rows < 0) | (np.abs(at - stamps[np.maximum(rows, 0)]) > tolerance)
    return np.where(far, -1, rows).astype(np.int64)


def split_at_gaps(times: IntArray, gap: float | None) -> list[IntArray]:
    """Return rows of `times`, cut wherever two neighbours are more than `gap` seconds apart."""
    if times.size == 0:
        return []
    far = np.diff(times) > (np.inf if gap is None else gap * SECOND)
    return np.split(np.arange(times.size), np.nonzero(far)[0] + 1)


def find_spans(bag: ForeignBag, separation: Separation, stamp: str) -> list[EpisodeSpan]:
    """Return the stretches between start and end triggers; one open stretch where there are no triggers."""

    def moments(trigger: Trigger | None) -> IntArray | None:
        if trigger is None:
            return None
        events = read_events(bag, trigger, stamp)
        if events.size == 0:
            raise UserError(f"bag {bag.path}: the trigger on topic {trigger.topic} never happens; check its condition")
        return events

    starts, ends = moments(separation.start), moments(separation.end)
    if starts is None:
        # What is not started begins where the one before ended.
        starts = np.asarray([EARLIEST] if ends is None else [EARLIEST, *(ends + 1)])
    spans = []
    for start, following in zip(starts, [*starts[1:], LATEST], strict=True):
        within = [] if ends is None else ends[(ends > start) & (ends < following)]
        stop = within[0] if len(within) else following - 1
        spans.append(EpisodeSpan(int(start), int(stop), ended=ends is None or len(within) > 0))
    return spans


def sample_times(rate: float, streams: Streams, span: EpisodeSpan) -> IntArray:
    """Return when samples are taken in a span at a rate."""
    used = [*streams["observation"], *streams["position"]]
    start = max(span.start, max(int(stream.times[0]) for stream in used))
    stop = min(span.stop, max(int(stream.times[-1]) for stream in used))
    count = int((stop - start) * rate / SECOND) + 1 if stop >= start else 0
    if count > LARGEST_GRID:
        problem = f"{count} samples over {(stop - start) / SECOND:.0f} s, more than {LARGEST_GRID}"
        remedy = "lower it, or check the time stamps of the bag"
        raise UserError(f"mapping: time.rate {rate:g} asks for {problem}; {remedy}")
    return start + np.round(np.arange(count) * (SECOND / rate)).astype(np.int64)


def _with_end(times: IntArray, usual: int, stop: int) -> IntArray:
    """Add the moment that shows what the last action led to: one usual period later, but inside the span."""
    period = int(np.median(np.diff(times))) if times.size > 1 else usual
    end = min(int(times[-1]) + period, stop)
    return np.append(times, end) if end > times[-1] else times


def match_streams(
    mapping: Mapping, streams: Streams, times: IntArray, span: EpisodeSpan, dropped: Counter[str]
) -> Samples:
    """Match every stream to the sample times and leave out samples that miss something."""
    timing = mapping.time
    tolerance = round(timing.tolerance * SECOND)
    picked = {
        name: [match(stream.times, times, timing.match, tolerance) for stream in streams[name]] for name in SAMPLED
    }
    good = np.ones(times.size, dtype=bool)

    def leave_out(bad: npt.NDArray[np.bool_], reason: str) -> None:
        dropped[reason] += int((bad & good).sum())
        good[bad] = False

    # The effect of a command is not visible yet; the action to the next sample takes in what was commanded here.
    seen = np.stack([rows for name in SAMPLED if name != "reward" for rows in picked[name]])
    leave_out((np.diff(seen, prepend=-1) == 0).all(axis=0) & (seen >= 0).all(axis=0), "sample that sees nothing new")
    columns = {}
    for name, group in picked.items():
        needed = np.arange(times.size) >= (name == "reward")  # there is no reward before the first step
        parts = [stream.values[rows] for stream, rows in zip(streams[name], group, strict=True)]
        for rows, values in zip(group, parts, strict=True):
            leave_out(needed & (rows < 0), f"sample without {name} within {timing.tolerance:g} s")
            leave_out(needed & ~np.isfinite(values).all(axis=1), f"sample whose {name} is not finite")
        columns[name] = np.hstack(parts) if parts else np.empty((times.size, 0))
    return Samples(span, times, columns).take(np.nonzero(good)[0])


def moving_rows(position: FloatArray, least: float) -> IntArray:
    """Return the rows that lie at least `least` away from the last row kept."""
    kept = [0]
    for row in range(1, len(position)):
        if np.linalg.norm(position[row] - position[kept[-1]]) >= least:
            kept.append(row)
    return np.asarray(kept, dtype=np.int64)


def find_samples(bag: ForeignBag, mapping: Mapping, streams: Streams, dropped: Counter[str]) -> Iterator[Samples]:
    """Yield the samples of each episode in order of time."""
    gap, still, rate = mapping.episodes.gap, mapping.time.skip_still, mapping.time.rate
    clock = np.unique((streams["clock"] or streams["action"] or streams["position"])[0].times)
    usual = int(np.median(np.diff(clock))) if clock.size > 1 else 0
    inside = 0
    for span in find_spans(bag, mapping.episodes, mapping.time.stamp):
        if rate is None:
            times = clock[(clock >= span.start) & (clock <= span.stop)]
        else:
            times = sample_times(rate, streams, span)
        inside += times.size
        groups = [times[rows] for rows in split_at_gaps(times, gap)]
        for group, following in itertools.zip_longest(groups, groups[1:]):
            stop = span.stop if following is None else int(following[0]) - 1
            wanted = _with_end(group, usual, stop) if mapping.clocked_by_action else group
            samples = match_streams(mapping, streams, wanted, replace(span, stop=stop), dropped)
            for rows in split_at_gaps(samples.times, gap):
                part = samples.take(rows)
                if still:
                    moving = moving_rows(part.position, still)
                    dropped[f"sample within {still:g} of the one before"] += rows.size - moving.size
                    part = part.take(moving)
                yield part
    if rate is None:
        dropped["sample outside of every episode"] += clock.size - inside


def actions_between(mapping: Mapping, streams: Streams, samples: Samples) -> FloatArray:
    """Return what was commanded from each sample to the next; NaN where nothing was commanded yet."""
    meaning, times = mapping.action.meaning, samples.times
    if meaning == DIFFERENCE:
        return np.diff(samples.position, axis=0)
    (stream,) = streams["action"]
    first = np.searchsorted(stream.times, times, side="left")
    if meaning == "target":
        last = first[1:] - 1
        targets = np.where(last[:, None] < 0, np.nan, stream.values[last])
        return np.asarray(targets - samples.position[:-1])
    pairs = list(itertools.pairwise(first))
    if meaning == "increment":
        return np.vstack([stream.values[begin:end].sum(axis=0) for begin, end in pairs])
    return np.vstack([_integral(stream, times[i], times[i + 1], begin, end) for i, (begin, end) in enumerate(pairs)])


def _integral(stream: Stream, start: int, stop: int, begin: int, end: int) -> FloatArray:
    """Integrate velocities that hold until the next message; before the first message nothing moves."""
    knots = np.concatenate([[start], stream.times[begin:end], [stop]])
    held = stream.values[begin - 1] if begin > 0 else np.zeros(stream.values.shape[1])
    values = np.vstack([held[None, :], stream.values[begin:end]])
    return np.asarray((values * (np.diff(knots)[:, None] / SECOND)).sum(axis=0))
