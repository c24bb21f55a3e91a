"""Samples of a bag in time: when they are taken, which belong together, and what was commanded between two of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.bags.importing.mapping import DIFFERENCE, Mapping, Separation
from lift_ros.bags.importing.streams import (
    LARGEST_VECTOR,
    Bag,
    Stream,
    Ticks,
    read_channel,
    read_channels,
    read_events,
    read_times,
)
from lift_ros.errors import UserError

SECOND = 1_000_000_000
LARGEST_GRID = 5_000_000
EARLIEST, LATEST = -(2**62), 2**62  # open ends that still leave room to add and subtract


@dataclass(slots=True)
class Streams:
    """All streams that a mapping names."""

    observation: list[Stream]
    position: list[Stream]
    reward: list[Stream]
    action: Stream | None
    goal: list[Stream]
    image: Ticks | None


@dataclass(slots=True)
class Segment:
    """A stretch of time that may hold an episode, and whether its end was marked."""

    start: int
    stop: int
    ended: bool


@dataclass(slots=True)
class Samples:
    """Consecutive samples of one episode; the last one shows what the last action led to."""

    times: IntArray
    observation: FloatArray
    position: FloatArray
    reward: FloatArray
    image: IntArray  # rows of the image topic, empty where none is mapped
    until: int  # up to when signals still belong to these samples
    ended: bool

    def take(self, rows: IntArray | slice) -> Samples:
        """Return some of the samples."""
        image = self.image[rows] if self.image.size else self.image
        return Samples(
            self.times[rows],
            self.observation[rows],
            self.position[rows],
            self.reward[rows],
            image,
            self.until,
            self.ended,
        )


def match(stamps: IntArray, at: IntArray, rule: str, tolerance: int) -> IntArray:
    """Return for each moment the row of `stamps` that the rule picks, or -1 where none is within the tolerance."""
    before = np.searchsorted(stamps, at, side="right") - 1
    rows = before.copy()
    if rule == "nearest":
        after = np.minimum(before + 1, stamps.size - 1)
        first = np.maximum(before, 0)
        rows = np.where(np.abs(stamps[after] - at) < np.abs(at - stamps[first]), after, first)
    far = (rows < 0) | (np.abs(at - stamps[np.maximum(rows, 0)]) > tolerance)
    return np.where(far, -1, rows).astype(np.int64)


def split_at_gaps(times: IntArray, gap: float | None) -> list[IntArray]:
    """Return rows of `times`, cut wherever two neighbours are more than `gap` seconds apart."""
    rows = np.arange(times.size)
    if gap is None or times.size == 0:
        return [rows] if times.size else []
    return np.split(rows, np.nonzero(np.diff(times) > gap * SECOND)[0] + 1)


def find_segments(bag: Bag, separation: Separation, stamp: str) -> list[Segment]:
    """Return the stretches between start and end triggers; one open stretch where there are no triggers."""
    starts = None if separation.start is None else read_events(bag, separation.start, stamp)
    ends = None if separation.end is None else read_events(bag, separation.end, stamp)
    for trigger, events in ((separation.start, starts), (separation.end, ends)):
        if trigger is not None and events is not None and events.size == 0:
            raise UserError(f"bag {bag.path}: the trigger on topic {trigger.topic} never happens; check its condition")
    if starts is None and ends is None:
        return [Segment(EARLIEST, LATEST, True)]
    if starts is None:
        assert ends is not None
        bounds = [EARLIEST, *(int(end) + 1 for end in ends)]
        segments = [Segment(begin, int(end), True) for begin, end in zip(bounds, ends, strict=False)]
        return [*segments, Segment(bounds[-1], LATEST, False)]
    segments = []
    for begin, following in zip(starts, [*starts[1:], LATEST], strict=True):
        stop, ended = int(following) - 1, ends is None
        if ends is not None:
            later = ends[(ends > begin) & (ends < following)]
            if later.size:
                stop, ended = int(later[0]), True
        segments.append(Segment(int(begin), stop, ended))
    return segments


def read_streams(bag: Bag, mapping: Mapping) -> Streams:
    """Read every topic that the mapping names once."""
    stamp = mapping.time.stamp
    reward = mapping.reward if isinstance(mapping.reward, tuple) else ()
    action = mapping.action.channel
    streams = Streams(
        read_channels(bag, mapping.observation, stamp),
        read_channels(bag, mapping.position, stamp),
        read_channels(bag, reward, stamp),
        None if action is None else read_channel(bag, action, stamp),
        read_channels(bag, mapping.goal.channels, stamp),
        None if mapping.image is None else read_times(bag, mapping.image, stamp),
    )
    for name, group in (("observation", streams.observation), ("position", streams.position)):
        size = sum(stream.values.shape[1] for stream in group)
        if size > LARGEST_VECTOR:
            raise UserError(f"mapping: {name} has {size} values, at most {LARGEST_VECTOR} can be recorded")
    if sum(stream.values.shape[1] for stream in streams.reward) > 1:
        raise UserError("mapping: reward must be one number; choose one field")
    if mapping.action.meaning == "target" and streams.action is not None:
        size = sum(stream.values.shape[1] for stream in streams.position)
        if streams.action.values.shape[1] != size:
            raise UserError(
                f"mapping: the target on {action.topic if action else ''} has {streams.action.values.shape[1]} values "
                f"and the position {size}; they must agree"
            )
    return streams


def sample_times(bag: Bag, mapping: Mapping, streams: Streams, segment: Segment) -> IntArray:
    """Return when samples are taken in a segment: at a rate, with a topic, or with each action or position."""
    timing = mapping.time
    if timing.rate is not None:
        used = [*streams.observation, *streams.position]
        start = max(segment.start, max(int(stream.times[0]) for stream in used))
        stop = min(segment.stop, max(int(stream.times[-1]) for stream in used))
        count = int((stop - start) * timing.rate / SECOND) + 1 if stop >= start else 0
        if count > LARGEST_GRID:
            raise UserError(
                f"mapping: time.rate {timing.rate:g} asks for {count} samples over {(stop - start) / SECOND:.0f} s, "
                f"more than {LARGEST_GRID}; lower it, or check the time stamps of the bag"
            )
        return start + np.round(np.arange(count) * (SECOND / timing.rate)).astype(np.int64)
    if timing.topic is not None and (mapping.action.channel is None or timing.topic != mapping.action.channel.topic):
        times = read_times(bag, timing.topic, timing.stamp).times
    elif streams.action is not None:
        times = streams.action.times
    else:
        times = streams.position[0].times
    return np.unique(times[(times >= segment.start) & (times <= segment.stop)])


def _clocked_by_action(mapping: Mapping) -> bool:
    if mapping.action.channel is None or mapping.time.rate is not None:
        return False
    return mapping.time.topic in (None, mapping.action.channel.topic)


def _with_end(times: IntArray, usual: int, stop: int) -> IntArray:
    """Add the moment that shows what the last action led to: one usual period later, but inside the segment."""
    period = int(np.median(np.diff(times))) if times.size > 1 else usual
    end = min(int(times[-1]) + period, stop)
    return np.append(times, end) if end > times[-1] else times


def _match_all(
    mapping: Mapping, streams: Streams, times: IntArray, until: int, ended: bool, dropped: Counter[str]
) -> Samples:
    """Match every stream to the sample times and leave out samples that miss something."""
    timing = mapping.time
    tolerance = round(timing.tolerance * SECOND)
    good = np.ones(times.size, dtype=bool)

    def columns(name: str, group: list[Stream], needed: npt.NDArray[np.bool_]) -> FloatArray:
        parts = []
        for stream in group:
            rows = match(stream.times, times, timing.match, tolerance)
            values = np.where(rows[:, None] < 0, np.nan, stream.values[rows])
            missing = needed & (rows < 0)
            broken = needed & (rows >= 0) & ~np.isfinite(values).all(axis=1)
            dropped[f"sample without {name} within {timing.tolerance:g} s"] += int((missing & good).sum())
            good[missing] = False
            dropped[f"sample whose {name} is not finite"] += int((broken & good).sum())
            good[broken] = False
            parts.append(values)
        return np.hstack(parts) if parts else np.empty((times.size, 0))

    stale = np.zeros(times.size, dtype=bool)
    seen = [stream.times for stream in (*streams.observation, *streams.position)]
    seen += [] if streams.image is None else [streams.image.times]
    if times.size:
        picked = np.stack([match(stamps, times, timing.match, tolerance) for stamps in seen])
        stale[1:] = (picked[:, 1:] == picked[:, :-1]).all(axis=0) & (picked[:, 1:] >= 0).all(axis=0)
    # The effect of a command is not visible yet; the action to the next sample takes in what was commanded here.
    dropped["sample that sees nothing new"] += int(stale.sum())
    good &= ~stale
    always = np.ones(times.size, dtype=bool)
    after_a_step = np.arange(times.size) > 0
    observation = columns("observation", streams.observation, always)
    position = columns("position", streams.position, always)
    reward = columns("reward", streams.reward, after_a_step)
    image = np.empty(0, dtype=np.int64)
    if streams.image is not None:
        image = match(streams.image.times, times, timing.match, tolerance)
        dropped[f"sample without image within {timing.tolerance:g} s"] += int(((image < 0) & good).sum())
        good &= image >= 0
    everything = Samples(times, observation, position, reward, image, until, ended)
    return everything.take(np.nonzero(good)[0])


def moving_rows(position: FloatArray, least: float) -> IntArray:
    """Return the rows that lie at least `least` away from the last row kept."""
    kept = [0]
    for row in range(1, len(position)):
        if np.linalg.norm(position[row] - position[kept[-1]]) >= least:
            kept.append(row)
    return np.asarray(kept, dtype=np.int64)


def episode_samples(bag: Bag, mapping: Mapping, streams: Streams, dropped: Counter[str]) -> Iterator[Samples]:
    """Yield the samples of each episode in order of time."""
    segments = find_segments(bag, mapping.episodes, mapping.time.stamp)
    clock = sample_times(bag, mapping, streams, Segment(EARLIEST, LATEST, True))
    usual = int(np.median(np.diff(clock))) if clock.size > 1 else 0
    inside = 0
    for segment in segments:
        times = sample_times(bag, mapping, streams, segment)
        inside += times.size
        groups = [times[rows] for rows in split_at_gaps(times, mapping.episodes.gap)]
        for number, group in enumerate(groups):
            until = int(groups[number + 1][0]) - 1 if number + 1 < len(groups) else segment.stop
            wanted = _with_end(group, usual, until) if _clocked_by_action(mapping) else group
            samples = _match_all(mapping, streams, wanted, until, segment.ended, dropped)
            for rows in split_at_gaps(samples.times, mapping.episodes.gap):
                part = samples.take(rows)
                if mapping.time.skip_still:
                    moving = moving_rows(part.position, mapping.time.skip_still)
                    dropped[f"sample within {mapping.time.skip_still:g} of the one before"] += rows.size - moving.size
                    part = part.take(moving)
                yield part
    if mapping.time.rate is None:
        dropped["sample outside of every episode"] += int(clock.size) - inside


def actions_between(mapping: Mapping, stream: Stream | None, samples: Samples) -> FloatArray:
    """Return what was commanded from each sample to the next; NaN where nothing was commanded yet."""
    meaning = mapping.action.meaning
    if meaning == DIFFERENCE or stream is None:
        return np.diff(samples.position, axis=0)
    times = samples.times
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
