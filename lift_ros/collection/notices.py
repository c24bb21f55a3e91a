"""What recorder and trainer announce besides the arbiter's own exchange, as plain dataclasses that need no ROS."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ready:
    """The recorder waits for episodes; `episode` is the next free number of its run."""

    episode: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The recorder has stopped: nothing after this is safe in the bag."""

    reason: str
    episode: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """A trained model is ready on disk."""

    path: str
    sha256: str
    algorithm: str
    episodes: int
