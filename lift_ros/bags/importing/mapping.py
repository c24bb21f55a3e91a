"""The mapping file of `lift import`: its keys declared once, read from YAML and checked before any bag is opened."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable
from collections.abc import Mapping as Mapping_
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lift_ros.errors import UserError

DIFFERENCE = "difference_of_positions"
DISTANCE = "distance_to_goal"
SERVICE_EVENTS = {"request_sent": 0, "request_received": 1, "response_sent": 2, "response_received": 3}
CONDITIONS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": lambda value, limit: bool(value == limit),
    "not_equals": lambda value, limit: bool(value != limit),
    "above": lambda value, limit: bool(value > limit),
    "below": lambda value, limit: bool(value < limit),
}


@dataclass(frozen=True, slots=True)
class Channel:
    """Numbers read from one topic: the values of all its fields, one after the other."""

    topic: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Action:
    """What was commanded and what its numbers mean; without a channel it is the difference of positions."""

    channel: Channel | None
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

    stamp: str = "received"
    rate: float | None = None
    topic: str | None = None
    match: str = "previous"
    tolerance: float = 0.1
    skip_still: float = 0.0


@dataclass(frozen=True, slots=True)
class Separation:
    """What separates episodes; nothing given: the bag is one episode."""

    gap: float | None = None
    start: Trigger | None = None
    end: Trigger | None = None
    minimum_steps: int = 1


@dataclass(frozen=True, slots=True)
class Goal:
    """How it is known that an episode arrived: by its end, by a distance, or by a signal."""

    rule: str
    within: float | None = None
    position: tuple[float, ...] = ()
    channels: tuple[Channel, ...] = ()
    signal: Trigger | None = None


@dataclass(frozen=True, slots=True)
class Mapping:
    """A whole mapping file."""

    observation: tuple[Channel, ...]
    action: Action
    goal: Goal
    position: tuple[Channel, ...] = ()
    reward: tuple[Channel, ...] | str = ()
    image: str | None = None
    time: Timing = Timing()
    episodes: Separation = Separation()


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the mapping file: how its value is read and whether it must be there."""

    read: Callable[[Any, str], Any]
    required: bool = False


def suggest(word: str, known: Iterable[str], limit: int = 3) -> str:
    """Return the end of a sentence that asks for the nearest known words, or just its full stop."""
    names = list(known)
    folded = {name.lower(): name for name in names}
    close = [folded[name] for name in difflib.get_close_matches(word.lower(), folded, limit, 0.5)]
    close += [name for name in names if word and word.lower() in name.lower() and name not in close]
    return f"; did you mean {' or '.join(close[:limit])}?" if close else "."


def read_keys(value: Any, where: str, keys: Mapping_[str, Key]) -> dict[str, Any]:
    """Read a section by its declared keys; unknown, missing and misspelt ones are named."""
    if not isinstance(value, dict):
        raise UserError(f"mapping: {where} must have the keys {', '.join(keys)}, not {value!r}")
    for name in value:
        if name not in keys:
            raise UserError(
                f"mapping: {where} has no key {name!r}{suggest(str(name), keys)} It knows: {', '.join(keys)}"
            )
    for name, key in keys.items():
        if key.required and name not in value:
            raise UserError(f"mapping: {where} lacks the key {name!r}")
    return {name: keys[name].read(entry, f"{where}.{name}") for name, entry in value.items()}


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise UserError(f"mapping: {where} must be a text, not {value!r}")
    return value


def _one_of(*choices: str) -> Callable[[Any, str], str]:
    def read(value: Any, where: str) -> str:
        if value not in choices:
            raise UserError(f"mapping: {where} must be one of {', '.join(choices)}, not {value!r}")
        return str(value)

    return read


def _number(low: float, *, inclusive: bool) -> Callable[[Any, str], float]:
    def read(value: Any, where: str) -> float:
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not good or value < low or (value == low and not inclusive):
            bound = "" if low == -math.inf else f" of {'at least' if inclusive else 'more than'} {low:g}"
            raise UserError(f"mapping: {where} must be a finite number{bound}, not {value!r}")
        return float(value)

    return read


