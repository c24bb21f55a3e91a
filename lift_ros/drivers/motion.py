"""The rules of motion, shared by all axes: when a move may begin, when it has arrived, and when it has failed.

Nothing here waits or knows the time: whoever runs a device asks with the time, and does what is answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from lift_ros.array_types import BoolArray, FloatArray
from lift_ros.configuration import Key
from lift_ros.drivers.protocol import Axis, DriverFault, MoveRefused
from lift_ros.positioning.problem import LARGEST_LENGTH

MOTION_KEYS = {
    "poll_seconds": Key(float, 0.02, low=0.001, high=10, meaning="pause between two questions to the device"),
    "settle_seconds": Key(float, 0.1, low=0, high=60, meaning="how long axes must rest at the target to have arrived"),
    "time_limit": Key(
        float, 30.0, above=0, high=3600, meaning="seconds that a move may take, beside distance / velocity"
    ),
    "stall_seconds": Key(float, 5.0, above=0, high=600, meaning="seconds without progress that end a move as a fault"),
    "home_seconds": Key(float, 120.0, above=0, high=3600, meaning="seconds that homing may take"),
    "home_required": Key(bool, True, meaning="refuse moves before homing"),
}
AXIS_KEYS = {
    "name": Key(str, meaning="what sentences and plots call the axis"),
    "unit": Key(str, meaning="unit of positions, as the device counts them"),
    "low": Key(float, low=-LARGEST_LENGTH, high=LARGEST_LENGTH, meaning="lowest position that is moved to"),
    "high": Key(float, low=-LARGEST_LENGTH, high=LARGEST_LENGTH, meaning="highest position that is moved to"),
    "tolerance": Key(float, above=0, high=LARGEST_LENGTH, meaning="largest distance from the target on arrival"),
    "velocity": Key(
        float, None, above=0, high=LARGEST_LENGTH, optional=True, meaning="units per second, for the time limit"
    ),
    "backlash": Key(
        float,
        0.0,
        low=-LARGEST_LENGTH,
        high=LARGEST_LENGTH,
        meaning="length of the last approach, which goes in the direction of its sign; 0: as it comes",
    ),
}


@dataclass(frozen=True)
class MotionSettings:
    """How the axes of one device move; arrays have one value per axis, a velocity of NaN is unknown."""

    axes: tuple[Axis, ...]
    tolerance: FloatArray
    velocity: FloatArray
    backlash: FloatArray
    poll_seconds: float = 0.02
    settle_seconds: float = 0.1
    time_limit: float = 30.0
    stall_seconds: float = 5.0
    home_seconds: float = 120.0
    home_required: bool = True

    @classmethod
    def of(cls, axes: Sequence[Mapping[str, Any]], motion: Mapping[str, Any]) -> MotionSettings:
        """Return what checked mappings of AXIS_KEYS and MOTION_KEYS say."""
        named = tuple(Axis(axis["name"], axis["unit"], axis["low"], axis["high"]) for axis in axes)
        columns: dict[str, Any] = {
            name: np.array([axis[name] for axis in axes], dtype=float) for name in ("tolerance", "velocity", "backlash")
        }
        return cls(named, **columns, **motion)

    def seconds_for(self, distance: FloatArray) -> float:
        """Return how long a move may take: what the slowest axis needs, and the fixed limit on top."""
        needed = np.abs(distance) / self.velocity
        return self.time_limit + float(np.nanmax(needed, initial=0.0))


class Phase(Enum):
    """Where a move stands."""

    APPROACHING = "on the way to where the last approach begins"
    MOVING = "on the way to the target"
    SETTLING = "at the target, and watched"
    ARRIVED = "at rest at the target"
    FAULTED = "failed"


class Action(Enum):
    """What to do next."""

    WAIT = "ask again after the poll interval"
    START = "start towards the decision's target"
    FINISH = "the move has arrived"
    FAIL = "the move has failed: stop"


@dataclass(frozen=True)
class Decision:
    """What a move wants of whoever runs the device."""

    action: Action
    target: FloatArray | None = None
    fault: DriverFault | None = None


_WAIT, _FINISH = Decision(Action.WAIT), Decision(Action.FINISH)


class Move:
    """One coordinated move of all axes; MoveRefused where it must not begin."""

    def __init__(
        self, settings: MotionSettings, position: FloatArray, target: FloatArray, now: float, *, homed: bool
    ) -> None:
        self._settings = settings
        self.target = _checked(settings, target, "target")
        position = _read_back(settings, position)
        if settings.home_required and not homed:
            raise MoveRefused(
                f"axes {_names(settings)} were not homed since they were connected; home them first, or set "
                "motion.home_required: false where the device keeps its reference"
            )
        approach = self._approach(position)
        self.phase = Phase.MOVING if approach is None else Phase.APPROACHING
        self.first_target = self.target if approach is None else _checked(settings, approach, "backlash approach")
        way = np.abs(self.first_target - position) + np.abs(self.target - self.first_target)
        self._begun, self._allowed = now, settings.seconds_for(way)
        self._heading = self.first_target
        self._marked, self._marked_at = position, now  # where progress was last seen
        self._resting_since: float | None = None  # not busy ever since
        self._inside_since: float | None = None  # not busy and at the target ever since

    def _approach(self, position: FloatArray) -> FloatArray | None:
        """Return where axes turn round to arrive in the direction of their backlash's sign, where one must."""
        backlash, way = self._settings.backlash, self.target - position
        against = (way * backlash < 0) & (np.abs(way) > self._settings.tolerance)
        return np.where(against, self.target - backlash, self.target) if against.any() else None

    def next(self, now: float, busy: bool, position: FloatArray) -> Decision:
        """Return what to do, now that the device tells this."""
        try:
            position = _read_back(self._settings, position)
            self._watch(now, busy, position)
            return self._decide(now, busy, position)
        except DriverFault as fault:
            self.phase = Phase.FAULTED
            return Decision(Action.FAIL, fault=fault)

    def _watch(self, now: float, busy: bool, position: FloatArray) -> None:
        off = np.abs(position - self._heading)
        inside = bool((off <= self._settings.tolerance).all())
        if (np.abs(position - self._marked) > self._settings.tolerance).any():
            self._marked, self._marked_at = position, now
        self._resting_since = None if busy else _since(self._resting_since, now)
        self._inside_since = _since(self._inside_since, now) if inside and not busy else None

    def _decide(self, now: float, busy: bool, position: FloatArray) -> Decision:
        settled = self._settings.settle_seconds
        if self._inside_since is not None:
            if self.phase is Phase.APPROACHING:
                return self._turn(now, position)
            self.phase = Phase.ARRIVED if now - self._inside_since >= settled else Phase.SETTLING
            if self.phase is Phase.ARRIVED:
                return _FINISH
        elif self.phase is Phase.SETTLING:
            self.phase = Phase.MOVING
        self._check_time(now, position)
        self._check_progress(now, busy, position)
        return _WAIT

    def _turn(self, now: float, position: FloatArray) -> Decision:
        self.phase, self._heading = Phase.MOVING, self.target
        self._marked, self._marked_at = position, now
        self._resting_since = self._inside_since = None
        return Decision(Action.START, self.target)

    def _check_time(self, now: float, position: FloatArray) -> None:
        if now - self._begun > self._allowed:
            raise self._fault(
                f"after {now - self._begun:.3g} s, limit {self._allowed:.3g} s",
                position,
                "check that it moves freely, or raise motion.time_limit",
            )

    def _check_progress(self, now: float, busy: bool, position: FloatArray) -> None:
        unmoved = now - self._marked_at
        if self._inside_since is None and self._resting_since is not None:
            resting = min(unmoved, now - self._resting_since)
            if resting >= self._settings.settle_seconds:
                raise self._fault(
                    f"and rests, as the device says, for {resting:.3g} s (motion.settle_seconds "
                    f"{self._settings.settle_seconds:g})",
                    position,
                    "the move was short or refused: look for the device's own limits and alarms",
                )
        if busy and unmoved >= self._settings.stall_seconds:
            raise self._fault(
                f"and stalled: busy without progress for {unmoved:.3g} s, limit {self._settings.stall_seconds:g} s",
                position,
                "check that nothing blocks it and that its drive is on",
            )

    def _fault(self, what: str, position: FloatArray, remedy: str) -> DriverFault:
        off = np.abs(position - self._heading)
        i = int(np.argmax(off / self._settings.tolerance))
        axis, tolerance = self._settings.axes[i], self._settings.tolerance[i]
        return DriverFault(
            f"axis {axis.name} is at {axis.show(position[i])}, {axis.show(off[i])} off its target "
            f"{axis.show(self._heading[i])} (tolerance {axis.show(tolerance)}), {what}; {remedy}"
        )


