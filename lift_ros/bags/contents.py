"""From the messages of one file to episodes, with every rule of a recorded episode checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags import definitions
from lift_ros.bags.cdr import decode_episode, decode_step
from lift_ros.bags.faults import BagError, EpisodeError, Malformed
from lift_ros.bags.scan import Announced, Channel, Message, Tolerate, walk, walk_journal
from lift_ros.collection.records import Episode, Mode, Outcome, Step
from lift_ros.seeds import episode_seed

_STEP_PREFIX = 24  # encapsulation, stamp, empty frame, episode and step
REMEDY = "Restore the file from a copy, or leave bad episodes out with --skip-bad (skip_bad=True)."


@dataclass
class RawEpisode:
    """An episode's messages, not decoded yet."""

    steps: list[memoryview] = field(default_factory=list)
    end: memoryview | None = None
    ends_twice: bool = False


@dataclass
class Dimensions:
    """Sizes that all episodes of a run share."""

    observation: int
    position: int
    action: int


def fields_of(definition: str) -> dict[str, list[str]]:
    """Return the fields per type in a ros2msg definition; comments, constants and layout do not matter."""
    types: dict[str, list[str]] = {"": []}
    current = ""
    for line in definition.splitlines():
        line = line.split("#", 1)[0].strip()
        if line.startswith("MSG:"):
            current = line[4:].strip().replace("/msg/", "/")
            types[current] = []
        elif line and not line.startswith("===") and "=" not in line.replace("<=", ""):
            types[current].append(re.sub(r"\s+", " ", line.replace("/msg/", "/")))
    return types


_KNOWN = {
    definitions.STEP_TOPIC: (definitions.STEP_TYPE, fields_of(definitions.STEP_DEFINITION)),
    definitions.EPISODE_TOPIC: (definitions.EPISODE_TYPE, fields_of(definitions.EPISODE_DEFINITION)),
}


def check_schema(channel: Channel, bag: Path) -> None:
    """Refuse a topic of ours that was written with another definition."""
    type_name, known = _KNOWN[channel.topic]
    if channel.type_name == type_name and channel.encoding == "cdr" and fields_of(channel.definition) == known:
        return
    difference = channel.type_name
    if channel.type_name == type_name:
        lines = set(chain(*fields_of(channel.definition).values())) ^ set(chain(*known.values()))
        difference = f"{type_name} with other fields ({', '.join(sorted(lines)[:4]) or 'another order'})"
    raise BagError(
        f"topic {channel.topic} is {difference} and not the {type_name} of this version",
        bag=bag,
        remedy="Read it with the version of lift_ros that recorded it, or convert it with `lift import`.",
    )


def group(messages: Iterable[Message], bag: Path, tolerate: Tolerate | None = None) -> dict[int, RawEpisode]:
    """Sort a file's messages into episodes, in the order they were written."""
    episodes: dict[int, RawEpisode] = {}
    checked: set[int] = set()
    for message in messages:
        channel = message.channel
        if channel.topic not in _KNOWN:
            continue
        if id(channel) not in checked:
            check_schema(channel, bag)
            checked.add(id(channel))
        try:
            _sort_in(message, episodes)
        except Malformed as error:
            if tolerate is None:
                raise
            tolerate(error)
    return episodes


def _sort_in(message: Message, episodes: dict[int, RawEpisode]) -> None:
    if message.channel.topic == definitions.STEP_TOPIC:
        episodes.setdefault(_episode_of_step(message.data), RawEpisode()).steps.append(message.data)
        return
    number = decode_episode(message.data).episode.index
    raw = episodes.setdefault(number, RawEpisode())
    if raw.end is not None:
        raw.ends_twice = True
    raw.end = message.data


def _episode_of_step(data: memoryview) -> int:
    """Return the episode of a step without decoding the rest where its layout is the usual one."""
    if len(data) >= _STEP_PREFIX and data[1] == 1 and bytes(data[12:17]) == b"\1\0\0\0\0":
        return int.from_bytes(data[20:24], "little")
    return decode_step(data).episode


def read_finished(path: Path, announced: Announced, tolerate: Tolerate | None = None) -> dict[int, RawEpisode]:
    """Return the episodes of a finished file."""
    with _located(path):
        return group(walk(memoryview(path.read_bytes()), announced, tolerate), path, tolerate)


def read_journal(path: Path, announced: Announced) -> dict[int, RawEpisode]:
    """Return the episodes of a file under way; the last may have no end."""
    with _located(path):
        return group(journal_messages(memoryview(path.read_bytes()), announced), path)


def journal_messages(data: memoryview, announced: Announced) -> Iterator[Message]:
    """Yield the messages of a file under way up to the last that is whole and can be decoded."""
    decoders: dict[str, Callable[[memoryview], object]] = {
        definitions.STEP_TOPIC: decode_step,
        definitions.EPISODE_TOPIC: decode_episode,
    }
    for message in walk_journal(data, announced):
        decode = decoders.get(message.channel.topic)
        try:
            if decode is not None:
                decode(message.data)
        except Malformed:
            return
        yield message


