"""Which files make up a run and what their names say."""

from __future__ import annotations

import fcntl
import os
import re
from dataclasses import dataclass
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


def first_episode_of(name: str) -> int | None:
    """Return the first episode that a file's name promises; None where it promises nothing."""
    match = _NAME.search(name)
    return int(match.group(1)) if match and not match.group(2) else None


def is_tail(name: str) -> bool:
    """Whether a file's name says that it holds no episode."""
    match = _NAME.search(name)
    return match is not None and match.group(2) is not None


@dataclass(frozen=True)
class Listing:
    """The files of a run, in order."""

    finished: list[str]
    journal: str | None


def list_run(run: Path) -> Listing:
    """Return what lies in the run's directory; the name of a finished file wins over what metadata.yaml knows."""
    names = [entry.name for entry in os.scandir(run)]
    finished = sorted(name for name in names if name.endswith(".mcap") and not name.startswith("."))
    journals = sorted(name for name in names if name.endswith(".mcap" + JOURNAL_SUFFIX))
    finished.sort(key=_order)
    return Listing(finished, journals[-1] if journals else None)


def _order(name: str) -> tuple[int, str]:
    match = _NAME.search(name)
    return (int(match.group(1)) if match else -1, name)


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
