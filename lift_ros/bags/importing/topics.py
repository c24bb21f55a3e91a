"""What a foreign bag holds, topic by topic, and a first mapping for it: guessed from names and types, to be edited."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lift_ros.bags.importing.foreign_bag import Field, ForeignBag, values_of
from lift_ros.bags.importing.images import COMPRESSED_TYPE, RAW_TYPE
from lift_ros.bags.importing.mapping import DIFFERENCE, MappedTopic
from lift_ros.bags.importing.samples import LARGEST_VECTOR, SECOND, read_numbers
from lift_ros.errors import UserError

_TEXTS = ("string", "wstring")
_HEADER = "header."
# Types that tell where something is, the surest first, with the beginnings of the fields that do.
_PLACES = {
    "geometry_msgs/msg/PointStamped": "point.",
    "geometry_msgs/msg/PoseStamped": "pose.position.",
    "geometry_msgs/msg/PoseWithCovarianceStamped": "pose.pose.position.",
    "nav_msgs/msg/Odometry": "pose.pose.position.",
    "geometry_msgs/msg/TransformStamped": "transform.translation.",
    "geometry_msgs/msg/Vector3Stamped": "vector.",
    "geometry_msgs/msg/Point": "",
    "geometry_msgs/msg/Pose": "position.",
    "sensor_msgs/msg/JointState": "position",
}
# Of ROS itself: nothing that a policy should see.
_HOUSEKEEPING = ("rcl_interfaces/", "rosgraph_msgs/", "diagnostic_msgs/", "tf2_msgs/", "visualization_msgs/")
_COMMANDS = re.compile(r"cmd|command|move|delta|increment|jog|set_?point|target|goal")
_TARGETS = re.compile(r"set_?point|target|goal")
_VELOCITIES = re.compile(r"vel|twist", re.IGNORECASE)
_REWARDS = re.compile(r"reward|score|cost")
_LONG_PAUSE = 10.0  # so many usual periods, and at least a second, are a pause between episodes


@dataclass(frozen=True)
class TopicSummary:
    """One topic of a bag."""

    topic: str
    typename: str
    messages: int
    rate: float  # of messages while they come, in Hz; NaN where there are less than two
    fields: tuple[Field, ...]  # of its first message
    has_header: bool
    problem: str  # why its messages cannot be read; empty where they can

    @property
    def numbers(self) -> tuple[Field, ...]:
        """The fields that can be imported."""
        return tuple(field for field in self.fields if field.kind not in _TEXTS and field.size)

    def about(self) -> str:
        """Return type, count and rate in words."""
        rate = "" if np.isnan(self.rate) else f", {self.rate:.3g} Hz"
        return f"{self.typename}  {self.messages} message{'' if self.messages == 1 else 's'}{rate}"

    def content(self) -> str:
        """Return the fields in words, or why there are none."""
        if self.problem:
            return self.problem
        words = [_with_size(field) + (" (text)" if field.kind in _TEXTS else "") for field in self.fields]
        return ", ".join([*words, *(["header"] if self.has_header else [])]) or "no messages, so its fields are unknown"


def _with_size(field: Field) -> str:
    if field.size == 0:
        return f"{field.path} (empty)"
    return field.path if field.size == 1 else f"{field.path}[0:{field.size}]"


def summarise_topics(bag: ForeignBag) -> list[TopicSummary]:
    """Return what each topic of a bag holds; one that cannot be decoded says why."""
    return [_summarise(bag, topic, times, first) for topic, (times, first) in bag.overview().items()]


def _summarise(bag: ForeignBag, topic: str, times: Sequence[int], first: bytes) -> TopicSummary:
    period = float(np.median(np.diff(np.sort(times)))) if len(times) > 1 else 0.0
    fields: list[Field] = []
    problem = ""
    if times:
        try:
            fields = list(values_of(bag.types(topic), bag.typename(topic), bag.decoder(topic)(first)))
        except UserError as error:
            problem = str(error)
        except Exception as error:  # generated decoders raise struct, index, unicode and assertion errors alike
            problem = f"its first message cannot be decoded ({error!r})"
    own = tuple(field for field in fields if not field.path.startswith(_HEADER))
    rate = SECOND / period if period else float("nan")
    return TopicSummary(topic, bag.typename(topic), len(times), rate, own, len(own) < len(fields), problem)


@dataclass(frozen=True)
class _Guess:
    """What the topics of a bag may be, as far as names and types tell."""

    observation: list[MappedTopic]
    position: MappedTopic
    action: MappedTopic | None
    meaning: str
    rewards: list[MappedTopic]
    gap: float | None


def propose_mapping(bag: ForeignBag, topics: Sequence[TopicSummary]) -> str:
    """Return a mapping file for a bag, with all alternatives as comments; it can be read as it stands."""
    guess = _guess(bag, topics)
    listed = [f"# {topic.topic}  {topic.about()}\n#     {topic.content()}" for topic in topics]
    flags = [(topic.topic, field.path) for topic in topics for field in topic.fields if field.kind == "bool"]
    lines = [
        f"# How {bag.path.name} becomes a run. All of it is guessed from names and types: check every line, above all",
        "# `action` and `goal`. The page on importing bags explains each key. What the bag holds:",
        *listed,
        "",
        "observation:  # what a policy will see",
        *(f"  - {_channel(channel)}" for channel in guess.observation),
        f"position: {_channel(guess.position)}  # where it is",
        _action_line(guess),
        "time: {match: previous, tolerance: 0.1}  # seconds",
        _episodes_line(guess.gap),
        "goal: last_position  # it always arrives; or {within: 0.01, position: [0, 0]}, or {signal: …}",
        *(f"# reward: {_channel(channel)}" for channel in guess.rewards),
        *(f"# image: {{topic: {topic.topic}}}" for topic in topics if _is_picture(topic)),
        *(f"# a trigger: {{topic: {topic}, field: {path}, equals: true}}" for topic, path in flags),
    ]
    return "\n".join(lines) + "\n"


def _episodes_line(gap: float | None) -> str:
    if gap is None:
        return "# episodes: {gap: 2.0}  # no pause is long enough to separate episodes: the bag is one"
    return f"episodes: {{gap: {gap:g}, minimum_steps: 2}}  # a pause of so many seconds separates two"


def _action_line(guess: _Guess) -> str:
    if guess.action is None:
        return f"action: {DIFFERENCE}  # nothing looks like a command"
    return f"action: {_channel(guess.action, guess.meaning)}  # meaning: increment, target or velocity"


def _channel(channel: MappedTopic, meaning: str = "") -> str:
    fields = ", ".join(json.dumps(field) if re.search(r"[\[\]:=,]", field) else field for field in channel.fields)
    end = f", meaning: {meaning}" if meaning else ""
    named = f"fields: [{fields}]" if len(channel.fields) > 1 else f"field: {fields}"
    return f"{{topic: {channel.topic}, {named}{end}}}"


def _guess(bag: ForeignBag, topics: Sequence[TopicSummary]) -> _Guess:
    usable = [topic for topic in topics if _is_usable(topic)]
    commands = [topic for topic in usable if _COMMANDS.search(topic.topic.lower())]
    rewards = [topic for topic in usable if _REWARDS.search(topic.topic.lower()) and topic not in commands]
    seen = [topic for topic in usable if topic not in commands and topic not in rewards]
    if not seen:
        raise UserError(f"bag {bag.path} has no topic with numbers that a policy could see, so no mapping is proposed")
    place = min(seen, key=lambda topic: [*_PLACES, topic.typename].index(topic.typename))
    command = next(iter(commands), None)
    others = [topic for topic in seen if topic is not place] or [place]
    return _Guess(
        observation=[_moving(bag, topic.topic, topic.numbers) for topic in others],
        position=_place_channel(bag, place),
        action=_moving(bag, command.topic, command.numbers) if command else None,
        meaning=_meaning(command) if command else "",
        rewards=[MappedTopic(topic.topic, (topic.numbers[0].path,)) for topic in rewards],
        gap=_gap(bag, (command or place).topic),
    )


def _is_picture(topic: TopicSummary) -> bool:
    return topic.typename in (RAW_TYPE, COMPRESSED_TYPE)


def _is_usable(topic: TopicSummary) -> bool:
    numbers = [field for field in topic.numbers if field.kind != "bool"]
    size = sum(field.size for field in numbers)
    return not _is_picture(topic) and not topic.typename.startswith(_HOUSEKEEPING) and 0 < size <= LARGEST_VECTOR


def _place_channel(bag: ForeignBag, topic: TopicSummary) -> MappedTopic:
    begin = _PLACES.get(topic.typename, "")
    return _moving(bag, topic.topic, [field for field in topic.numbers if field.path.startswith(begin)])


def _moving(bag: ForeignBag, topic: str, fields: Sequence[Field]) -> MappedTopic:
    """Return the fields of a topic that change in the bag, or all of them where none does."""
    paths = tuple(field.path for field in fields if field.kind != "bool")
    values = read_numbers(bag, MappedTopic(topic, paths), "received").values
    if values.shape[1] != len(paths):
        return MappedTopic(topic, paths)  # with arrays: these are taken whole
    changing = tuple(path for path, column in zip(paths, values.T, strict=True) if np.ptp(column) > 0)
    return MappedTopic(topic, changing or paths)


def _meaning(topic: TopicSummary) -> str:
    if _VELOCITIES.search(topic.topic) or _VELOCITIES.search(topic.typename):
        return "velocity"
    return "target" if _TARGETS.search(topic.topic.lower()) else "increment"


def _gap(bag: ForeignBag, topic: str) -> float | None:
    """Return half of the shortest long pause in a topic, in seconds, if there is one."""
    pauses = np.diff([time for time, _ in bag.messages(topic)]) / SECOND
    if pauses.size == 0:
        return None
    long = pauses[pauses > max(1.0, _LONG_PAUSE * float(np.median(pauses)))]
    return float(f"{long.min() / 2:.2g}") if long.size else None
