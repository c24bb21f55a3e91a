"""Outlives a supervisor that was killed until nothing is left of what it had started.

`python -m lift_ros.graph.guardian SECONDS` reads `+PID` and `-PID` for each process that began and ended. When its
input ends, as it does with the supervisor, it kills those that are left after so many seconds: a routine that is stuck
hears no signal that asks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

from lift_ros.processes import module_command


class Guardian:
    """The supervisor's side: starts the process and tells it whom to kill in the end."""

    def __init__(self, grace_s: float) -> None:
        command = [*module_command("lift_ros.graph.guardian"), str(grace_s)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
        )

    def watch(self, pid: int) -> None:
        """Kill this process and its group if the supervisor does not live to do it."""
        self._tell(f"+{pid}")

    def forget(self, pid: int) -> None:
        """Leave this process alone: it has ended, and its number may come again."""
        self._tell(f"-{pid}")

    def close(self) -> None:
        """End the guardian; whom it still watches is killed."""
        self._process.communicate()

    def _tell(self, word: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody killed it; then the kernel's signal must suffice
            print(word, file=self._process.stdin, flush=True)


def left_behind(words: Iterable[str]) -> list[int]:
    """Return the processes that began and did not end."""
    watched: dict[int, None] = {}
    for word in words:
        if word.startswith("+"):
            watched[int(word)] = None
        else:
            watched.pop(-int(word), None)
    return list(watched)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> int:
    """Wait until the supervisor is gone, then for its processes, then no longer."""
    groups = left_behind(sys.stdin)
    deadline = time.monotonic() + float(sys.argv[1])
    while any(map(_alive, groups)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