class Rest:
    """Watches for the end of a motion without target, of homing or after a stop: not busy and unmoved for a while."""

    def __init__(self, settings: MotionSettings, now: float, allowed: float, what: str) -> None:
        self._settings, self._begun, self._allowed, self._what = settings, now, allowed, what
        self._marked: FloatArray | None = None
        self._since: float | None = None

    def reached(self, now: float, busy: bool, position: FloatArray) -> bool:
        """Whether all axes rest; DriverFault where that takes too long."""
        position = _read_back(self._settings, position)
        moved = self._marked is None or bool((np.abs(position - self._marked) > self._settings.tolerance).any())
        if moved:
            self._marked = position
        self._since = None if busy else now if moved else _since(self._since, now)
        if self._since is not None and now - self._since >= self._settings.settle_seconds:
            return True
        if now - self._begun > self._allowed:
            raise DriverFault(
                f"axes {_names(self._settings)} still move {now - self._begun:.3g} s after {self._what}, limit "
                f"{self._allowed:.3g} s; cut their power where that is not safe, then check the device"
            )
        return False


def _since(earlier: float | None, now: float) -> float:
    return now if earlier is None else earlier


def _names(settings: MotionSettings) -> str:
    return ", ".join(axis.name for axis in settings.axes)


def _checked(settings: MotionSettings, target: FloatArray, what: str) -> FloatArray:
    """Return a target of finite numbers within all soft limits."""
    target = np.array(target, dtype=float)
    if target.shape != (len(settings.axes),):
        raise MoveRefused(f"a {what} has {target.size} values; allowed: one for each of the axes {_names(settings)}")
    for axis, value in zip(settings.axes, target.tolist(), strict=True):
        if not axis.low <= value <= axis.high:
            raise MoveRefused(
                f"the {what} of axis {axis.name} is {axis.show(value)}; allowed: {axis.show(axis.low)} to "
                f"{axis.show(axis.high)}, the soft limits of the scenario; choose a target between them"
            )
    return target


def _read_back(settings: MotionSettings, position: FloatArray) -> FloatArray:
    position = np.array(position, dtype=float)
    finite: BoolArray = np.isfinite(position)
    if position.shape != (len(settings.axes),) or not finite.all():
        raise DriverFault(
            f"the device reads back {position.tolist()}; allowed: one finite number for each of the axes "
            f"{_names(settings)}; check its encoders and its connection"
        )
    return position
