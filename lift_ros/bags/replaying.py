"""A recorded run as a sequence of messages in time, and the pauses to keep between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcap.reader import make_reader

from lift_ros.bags.files import list_run
from lift_ros.configuration import nearest
from lift_ros.errors import UserError

SECOND = 1e9


@dataclass(frozen=True, slots=True)
class RecordedTopic:
    """What a run says about one of its topics."""

    name: str
    type_name: str
    qos: str  # YAML as the recorder wrote it


@dataclass(frozen=True, slots=True)
class Recorded:
    """One message of a run, as it was on the wire."""

    topic: str
    time_ns: int
    data: bytes


def run_files(run: Path) -> list[Path]:
    """Return the complete files of a run in order; a single .mcap file is a run of one."""
    if run.is_file():
        return [run]
    if not run.is_dir():
        raise UserError(f"run {run} does not exist")
    files = [run / name for name in list_run(run).finished]
    if not files:
        raise UserError(f"run {run} has no finished .mcap file; give the directory of a recorded run")
    return files


def recorded_topics(run: Path) -> dict[str, RecordedTopic]:
    """Return the topics of a run."""
    topics: dict[str, RecordedTopic] = {}
    for path in run_files(run):
        try:
            with path.open("rb") as stream:
                summary = make_reader(stream).get_summary()
        except Exception as error:  # mcap raises struct, lookup and value errors on damaged files
            raise UserError(f"{path} cannot be read: {error}") from error
        for channel in summary.channels.values() if summary is not None else ():
            schema = summary.schemas.get(channel.schema_id) if summary is not None else None
            if schema is not None and channel.message_encoding == "cdr":
                qos = channel.metadata.get("offered_qos_profiles", "")
                topics.setdefault(channel.topic, RecordedTopic(channel.topic, schema.name, qos))
    return topics


def choose_topics(run: Path, wanted: Sequence[str] | None) -> dict[str, RecordedTopic]:
    """Return the topics to replay, all by default; a name that was not recorded is an error."""
    topics = recorded_topics(run)
    for name in wanted or ():
        if name not in topics:
            raise UserError(f"run {run} has no topic {name}; {nearest(name, list(topics))}")
    return {name: topic for name, topic in topics.items() if not wanted or name in wanted}


def recorded_messages(run: Path, topics: Iterable[str]) -> Iterator[Recorded]:
    """Yield the messages of a run in order of time, one file open at a time."""
    names = list(topics)
    for path in run_files(run):
        try:
            with path.open("rb") as stream:
                for _, channel, message in make_reader(stream).iter_messages(topics=names):
                    yield Recorded(channel.topic, message.log_time, message.data)
        except Exception as error:
            raise UserError(f"{path} cannot be read: {error}") from error


def in_time(
    messages: Iterable[Recorded],
    rate: float,
    longest_pause: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Recorded]:
    """Yield each message when its time has come at `rate` times the original speed; late ones at once.

    `longest_pause` shortens longer waits between two messages, in seconds of the replay.
    """
    due = clock()
    before: int | None = None
    for message in messages:
        if before is not None:
            pause = max(0.0, (message.time_ns - before) / SECOND / rate)
            due += pause if longest_pause is None else min(pause, longest_pause)
        before = message.time_ns
        left = due - clock()
        if left > 0:
            sleep(left)
        yield message
