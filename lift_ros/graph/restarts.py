"""When a node that has ended is started again: the one rule of `lift run` and of the launch files."""

from __future__ import annotations

import signal
from collections import Counter

from lift_ros.errors import UserError

RESTARTS = 5
BAD_INPUT = 2  # exit status with which a node refuses what a user gave it


class GraphFailed(UserError):
    """A process without restarts left has ended although the run was not complete."""

    exit_status = 1


class Restarts:
    """Counts the restarts of each process by its name."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def claim(self, name: str, returncode: int, allowed: int = RESTARTS) -> str:
        """Count one more restart and return the line about it; raise `GraphFailed` where it would be in vain."""
        status = _describe_status(returncode)
        if returncode == BAD_INPUT:
            raise GraphFailed(f"{name} refused its input and would do so again; its log says why")
        if self.counts[name] >= allowed:
            raise GraphFailed(f"{name} {status} and has no restarts left ({allowed} allowed); its log says why")
        self.counts[name] += 1
        return f"{status}; restart {self.counts[name]} of {allowed}"


def _describe_status(returncode: int) -> str:
    if returncode < 0:
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"ended with status {returncode}"
