"""From the messages of one file to episodes, with every rule of a recorded episode checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from lift_ros.bags.faults import UNREADABLE, BagError, EpisodeError, Malformed, Tolerate, refuse
from lift_ros.bags.files import EPISODE, NAMESPACE, STEP, known_as, namespace_of
from lift_ros.bags.mcap_records import (
    Announced,
    RecordedMessage,
    RecordedTopic,
    file_bytes,
    journal_messages,
    walk,
)
from lift_ros.collection.records import Episode, Mode, Outcome, Step
from lift_ros.messages.definitions import fields_by_type
from lift_ros.messages.errors import MessageError
from lift_ros.messages.layout import prefix_dtype
from lift_ros.messages.records import decode_episode, decode_step
from lift_ros.seeds import episode_seed

_DECODERS = {STEP: decode_step, EPISODE: decode_episode}
# Where the number of the episode ends in messages whose frame is empty.
_NUMBERS = {
    STEP: prefix_dtype("Step", {}, "episode").itemsize,
    EPISODE: prefix_dtype("Episode", {}, "episode").itemsize,
}


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

    def fault(self, episode: Episode) -> str | None:
        """Return how what was seen last differs from what steps of these sizes saw; after a crash nothing was seen."""
        last = (episode.final_observation.size, episode.final_position.size)
        if last == self[:2] or (episode.outcome == Outcome.RECOVERED and not last[0]):
            return None
        return f"final_observation and final_position have {last[0]} and {last[1]} values and its steps have {self}"


def is_alike(topic: RecordedTopic, known: RecordedTopic) -> bool:
    """Whether messages of two topics are the same bytes, whatever comments and constants say of them."""
    if (topic.type_name, topic.encoding) != (known.type_name, known.encoding):
        return False
    found, expected = (fields_by_type(each.definition, each.type_name) for each in (topic, known))
    return bool(found == expected)


def _check_type(topic: RecordedTopic, known: RecordedTopic, bag: Path) -> None:
    """Refuse a topic of ours that was written with another definition; comments and constants do not matter."""
    if is_alike(topic, known):
        return
    difference = topic.type_name
    if topic.type_name == known.type_name:
        lines = {" ".join(line.split()) for line in topic.definition.splitlines()} ^ set(known.definition.splitlines())
        difference += f" with other fields ({', '.join(sorted(lines - {''})[:4]) or 'another order'})"
    problem = f"topic {topic.name} is {difference} and not the {known.type_name} of this version"
    remedy = "Read it with the version of lift_ros that recorded it, or convert it with `lift import`."
    raise BagError(problem, bag=bag, remedy=remedy)


def group(messages: Iterable[RecordedMessage], bag: Path, tolerate: Tolerate = refuse) -> dict[int, RawEpisode]:
    """Sort a file's messages into episodes, in the order they were written."""
    graphs: dict[str, dict[int, RawEpisode]] = {}  # by namespace
    roles: dict[RecordedTopic, RecordedTopic | None] = {}
    for message in messages:
        topic = message.topic
        if topic not in roles:
            roles[topic] = known_as(topic)
            if (role := roles[topic]) is not None:
                _check_type(topic, role, bag)
                graphs.setdefault(namespace_of(topic), {})
        role = roles[topic]
        if role is None:
            continue
        try:
            raw = graphs[namespace_of(topic)].setdefault(_episode_of(message, role), RawEpisode())
        except Malformed as error:
            tolerate(error)
            continue
        if role is STEP:
            raw.steps.append(message)
        else:
            raw.ends_twice = raw.end is not None
            raw.end = message
    return _of_one_graph(graphs, bag)


def _of_one_graph(graphs: dict[str, dict[int, RawEpisode]], bag: Path) -> dict[int, RawEpisode]:
    """Return the episodes of the graph that recorded the file; versions up to 0.1 could record another one's along."""
    if len(graphs) > 1 and NAMESPACE not in graphs:
        remedy = "Keep the topics of one of them, for example with `ros2 bag convert`."
        raise BagError(f"it holds the steps of several graphs: {', '.join(graphs)}", bag=bag, remedy=remedy)
    return graphs.get(NAMESPACE) or next(iter(graphs.values()), {})


