"""What can be wrong with a bag, told so that a user knows where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.messages.errors import MessageError

REMEDY = "Restore the file from a copy, or leave bad episodes out with --skip-bad (skip_bad=True)."


class BagError(UserError):
    """A bag that cannot be read or written as asked: names bag, episode, step and remedy as far as they are known."""

    def __init__(
        self,
        problem: str,
        *,
        bag: Path | str,
        episode: int | None = None,
        step: int | None = None,
        remedy: str = REMEDY,
    ) -> None:
        self.problem = problem
        self.bag = str(bag)
        self.episode = episode
        self.step = step
        self.remedy = remedy
        within = [f", {name} {place}" for name, place in (("episode", episode), ("step", step)) if place is not None]
        super().__init__(f"bag '{bag}'{''.join(within)}: {problem}. {remedy}")


class DiskFull(BagError):
    """There is no room for another record; all finished episodes are safe."""


class EpisodeError(BagError):
    """One episode is bad; `skip_bad` leaves it out and keeps the others."""


class Malformed(Exception):
    """Bytes that do not follow their format; callers know the place and turn it into a `BagError`."""


UNREADABLE = (Malformed, MessageError)  # what is wrong with a file's records or with the messages in them
Tolerate = Callable[[Exception], None]


def refuse(error: Exception) -> None:
    """Tolerate nothing."""
    raise error