@contextmanager
def _located(path: Path) -> Iterator[None]:
    try:
        yield
    except Malformed as error:
        raise BagError(str(error), bag=path, remedy=REMEDY) from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BagError(f"it cannot be read ({error.strerror})", bag=path, remedy=REMEDY) from error


def cut_off_episode(index: int, start_time_ns: int, end_time_ns: int, facts: dict[str, Any]) -> Episode:
    """Return an episode without steps whose end was never recorded; what its last step led to was never seen."""
    run_seed, mode = facts.get("seed"), facts.get("mode")
    return Episode(
        index=index,
        seed=episode_seed(run_seed, index) if isinstance(run_seed, int) and run_seed >= 0 else 0,
        mode=Mode[mode.upper()] if isinstance(mode, str) and mode.upper() in Mode.__members__ else Mode.COLLECT,
        outcome=Outcome.RECOVERED,
        steps=[],
        final_observation=np.empty(0),
        reason="recording was cut off",
        start_time_ns=start_time_ns,
        end_time_ns=end_time_ns,
    )


def recovered(index: int, raw: RawEpisode, facts: dict[str, Any]) -> Episode:
    """Return what is known of an episode that a crash cut off: all steps up to the last that is whole and in order."""
    steps: list[Step] = []
    for data in raw.steps:
        step = decode_step(data)
        if step.index != len(steps):
            break
        steps.append(step)
    episode = cut_off_episode(index, steps[0].time_ns if steps else 0, steps[-1].time_ns if steps else 0, facts)
    episode.steps = steps
    return episode


def assemble(index: int, raw: RawEpisode, bag: Path) -> Episode:
    """Decode a finished episode and check it on its own."""

    def refuse(problem: str, step: int | None = None) -> EpisodeError:
        return EpisodeError(problem, bag=bag, episode=index, step=step, remedy=REMEDY)

    if raw.end is None:
        raise refuse("it has steps and no end")
    if raw.ends_twice:
        raise refuse("it is recorded twice")
    try:
        end = decode_episode(raw.end)
    except Malformed as error:
        raise refuse(f"its end cannot be decoded: {error}") from error
    episode = end.episode
    for expected, data in enumerate(raw.steps):
        try:
            step = decode_step(data)
        except Malformed as error:
            raise refuse(str(error), expected) from error
        if step.index < expected:
            raise refuse("this step is repeated or out of order", step.index)
        if step.index > expected:
            last = step.index - 1
            raise refuse("this step is missing" if last == expected else f"steps up to {last} are missing", expected)
        episode.steps.append(step)
    check_episode(episode, bag)
    if end.steps != len(episode.steps):
        raise refuse(f"its end counts {end.steps} steps and {len(episode.steps)} are recorded")
    if end.augmentations != episode.augmentations:
        raise refuse(f"its end counts {end.augmentations} augmentations and {episode.augmentations} are recorded")
    return episode


def check_episode(episode: Episode, bag: Path) -> None:
    """Refuse values that are not finite and sizes that change within the episode."""

    def finite(name: str, values: FloatArray, step: int | None) -> None:
        if not np.isfinite(values).all():
            raise EpisodeError(
                f"{name} is {values.tolist()}, not finite", bag=bag, episode=episode.index, step=step, remedy=REMEDY
            )

    def same_size(name: str, size: int, expected: int, step: int | None) -> None:
        if size != expected:
            raise EpisodeError(
                f"{name} has {size} values and step 0 has {expected}",
                bag=bag,
                episode=episode.index,
                step=step,
                remedy=REMEDY,
            )

    first: Step | None = episode.steps[0] if episode.steps else None
    for step in episode.steps:
        assert first is not None
        for name in ("observation", "position", "action"):
            values = getattr(step, name)
            finite(name, values, step.index)
            same_size(name, values.size, getattr(first, name).size, step.index)
        if np.isinf(step.reward):
            finite("reward", np.array([step.reward]), step.index)
    for name, values in (
        ("final_observation", episode.final_observation),
        ("final_position", episode.final_position),
        ("goal", episode.goal),
        ("context", episode.context),
    ):
        finite(name, values, None)
    if first is not None and not (episode.outcome == Outcome.RECOVERED and not episode.final_observation.size):
        same_size("final_observation", episode.final_observation.size, first.observation.size, None)
        if episode.final_position.size or first.position.size:
            same_size("final_position", episode.final_position.size, first.position.size, None)


def dimensions_of(episode: Episode) -> Dimensions | None:
    """Return the sizes of an episode; None where it has no steps."""
    if not episode.steps:
        return None
    step = episode.steps[0]
    return Dimensions(step.observation.size, step.position.size, step.action.size)
