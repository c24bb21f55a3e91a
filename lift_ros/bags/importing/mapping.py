"""The mapping file of `lift import`: its keys declared once, read from YAML and checked before any bag is opened."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from lift_ros.configuration import Key, Keys, Section, check_mapping, read_yaml
from lift_ros.errors import UserError
from lift_ros.untrusted import brief

DIFFERENCE = "difference_of_positions"
DISTANCE = "distance_to_goal"
SERVICE_EVENTS = {"request_sent": 0, "request_received": 1, "response_sent": 2, "response_received": 3}
CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "equals": operator.eq,
    "not_equals": operator.ne,
    "above": operator.gt,
    "below": operator.lt,
}


def _read(kind: type, value: Any, where: str) -> Any:
    """Return a dataclass that is annotated with the keys it is read from."""
    keys = {name: hint.__metadata__[0] for name, hint in get_type_hints(kind, include_extras=True).items()}
    return kind(**check_mapping(value, keys, where))


@dataclass(frozen=True, slots=True)
class MappedTopic:
    """Numbers read from one topic: the values of all its fields, one after the other."""

    topic: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Action:
    """What was commanded and what its numbers mean; without a channel it is the difference of positions."""

    channel: MappedTopic | None
    meaning: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """Moments in a bag: every message of a topic, or those where a condition on a field becomes true."""

    topic: str
    field: str | None = None
    condition: str | None = None
    limit: float | int | str | bool | None = None
    service_event: int | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Which clock counts, when samples are taken and how other topics are matched to them."""

    stamp: Annotated[str, Key(str, "received", choices=("received", "header"))]
    rate: Annotated[float | None, Key(float, None, above=0)]
    topic: Annotated[str | None, Key(str, None)]
    match: Annotated[str, Key(str, "previous", choices=("previous", "nearest"))]
    tolerance: Annotated[float, Key(float, 0.1, low=0)]
    skip_still: Annotated[float, Key(float, 0.0, low=0)]


@dataclass(frozen=True, slots=True)
class Goal:
    """How it is known that an episode arrived: within a distance, by a signal, or where none is given by its end."""

    within: float | None = None
    position: tuple[float, ...] = ()
    channels: tuple[MappedTopic, ...] = ()
    signal: Trigger | None = None


CHANNEL_KEYS = {"topic": Key(str), "field": Key(str, None), "fields": Key(list, (), entries=str)}


def _channel_of(read: dict[str, Any], where: str) -> MappedTopic:
    if (read["field"] is None) == (not read["fields"]):
        raise UserError(f"{where} needs either 'field' (one path) or 'fields' (a list of paths)")
    return MappedTopic(read["topic"], tuple(read["fields"]) or (read["field"],))


def _channels(value: Any, where: str) -> tuple[MappedTopic, ...]:
    if not isinstance(value, list):
        return (_channel_of(check_mapping(value, CHANNEL_KEYS, where), where),)
    if not value:
        raise UserError(f"{where} is an empty list; name at least one topic and field")
    return tuple(channel for index, entry in enumerate(value) for channel in _channels(entry, f"{where}[{index}]"))


def _action(value: Any, where: str) -> Action:
    if value == DIFFERENCE:
        return Action(None, DIFFERENCE)
    if not isinstance(value, dict):
        raise UserError(f"{where} is {brief(value)}; allowed: one topic with fields, or {DIFFERENCE}")
    meaning = Key(str, "increment", choices=("increment", "target", "velocity"))
    read = check_mapping(value, {**CHANNEL_KEYS, "meaning": meaning}, where)
    return Action(_channel_of(read, where), read["meaning"])


def _scalar(value: Any, where: str) -> float | int | str | bool:
    if not isinstance(value, bool | int | float | str):
        raise UserError(f"{where} is {brief(value)}; allowed: a number, text, true or false")
    return value


SERVICE_KEYS = {"service": Key(str), "event": Key(str, "request_received", choices=tuple(SERVICE_EVENTS))}
TRIGGER_KEYS: Keys = {
    "topic": Key(str),
    "field": Key(str, None),
    "equals": Section(_scalar, None),
    "not_equals": Section(_scalar, None),
    "above": Key(float, None),
    "below": Key(float, None),
}


def _trigger(value: Any, where: str) -> Trigger:
    if isinstance(value, dict) and "service" in value:
        read = check_mapping(value, SERVICE_KEYS, where)
        return Trigger(f"{read['service'].rstrip('/')}/_service_event", service_event=SERVICE_EVENTS[read["event"]])
    if not isinstance(value, dict) or "topic" not in value:
        raise UserError(f"{where} is {brief(value)}; it needs either 'topic' or 'service'")
    read = check_mapping(value, TRIGGER_KEYS, where)
    conditions = {name: read[name] for name in CONDITIONS if read[name] is not None}
    if len(conditions) != (read["field"] is not None):
        raise UserError(f"{where} needs one condition ({', '.join(CONDITIONS)}) with 'field' and none without it")
    condition, limit = next(iter(conditions.items()), (None, None))
    return Trigger(read["topic"], read["field"], condition, limit)


