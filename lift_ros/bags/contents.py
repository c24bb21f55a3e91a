"""From the messages of one file to episodes, with every rule of a recorded episode checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lift_ros.bags import definitions
from lift_ros.bags.cdr import decode_episode, decode_step
from lift_ros.bags.faults import BagError, EpisodeError, Malformed
from lift_ros.bags.scan import Announced, Channel, Message, walk, walk_journal
from lift_ros.collection.records import Episode, FloatArray, Mode, Outcome, Source, Step
from lift_ros.seeds import episode_seed

_STEP_PREFIX = 24  # encapsulation, stamp, empty frame, episode and step
REMEDY = "Restore the file from a copy, or leave bad episodes out with --skip-bad (skip_bad=True)."


@dataclass
class RawEpisode:
    """An episode's messages, not decoded yet."""

    steps: list[memoryview] = field(default_factory=list)
    end: memoryview | None = None


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
        lines = set(sum(fields_of(channel.definition).values(), [])) ^ set(sum(known.values(), []))
        difference = f"{type_name} with other fields ({', '.join(sorted(lines)[:4]) or 'another order'})"
    raise BagError(
        f"topic {channel.topic} is {difference} and not the {type_name} of this version",
        bag=bag,
        remedy="Read it with the version of lift_ros that recorded it, or convert it with `lift import`.",
    )


def group(messages: Iterable[Message], bag: Path) -> dict[int, RawEpisode]:
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
        if channel.topic == definitions.STEP_TOPIC:
            number = decode_number(message.data)
            episodes.setdefault(number, RawEpisode()).steps.append(message.data)
        else:
            number = decode_episode(message.data).episode.index
            raw = episodes.setdefault(number, RawEpisode())
            if raw.end is not None:
                raise EpisodeError("it ends twice", bag=bag, episode=number, remedy=REMEDY)
            raw.end = message.data
    return episodes


def decode_number(data: memoryview) -> int:
    """Return the episode of a step without decoding the rest where its layout is the usual one."""
    if len(data) >= _STEP_PREFIX and data[1] == 1 and data[12:17] == b"\1\0\0\0\0":
        return int.from_bytes(data[20:24], "little")
    return decode_step(data).episode


def read_finished(path: Path, announced: Announced) -> dict[int, RawEpisode]:
    """Return the episodes of a finished file."""
    try:
        return group(walk(memoryview(path.read_bytes()), announced), path)
    except Malformed as error:
        raise BagError(str(error), bag=path, remedy=REMEDY) from error
    except OSError as error:
        raise BagError(f"it cannot be read ({error.strerror})", bag=path, remedy=REMEDY) from error


def read_journal(path: Path, announced: Announced) -> dict[int, RawEpisode]:
    """Return the episodes of a file under way; the last may have no end."""
    try:
        return group(walk_journal(memoryview(path.read_bytes()), announced), path)
    except Malformed as error:
        raise BagError(str(error), bag=path, remedy=REMEDY) from error


def recovered(index: int, raw: RawEpisode, facts: dict[str, object]) -> Episode:
    """Return what is known of an episode that a crash cut off; what its last step led to was never seen."""
    steps = [decode_step(data) for data in raw.steps]
    run_seed = facts.get("seed")
    mode = facts.get("mode")
    return Episode(
        index=index,
        seed=episode_seed(run_seed, index) if isinstance(run_seed, int) else 0,
        mode=Mode[mode.upper()] if isinstance(mode, str) and mode.upper() in Mode.__members__ else Mode.COLLECT,
        outcome=Outcome.RECOVERED,
        steps=steps,
        final_observation=np.empty(0),
        reason="recording was cut off",
        start_time_ns=steps[0].time_ns if steps else 0,
        end_time_ns=steps[-1].time_ns if steps else 0,
    )


def assemble(index: int, raw: RawEpisode, bag: Path) -> Episode:
    """Decode a finished episode and check it on its own."""
    if raw.end is None:
        raise EpisodeError("it has steps and no end", bag=bag, episode=index, remedy=REMEDY)
    try:
        end = decode_episode(raw.end)
    except Malformed as error:
        raise EpisodeError(f"its end cannot be decoded: {error}", bag=bag, episode=index, remedy=REMEDY) from error
    episode = end.episode
    for expected, data in enumerate(raw.steps):
        try:
            step = decode_step(data)
        except Malformed as error:
            raise EpisodeError(str(error), bag=bag, episode=index, step=expected, remedy=REMEDY) from error
        if step.index != expected:
            raise EpisodeError(
                f"step {step.index} is repeated or out of order"
                if step.index < expected
                else f"steps {expected} to {step.index - 1} are missing"
                if step.index > expected + 1
                else "this step is missing",
                bag=bag,
                episode=index,
                step=step.index if step.index < expected else expected,
                remedy=REMEDY,
            )
        episode.steps.append(step)
    check_episode(episode, bag)
    if end.steps != len(episode.steps):
        raise EpisodeError(
            f"its end counts {end.steps} steps and {len(episode.steps)} are recorded",
            bag=bag,
            episode=index,
            remedy=REMEDY,
        )
    if end.augmentations != sum(step.source == Source.AUGMENTOR for step in episode.steps):
        raise EpisodeError(
            f"its end counts {end.augmentations} augmentations and {episode.augmentations} are recorded",
            bag=bag,
            episode=index,
            remedy=REMEDY,
        )
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