def _episode_of(message: RecordedMessage, role: RecordedTopic) -> int:
    """Return the episode of a message of ours, which stands behind its header whatever else it holds."""
    data = message.data
    order: Literal["little", "big"] = "little" if data[1:2] == b"\1" else "big"
    end = _NUMBERS[role] - 4 + -(-int.from_bytes(data[12:16], order) // 4) * 4
    if len(data) < end:
        raise Malformed(f"a message of {len(data)} bytes ends before the number of its episode")
    return int.from_bytes(data[end - 4 : end], order)


def read_file(path: Path, announced: Announced, tolerate: Tolerate, *, journal: bool) -> dict[int, RawEpisode]:
    """Return the episodes of a file; of one under way those up to what cannot be decoded, the last without an end."""
    with located(path):
        if journal:
            data = memoryview(path.read_bytes())
            return group(takewhile(decodable, journal_messages(data, announced)), path)
        return group(walk(file_bytes(path, whole=True), announced, tolerate), path, tolerate)


def decodable(message: RecordedMessage) -> bool:
    """Whether a message can be decoded, if it is one of ours."""
    try:
        if (role := known_as(message.topic)) is not None:
            _DECODERS[role](message.data)
    except MessageError:
        return False
    return True


@contextmanager
def located(path: Path) -> Iterator[None]:
    """Say in which file a fault was found."""
    try:
        yield
    except UNREADABLE as error:
        raise BagError(str(error), bag=path) from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BagError(f"it cannot be read ({error.strerror})", bag=path) from error


def cut_off_episode(index: int, start_time_ns: int, end_time_ns: int, facts: dict[str, Any]) -> Episode:
    """Return an episode without steps whose end was never recorded; what its last step led to was never seen."""
    run_seed, mode = facts.get("seed"), str(facts.get("mode")).upper()
    return Episode(
        index=index,
        seed=episode_seed(run_seed, index) if isinstance(run_seed, int) and run_seed >= 0 else 0,
        mode=Mode.__members__.get(mode, Mode.COLLECT),
        outcome=Outcome.RECOVERED,
        steps=[],
        final_observation=np.empty(0),
        reason="recording was cut off",
        start_time_ns=start_time_ns,
        end_time_ns=end_time_ns,
    )


def seen_part(episode: Episode) -> Episode:
    """Return the episode up to its last observation: what the last step of a recovered one led to was never seen."""
    if episode.final_observation.size or not episode.steps:
        return episode
    *steps, last = episode.steps
    return replace(
        episode, steps=steps, final_observation=last.observation, final_position=last.position, final_image=last.image
    )


def recovered(index: int, raw: RawEpisode, facts: dict[str, Any], bag: Path) -> Episode:
    """Return what is known of an episode that a crash cut off: all steps up to the last that is whole and in order."""
    steps = [decode_step(message.data) for message in raw.steps]
    steps = [step for _, step in takewhile(lambda pair: pair[0] == pair[1].index, enumerate(steps))]
    times = [step.time_ns for step in steps] or [0]
    episode = cut_off_episode(index, times[0], times[-1], facts)
    episode.steps = steps
    _check_sizes(episode, bag)
    return episode


def assemble(index: int, raw: RawEpisode, bag: Path) -> Episode:
    """Decode a finished episode and check it on its own."""
    if raw.end is None or raw.ends_twice:
        problem = "it has steps and no end" if raw.end is None else "it is recorded twice"
        raise EpisodeError(problem, bag=bag, episode=index)
    steps: list[Step] = []
    place: int | None = None
    try:
        for place, message in enumerate(raw.steps):
            step = decode_step(message.data)
            if step.index != place:
                problem = "this step is missing" if step.index == place + 1 else "this step is repeated or out of order"
                if step.index > place + 1:
                    problem = f"steps up to {step.index - 1} are missing"
                raise EpisodeError(problem, bag=bag, episode=index, step=min(place, step.index))
            steps.append(step)
        place = None
        end = decode_episode(raw.end.data)
    except MessageError as error:
        raise EpisodeError(str(error), bag=bag, episode=index, step=place) from error
    episode = end.episode
    episode.steps = steps
    _check_sizes(episode, bag)
    recorded = {"steps": len(steps), "augmentations": episode.augmentations}
    for name, found in recorded.items():
        if (counted := getattr(end, name)) != found:
            raise EpisodeError(f"its end counts {counted} {name} and {found} are recorded", bag=bag, episode=index)
    return episode


def _check_sizes(episode: Episode, bag: Path) -> None:
    """Refuse sizes that change within the episode."""
    sizes = [Sizes.of(step) for step in episode.steps]
    for number, found in enumerate(sizes):
        if found != sizes[0]:
            problem = f"it has {found} and step 0 has {sizes[0]}"
            raise EpisodeError(problem, bag=bag, episode=episode.index, step=number)
    if sizes and (fault := sizes[0].fault(episode)):
        raise EpisodeError(fault, bag=bag, episode=episode.index)
