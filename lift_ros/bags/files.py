"""Which topics and files make up a run, what the names of files say, and who may write them."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.messages.definitions import full_definition, type_hash, type_name

JOURNAL_SUFFIX = ".active"
PARTS = ".parts"  # folder of a run in which other processes write what it takes over
_NAME = re.compile(r"_(\d{6,10})(_tail\d*)?\.mcap(\.active)?$")
_FOREVER = {"sec": 9223372036, "nsec": 854775807}
# As the arbiter offers both topics.
_QOS = {
    "history": "keep_last",
    "depth": 1000,
    "reliability": "reliable",
    "durability": "volatile",
    "deadline": _FOREVER,
    "lifespan": _FOREVER,
    "liveliness": "automatic",
    "liveliness_lease_duration": _FOREVER,
    "avoid_ros_namespace_conventions": False,
}


def _topic(name: str, message: str) -> RecordedTopic:
    return RecordedTopic(name, type_name(message), full_definition(message), type_hash(message), json.dumps([_QOS]))


NAMESPACE = "/lift"  # of a graph that was given no other
STEP = _topic(f"{NAMESPACE}/step", "Step")
EPISODE = _topic(f"{NAMESPACE}/episode", "Episode")


def topics_of(namespace: str) -> tuple[RecordedTopic, RecordedTopic]:
    """Return the topics of steps and of the ends of episodes in a namespace."""
    step, episode = (
        replace(topic, name=namespace.rstrip("/") + topic.name.removeprefix(NAMESPACE)) for topic in (STEP, EPISODE)
    )
    return step, episode


def known_as(topic: RecordedTopic) -> RecordedTopic | None:
    """Return STEP or EPISODE where a topic is that of some namespace; by its name alone in the usual one."""
    for known in (STEP, EPISODE):
        if topic.name == known.name or (
            topic.type_name == known.type_name and topic.name.endswith(known.name.removeprefix(NAMESPACE))
        ):
            return known
    return None


def namespace_of(topic: RecordedTopic) -> str:
    """Return the namespace of a topic."""
    return topic.name.rpartition("/")[0] or "/"


def file_name(run: Path, first_episode: int) -> str:
    """Return the name of the file whose first episode is `first_episode`."""
    return f"{run.resolve().name}_{first_episode:06d}.mcap"


def tail_name(run: Path, next_episode: int) -> str:
    """Return a free name for a file with messages but no episode."""
    stem = f"{run.resolve().name}_{next_episode:06d}_tail"
    return next(name for number in count() if not (run / (name := f"{stem}{number}.mcap")).exists())


@lru_cache(maxsize=2**16)
def _parse(name: str) -> tuple[int | None, bool]:
    """Return the number in a file's name, and whether it says that the file holds no episode."""
    match = _NAME.search(name)
    return (int(match.group(1)), match.group(2) is not None) if match else (None, False)


def first_episode_of(name: str) -> int | None:
    """Return the first episode that a file's name promises; None where it promises nothing."""
    number, tail = _parse(name)
    return None if tail else number


def is_tail(name: str) -> bool:
    """Whether a file's name says that it holds no episode."""
    return _parse(name)[1]


class Listing(NamedTuple):
    """The files of a run, in order."""

    finished: list[str]
    journal: str | None


def list_run(run: Path) -> Listing:
    """Return what lies in the run's directory."""
    names = os.listdir(run)
    finished = [name for name in names if name.endswith(".mcap") and not name.startswith(".")]
    journals = [name for name in names if name.endswith(".mcap" + JOURNAL_SUFFIX)]
    finished.sort(key=lambda name: (-1 if (number := _parse(name)[0]) is None else number, name))
    return Listing(finished, max(journals, default=None))


class RunLock:
    """Held by whoever records into a run; the kernel releases it when the process dies."""

    def __init__(self, run: Path) -> None:
        self._descriptor = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def acquire(self) -> bool:
        """Take the lock; False where another process records into the run."""
        return self._lock(fcntl.LOCK_EX)

    def held_elsewhere(self) -> bool:
        """Whether a process records into the run now."""
        return not (self._lock(fcntl.LOCK_SH) and self._lock(fcntl.LOCK_UN))

    def _lock(self, operation: int) -> bool:
        try:
            fcntl.flock(self._descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Let go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, pieces: Sequence[bytes | bytearray | memoryview], size: int) -> None:
    """Write pieces of so many bytes in all one after the other, which the kernel may take in several goes."""
    done = os.writev(descriptor, pieces)
    while done < size:
        done += os.write(descriptor, b"".join(pieces)[done:])