@dataclass(frozen=True, slots=True)
class Separation:
    """What separates episodes; nothing given: the bag is one episode."""

    gap: Annotated[float | None, Key(float, None, above=0)]
    start: Annotated[Trigger | None, Section(_trigger, None)]
    end: Annotated[Trigger | None, Section(_trigger, None)]
    minimum_steps: Annotated[int, Key(int, 1, low=1)]


_separation = partial(_read, Separation)


def _timing(value: Any, where: str) -> Timing:
    timing: Timing = _read(Timing, value, where)
    if timing.rate is not None and timing.topic is not None:
        raise UserError(f"{where} takes samples at a 'rate' or with a 'topic', not both")
    return timing


def _goal(value: Any, where: str) -> Goal:
    if value == "last_position":
        return Goal()
    if not isinstance(value, dict):
        raise UserError(f"{where} is {brief(value)}; allowed: last_position, or a section with 'within' or 'signal'")
    if "signal" in value:
        return Goal(**check_mapping(value, {"signal": Section(_trigger)}, where))
    keys: Keys = {"within": Key(float, above=0), "position": Key(list, ()), "channel": Section(_channels, ())}
    read = check_mapping(value, keys, where)
    if bool(read["position"]) == bool(read["channel"]):
        raise UserError(f"{where} needs 'signal', or 'within' with either 'position' or 'channel'")
    return Goal(read["within"], tuple(read["position"]), read["channel"])


def _reward(value: Any, where: str) -> tuple[MappedTopic, ...] | str:
    return DISTANCE if value == DISTANCE else _channels(value, where)


def _image(value: Any, where: str) -> str:
    return str(check_mapping(value, {"topic": Key(str)}, where)["topic"])


@dataclass(frozen=True, slots=True)
class Mapping:
    """A whole mapping file."""

    observation: Annotated[tuple[MappedTopic, ...], Section(_channels)]
    position: Annotated[tuple[MappedTopic, ...], Section(_channels, ())]
    action: Annotated[Action, Section(_action)]
    reward: Annotated[tuple[MappedTopic, ...] | str, Section(_reward, ())]
    image: Annotated[str | None, Section(_image, None)]
    time: Annotated[Timing, Section(_timing, _timing({}, ""))]
    episodes: Annotated[Separation, Section(_separation, _separation({}, ""))]
    goal: Annotated[Goal, Section(_goal)]

    def sources(self) -> dict[str, tuple[MappedTopic, ...]]:
        """Return all that numbers are read from, by what they are."""
        return {
            "observation": self.observation,
            "position": self.position,
            "reward": self.reward if isinstance(self.reward, tuple) else (),
            "goal": self.goal.channels,
            "action": (self.action.channel,) if self.action.channel else (),
        }

    def topics(self) -> list[str]:
        """Return every topic that the mapping names."""
        triggers = (self.episodes.start, self.episodes.end, self.goal.signal)
        sources = [source.topic for group in self.sources().values() for source in group]
        moments = [trigger.topic for trigger in triggers if trigger]
        return [*sources, *moments, *filter(None, (self.time.topic, self.image))]

    @property
    def clocked_by_action(self) -> bool:
        """Whether a sample is taken with each command."""
        action = self.action.channel
        return action is not None and self.time.rate is None and self.time.topic in (None, action.topic)


def parse_mapping(value: Any, where: str = "mapping: ") -> Mapping:
    """Read a mapping from what YAML gave and check what its keys ask of each other."""
    mapping: Mapping = _read(Mapping, value, where)
    needs = {
        f"action: {mapping.action.meaning}": mapping.action.meaning in (DIFFERENCE, "target"),
        "goal.within": mapping.goal.within is not None,
        "time.skip_still": mapping.time.skip_still > 0,
        f"reward: {DISTANCE}": mapping.reward == DISTANCE,
    }
    for name, needed in needs.items():
        if needed and not mapping.position:
            raise UserError(f"{where}{name} needs 'position', which the file does not have")
    if mapping.reward == DISTANCE and mapping.goal.signal:
        raise UserError(f"{where}reward: {DISTANCE} needs a goal position; goal.signal gives none")
    return mapping


def load_mapping(path: Path) -> Mapping:
    """Read and check a mapping file."""
    return parse_mapping(read_yaml(path), f"{path}: ")
