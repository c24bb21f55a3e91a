"""From the messages of one file to episodes, with every rule of a recorded episode checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.cdr import decode_episode, decode_step
from lift_ros.bags.faults import BagError, EpisodeError, Malformed
from lift_ros.bags.records import Announced, RecordedMessage, RecordedTopic, Tolerate, journal_messages, walk
from lift_ros.bags.topics import EPISODE, STEP
from lift_ros.collection.records import Episode, Mode, Outcome, Step
from lift_ros.seeds import episode_seed

_STEP_PREFIX = 24  # encapsulation, stamp, empty frame, episode and step
REMEDY = "Restore the file from a copy, or leave bad episodes out with --skip-bad (skip_bad=True)."
_DECODERS: dict[str, Callable[[bytes | memoryview], object]] = {STEP.name: decode_step, EPISODE.name: decode_episode}


@dataclass
class RawEpisode:
    """An episode's messages, not decoded yet."""

    steps: list[RecordedMessage] = field(default_factory=list)
    end: RecordedMessage | None = None
    ends_twice: bool = False


class Sizes(NamedTuple):
    """Sizes that all steps of a run share."""

    observation: int
    position: int
    action: int

    @classmethod
    def of(cls, step: Step) -> Sizes:
        """Return those of a step."""
        return cls(step.observation.size, step.position.size, step.action.size)


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


def _check_type(topic: RecordedTopic, known: RecordedTopic, bag: Path) -> None:
    """Refuse a topic of ours that was written with another definition."""
    difference = topic.type_name
    if topic.type_name == known.type_name:
        found, expected = fields_of(topic.definition), fields_of(known.definition)
        if topic.encoding == known.encoding and found == expected:
            return
        lines = set(chain(*found.values())) ^ set(chain(*expected.values()))
        difference = f"{known.type_name} with other fields ({', '.join(sorted(lines)[:4]) or 'another order'})"
    raise BagError(
        f"topic {topic.name} is {difference} and not the {known.type_name} of this version",
        bag=bag,
        remedy="Read it with the version of lift_ros that recorded it, or convert it with `lift import`.",
    )


def group(messages: Iterable[RecordedMessage], bag: Path, tolerate: Tolerate | None = None) -> dict[int, RawEpisode]:
    """Sort a file's messages into episodes, in the order they were written."""
    episodes: dict[int, RawEpisode] = {}
    ours = {topic.name: topic for topic in (STEP, EPISODE)}
    checked: set[RecordedTopic] = set()
    for message in messages:
        topic = message.topic
        if topic.name not in ours:
            continue
        if topic not in checked:
            _check_type(topic, ours[topic.name], bag)
            checked.add(topic)
        try:
            _sort_in(message, episodes)
        except Malformed as error:
            if tolerate is None:
                raise
            tolerate(error)
    return episodes


def _sort_in(message: RecordedMessage, episodes: dict[int, RawEpisode]) -> None:
    if message.topic.name == STEP.name:
        episodes.setdefault(_episode_of_step(message.data), RawEpisode()).steps.append(message)
        return
    raw = episodes.setdefault(decode_episode(message.data).episode.index, RawEpisode())
    raw.ends_twice = raw.end is not None
    raw.end = message


def _episode_of_step(data: bytes | memoryview) -> int:
    """Return the episode of a step without decoding the rest where its layout is the usual one."""
    if len(data) >= _STEP_PREFIX and data[1] == 1 and bytes(data[12:17]) == b"\1\0\0\0\0":
        return int.from_bytes(data[20:24], "little")
    return decode_step(data).episode


def read_file(
    path: Path, announced: Announced, *, journal: bool = False, tolerate: Tolerate | None = None
) -> dict[int, RawEpisode]:
    """Return the episodes of a file; the last of one under way may have no end, and ends where it cannot be decoded."""
    with located(path):
        data = memoryview(path.read_bytes())
        if journal:
            return group(takewhile(decodable, journal_messages(data, announced)), path)
        return group(walk(data, announced, tolerate), path, tolerate)


def decodable(message: RecordedMessage) -> bool:
    """Whether a message can be decoded, if it is one of ours."""
    try:
        if message.topic.name in _DECODERS:
            _DECODERS[message.topic.name](message.data)
    except Malformed:
        return False
    return True


@contextmanager
def located(path: Path) -> Iterator[None]:
    """Say of which file a fault was found."""
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


def recovered(index: int, raw: RawEpisode, facts: dict[str, Any], bag: Path) -> Episode:
    """Return what is known of an episode that a crash cut off: all steps up to the last that is whole and in order."""
    steps: list[Step] = []
    for message in raw.steps:
        step = decode_step(message.data)
        if step.index != len(steps):
            break
        steps.append(step)
    episode = cut_off_episode(index, steps[0].time_ns if steps else 0, steps[-1].time_ns if steps else 0, facts)
    episode.steps = steps
    _refuse_first(_faults(episode), index, bag)
    return episode


def assemble(index: int, raw: RawEpisode, bag: Path) -> Episode:
    """Decode a finished episode and check it on its own."""
    if raw.end is None or raw.ends_twice:
        problem = "it has steps and no end" if raw.end is None else "it is recorded twice"
        raise EpisodeError(problem, bag=bag, episode=index, remedy=REMEDY)
    end = decode_episode(raw.end.data)
    episode = end.episode
    _refuse_first(_decode_steps(raw, episode.steps), index, bag)
    _refuse_first(_faults(episode), index, bag)
    for name, counted, found in (
        ("steps", end.steps, len(episode.steps)),
        ("augmentations", end.augmentations, episode.augmentations),
    ):
        if counted != found:
            problem = f"its end counts {counted} {name} and {found} are recorded"
            raise EpisodeError(problem, bag=bag, episode=index, remedy=REMEDY)
    return episode


_Faults = Iterator[tuple[int | None, str]]  # step and problem


def _refuse_first(faults: _Faults, index: int, bag: Path) -> None:
    for step, problem in faults:
        raise EpisodeError(problem, bag=bag, episode=index, step=step, remedy=REMEDY)


def _decode_steps(raw: RawEpisode, steps: list[Step]) -> _Faults:
    """Append an episode's steps to `steps`."""
    for expected, message in enumerate(raw.steps):
        try:
            step = decode_step(message.data)
        except Malformed as error:
            yield expected, str(error)
            return
        if step.index < expected:
            yield step.index, "this step is repeated or out of order"
        if step.index > expected:
            last = step.index - 1
            yield expected, "this step is missing" if last == expected else f"steps up to {last} are missing"
        steps.append(step)


def _faults(episode: Episode) -> _Faults:
    """Yield values that are not finite and sizes that change within the episode."""
    first = episode.steps[0] if episode.steps else None
    for step in episode.steps:
        for name in Sizes._fields:
            if problem := _fault(name, getattr(step, name), getattr(first, name).size):
                yield step.index, problem
        if np.isinf(step.reward):
            yield step.index, f"reward is {step.reward}, not finite"
    sizes = {}
    if first is not None and not (episode.outcome == Outcome.RECOVERED and not episode.final_observation.size):
        sizes = {"final_observation": first.observation.size, "final_position": first.position.size}
    for name in ("final_observation", "final_position", "goal", "context"):
        if problem := _fault(name, getattr(episode, name), sizes.get(name)):
            yield None, problem


def _fault(name: str, values: FloatArray, size: int | None) -> str | None:
    if not np.isfinite(values).all():
        return f"{name} is {values.tolist()}, not finite"
    if size is not None and values.size != size:
        return f"{name} has {values.size} values and step 0 has {size}"
    return None
