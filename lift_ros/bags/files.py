"""Which files make up a run and what their names say."""

from __future__ import annotations

import fcntl
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

JOURNAL_SUFFIX = ".active"
_NAME = re.compile(r"_(\d{6,10})(_tail\d*)?\.mcap$")


def file_name(run: Path, first_episode: int) -> str:
    """Return the name of the file whose first episode is `first_episode`."""
    return f"{run.resolve().name}_{first_episode:06d}.mcap"


def tail_name(run: Path, next_episode: int) -> str:
    """Return a free name for a file with messages but no episode."""
    stem = f"{run.resolve().name}_{next_episode:06d}_tail"
    number = 0
    while (run / f"{stem}{number}.mcap").exists():
        number += 1
    return f"{stem}{number}.mcap"


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


@dataclass(frozen=True)
class Listing:
    """The files of a run, in order."""

    finished: list[str]
    journal: str | None


def list_run(run: Path) -> Listing:
    """Return what lies in the run's directory."""
    names = os.listdir(run)
    finished = [name for name in names if name.endswith(".mcap") and not name.startswith(".")]
    journals = [name for name in names if name.endswith(".mcap" + JOURNAL_SUFFIX)]
    return Listing(sorted(finished, key=_order), max(journals, default=None))


def _order(name: str) -> tuple[int, str]:
    number, _ = _parse(name)
    return (-1 if number is None else number, name)


class RunLock:
    """Held by whoever records into a run; the kernel releases it when the process dies."""

    def __init__(self, run: Path) -> None:
        self._descriptor = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def acquire(self) -> bool:
        """Take the lock; False where another process records into the run."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def held_elsewhere(self) -> bool:
        """Whether a process records into the run now."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return False

    def release(self) -> None:
        """Let go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