def _count(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError(f"mapping: {where} must be a whole number of at least 1, not {value!r}")
    return value


def _numbers(value: Any, where: str) -> tuple[float, ...]:
    if not isinstance(value, list) or not value:
        raise UserError(f"mapping: {where} must be a list of numbers, not {value!r}")
    number = _number(-math.inf, inclusive=True)
    return tuple(number(entry, f"{where}[{index}]") for index, entry in enumerate(value))


def _limit(value: Any, where: str) -> float | int | str | bool:
    if not isinstance(value, bool | int | float | str):
        raise UserError(f"mapping: {where} must be a number, a text or true/false, not {value!r}")
    return value


def _comparable(value: Any, where: str) -> float:
    return _number(-math.inf, inclusive=True)(value, where)


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise UserError(f"mapping: {where} must be a list of field paths, not {value!r}")
    return tuple(_text(entry, f"{where}[{index}]") for index, entry in enumerate(value))


CHANNEL_KEYS = {"topic": Key(_text, True), "field": Key(_text), "fields": Key(_texts)}


def _channel_of(read: dict[str, Any], where: str) -> Channel:
    if ("field" in read) == ("fields" in read):
        raise UserError(f"mapping: {where} needs either 'field' (one path) or 'fields' (a list of paths)")
    return Channel(read["topic"], read.get("fields") or (read["field"],))


def _channels(value: Any, where: str) -> tuple[Channel, ...]:
    entries = value if isinstance(value, list) else [value]
    if not entries:
        raise UserError(f"mapping: {where} is an empty list; name at least one topic and field")
    channels = []
    for index, entry in enumerate(entries):
        place = f"{where}[{index}]" if isinstance(value, list) else where
        channels.append(_channel_of(read_keys(entry, place, CHANNEL_KEYS), place))
    return tuple(channels)


MEANINGS = ("increment", "target", "velocity")


def _action(value: Any, where: str) -> Action:
    if value == DIFFERENCE:
        return Action(None, DIFFERENCE)
    if not isinstance(value, dict):
        raise UserError(f"mapping: {where} must be one topic with fields or {DIFFERENCE!r}, not {value!r}")
    read = read_keys(value, where, {**CHANNEL_KEYS, "meaning": Key(_one_of(*MEANINGS))})
    return Action(_channel_of(read, where), read.get("meaning", "increment"))


CONDITION_KEYS = {
    "equals": Key(_limit),
    "not_equals": Key(_limit),
    "above": Key(_comparable),
    "below": Key(_comparable),
}


def _trigger(value: Any, where: str) -> Trigger:
    keys = {
        "topic": Key(_text),
        "field": Key(_text),
        **CONDITION_KEYS,
        "service": Key(_text),
        "event": Key(_one_of(*SERVICE_EVENTS)),
    }
    read = read_keys(value, where, keys)
    if ("topic" in read) == ("service" in read):
        raise UserError(f"mapping: {where} needs either 'topic' or 'service'")
    conditions = [name for name in CONDITION_KEYS if name in read]
    if "service" in read:
        if conditions or "field" in read:
            raise UserError(f"mapping: {where} with 'service' knows only 'event', not field conditions")
        event = SERVICE_EVENTS[read.get("event", "request_received")]
        return Trigger(f"{read['service'].rstrip('/')}/_service_event", service_event=event)
    if "event" in read:
        raise UserError(f"mapping: {where}.event belongs to 'service', not to 'topic'")
    if len(conditions) != (1 if "field" in read else 0):
        raise UserError(
            f"mapping: {where} needs one condition ({', '.join(CONDITION_KEYS)}) with 'field' and none without it"
        )
    if not conditions:
        return Trigger(read["topic"])
    return Trigger(read["topic"], read["field"], conditions[0], read[conditions[0]])


def _timing(value: Any, where: str) -> Timing:
    keys = {
        "stamp": Key(_one_of("received", "header")),
        "rate": Key(_number(0, inclusive=False)),
        "topic": Key(_text),
        "match": Key(_one_of("previous", "nearest")),
        "tolerance": Key(_number(0, inclusive=True)),
        "skip_still": Key(_number(0, inclusive=True)),
    }
    read = read_keys(value, where, keys)
    if "rate" in read and "topic" in read:
        raise UserError(f"mapping: {where} takes samples at a 'rate' or with a 'topic', not both")
    return Timing(**read)


def _separation(value: Any, where: str) -> Separation:
    keys = {
        "gap": Key(_number(0, inclusive=False)),
        "start": Key(_trigger),
        "end": Key(_trigger),
        "minimum_steps": Key(_count),
    }
    return Separation(**read_keys(value, where, keys))


def _goal(value: Any, where: str) -> Goal:
    if value == "last_position":
        return Goal("last_position")
    if not isinstance(value, dict):
        raise UserError(
            f"mapping: {where} must be 'last_position' or a section with 'within' or 'signal', not {value!r}"
        )
    keys = {
        "within": Key(_number(0, inclusive=False)),
        "position": Key(_numbers),
        "channel": Key(_channels),
        "signal": Key(_trigger),
    }
    read = read_keys(value, where, keys)
    if "signal" in read:
        if len(read) > 1:
            raise UserError(
                f"mapping: {where} has 'signal' and so cannot have {', '.join(sorted(set(read) - {'signal'}))}"
            )
        return Goal("signal", signal=read["signal"])
    if "within" not in read or ("position" in read) == ("channel" in read):
        raise UserError(f"mapping: {where} needs 'signal', or 'within' with either 'position' or 'channel'")
    return Goal("threshold", read["within"], read.get("position", ()), read.get("channel", ()))


def _reward(value: Any, where: str) -> tuple[Channel, ...] | str:
    return DISTANCE if value == DISTANCE else _channels(value, where)


def _image(value: Any, where: str) -> str:
    return str(read_keys(value, where, {"topic": Key(_text, True)})["topic"])


MAPPING_KEYS = {
    "observation": Key(_channels, True),
    "position": Key(_channels),
    "action": Key(_action, True),
    "reward": Key(_reward),
    "image": Key(_image),
    "time": Key(_timing),
    "episodes": Key(_separation),
    "goal": Key(_goal, True),
}


def parse_mapping(value: Any) -> Mapping:
    """Read a mapping from what YAML gave and check what its keys ask of each other."""
    mapping = Mapping(**read_keys(value, "the file", MAPPING_KEYS))
    needs = {
        f"action: {mapping.action.meaning}": mapping.action.meaning in (DIFFERENCE, "target"),
        "goal.within": mapping.goal.rule == "threshold",
        "time.skip_still": mapping.time.skip_still > 0,
        f"reward: {DISTANCE}": mapping.reward == DISTANCE,
    }
    for name, needed in needs.items():
        if needed and not mapping.position:
            raise UserError(f"mapping: {name} needs 'position', which the file does not have")
    if mapping.reward == DISTANCE and mapping.goal.rule == "signal":
        raise UserError(f"mapping: reward: {DISTANCE} needs a goal position; goal.signal gives none")
    return mapping


def load_mapping(path: Path) -> Mapping:
    """Read and check a mapping file."""
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"mapping {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"mapping {path} is not YAML: {error}") from error
    return parse_mapping(value)
