"""What a joint_trajectory_controller does with trajectories: which it refuses, and where joints should be meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError


@dataclass(frozen=True)
class Point:
    """Where joints should be some seconds after the start; without velocities the way there is straight."""

    seconds: float
    positions: Sequence[float]
    velocities: Sequence[float] = ()


@dataclass(frozen=True)
class _Knot:
    seconds: float
    positions: FloatArray
    velocities: FloatArray | None


class JointController:
    """Follows one trajectory at a time; a new one begins at the present state and replaces the old one."""

    def __init__(self, joints: Sequence[str], position: FloatArray) -> None:
        self.joints = tuple(joints)
        self._knots: list[_Knot] = []
        self._begun = 0.0
        self.hold(position)

    def hold(self, position: FloatArray) -> None:
        """Stay at a position."""
        self._knots = [_Knot(0.0, np.array(position), None)]

    def follow(
        self, names: Sequence[str], points: Sequence[Point], now: float, position: FloatArray, velocity: FloatArray
    ) -> None:
        """Follow a trajectory from the present state on; an empty one holds. UserError where it is refused."""
        order = self._order(names)
        knots = [self._knot(i, point, order) for i, point in enumerate(points)]
        before = 0.0
        for i, knot in enumerate(knots):
            if not knot.seconds > before:
                raise UserError(
                    f"point {i} is due at {knot.seconds:g} s; allowed: later than {before:g} s, when the one before is"
                )
            before = knot.seconds
        if not knots:
            self.hold(position)
            return
        last = knots[-1].velocities
        if last is not None and np.any(last != 0):
            raise UserError(
                f"the last point has velocities {last.tolist()}; allowed: 0, so that the joints end at rest"
            )
        self._knots, self._begun = [_Knot(0.0, np.array(position), np.array(velocity)), *knots], now

    def reference(self, now: float) -> tuple[FloatArray, FloatArray]:
        """Return where the joints should be and how fast."""
        seconds = now - self._begun
        for left, right in zip(self._knots, self._knots[1:], strict=False):
            if seconds < right.seconds:
                return _between(left, right, max(0.0, seconds - left.seconds))
        last = self._knots[-1].positions
        return last.copy(), np.zeros_like(last)

    def _order(self, names: Sequence[str]) -> list[int]:
        if sorted(names) != sorted(self.joints):
            raise UserError(f"the trajectory names the joints {', '.join(names)}; allowed: {', '.join(self.joints)}")
        return [list(names).index(joint) for joint in self.joints]

    def _knot(self, i: int, point: Point, order: list[int]) -> _Knot:
        columns: list[FloatArray | None] = []
        for what, values in (("positions", point.positions), ("velocities", point.velocities)):
            column = np.array(values, dtype=float)
            if column.size == 0 and what == "velocities":
                columns.append(None)
                continue
            if column.shape != (len(order),) or not np.isfinite(column).all():
                raise UserError(f"point {i} has {what} {column.tolist()}; allowed: {len(order)} finite numbers")
            columns.append(column[order])
        assert columns[0] is not None
        return _Knot(point.seconds, columns[0], columns[1])


def _between(left: _Knot, right: _Knot, elapsed: float) -> tuple[FloatArray, FloatArray]:
    """Return position and velocity on the cubic between two points, or on the line where one has no velocities."""
    duration, way = right.seconds - left.seconds, right.positions - left.positions
    if left.velocities is None or right.velocities is None:
        return left.positions + way * elapsed / duration, way / duration
    v, w = left.velocities, right.velocities
    square = (3 * way - (2 * v + w) * duration) / duration**2
    cube = (-2 * way + (v + w) * duration) / duration**3
    position = left.positions + v * elapsed + square * elapsed**2 + cube * elapsed**3
    return position, v + 2 * square * elapsed + 3 * cube * elapsed**2
