"""A recorded run as a sequence of messages in time, and the pauses to keep between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from lift_ros.bags.contents import located
from lift_ros.bags.files import list_run
from lift_ros.bags.mcap_records import Announced, RecordedMessage, RecordedTopic, file_bytes, read_summary, walk
from lift_ros.configuration import nearest
from lift_ros.errors import UserError

SECOND = 1e9


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
        with located(path):
            announced, _ = read_summary(file_bytes(path, whole=False))
        for topic in announced.topics.values():
            if topic.type_name and topic.encoding == "cdr":
                topics.setdefault(topic.name, topic)
    return topics


def choose_topics(run: Path, wanted: Sequence[str] | None) -> dict[str, RecordedTopic]:
    """Return the topics to replay, all by default; a name that was not recorded is an error."""
    topics = recorded_topics(run)
    for name in wanted or ():
        if name not in topics:
            raise UserError(f"run {run} has no topic {name}; {nearest(name, list(topics))}")
    return {name: topic for name, topic in topics.items() if not wanted or name in wanted}


def recorded_messages(run: Path, topics: Container[str]) -> Iterator[RecordedMessage]:
    """Yield the messages of a run in order of time, one file after another."""
    for path in run_files(run):
        with located(path):
            found = walk(file_bytes(path, whole=False), Announced())
            messages = [message for message in found if message.topic.name in topics]
        yield from sorted(messages, key=attrgetter("time_ns"))


def in_time(
    messages: Iterable[RecordedMessage],
    rate: float,
    longest_pause: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[RecordedMessage]:
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
        if (left := due - clock()) > 0:
            sleep(left)
        yield message
