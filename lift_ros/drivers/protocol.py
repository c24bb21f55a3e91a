"""What axes and cameras offer, whichever controller stands behind them, and how they fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lift_ros.array_types import FloatArray, Picture
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import PictureFormat


class DriverFault(UserError):
    """A device failed, or did not do what was asked; the sentence names axis, value, limit and remedy."""

    latches = True  # nothing moves again before somebody has looked and reset it


class MoveRefused(DriverFault):
    """A move that was not begun: nothing has moved, so the next one may be asked at once."""

    latches = False


class Displaced(MoveRefused):
    """A move from where the axes are not any more, since somebody else moved them: not begun."""


class MoveStopped(DriverFault):
    """A move that somebody stopped: it failed, but no device did."""

    latches = False


@dataclass(frozen=True)
class Axis:
    """One axis as a scenario describes it; `low` and `high` are soft limits, in its unit."""

    name: str
    unit: str
    low: float
    high: float

    def show(self, value: float) -> str:
        """Return a position as sentences name it."""
        return f"{value + 0.0:.6g} {self.unit}"  # no minus before 0


@runtime_checkable
class Axes(Protocol):
    """Axes that move together. One thread calls all methods but `stop`, which any thread may call at any time."""

    @property
    def layout(self) -> tuple[Axis, ...]:
        """Names, units and limits, in the order of positions; known without connecting."""

    def connect(self) -> None:
        """Open the device and check that its axes are there; nothing moves. Called again after `close`."""

    def home(self) -> None:
        """Begin to look for the reference of all axes; `busy` tells when that has ended."""

    def position(self) -> FloatArray:
        """Return where the axes are, as the device reads it back."""

    def start(self, target: FloatArray) -> None:
        """Begin to move all axes to an absolute target, and return without waiting."""

    def busy(self) -> bool:
        """Whether the device says that an axis moves; it may say no too early."""

    def stop(self) -> None:
        """End all motion now, and return without waiting."""

    def close(self) -> None:
        """Release the device; it may be closed already."""


class Camera(Protocol):
    """Something that takes pictures of one format."""

    @property
    def format(self) -> PictureFormat:
        """Size and encoding of every picture; known once connected."""

    def connect(self) -> None:
        """Open the device. Called again after `close`."""

    def frame(self, exposed_after: float, timeout: float) -> Picture:
        """Return a picture whose exposure began after a time of the monotonic clock, within `timeout` seconds."""

    def close(self) -> None:
        """Release the device; it may be closed already."""
