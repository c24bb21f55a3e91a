"""Measures how axes move: each goes a small step and back, several times from both sides, and is watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.drivers.motion import MotionSettings
from lift_ros.drivers.protocol import Axis
from lift_ros.drivers.worker import DeviceWorker, Sample
from lift_ros.errors import UserError

STEP_SHARE = 0.01  # of the travel, where no step is asked for
TOLERANCES = 10.0  # that a step is at least long, so that it says something
AFTER_SECONDS = 0.5  # that axes are watched after they said that they had arrived
WAIT_SECONDS = 600.0  # for an answer; moves have limits of their own
VISIBLE = 3.0  # so many times the change between two pictures at rest is more than noise
SAFETY = 1.5  # suggested settle times are so much longer than the longest that was seen


@dataclass(frozen=True)
class AxisCheck:
    """How one axis moved; lengths in its unit. Lost motion behind the encoder is not seen by any of it."""

    axis: Axis
    step: float
    move_seconds: float  # of the median move, until it had arrived
    settle_seconds: float  # of the slowest: from "not busy" until it stayed within the tolerance
    repeatability: float  # largest standard deviation of arrivals from one side
    hysteresis: float  # mean arrival from below less that from above
    error: float  # largest distance from the target

    def suggestions(self, settings: MotionSettings, i: int) -> dict[str, float]:
        """Return values for the scenario that fit what was measured, where the present ones do not."""
        suggested = {}
        settle = SAFETY * self.settle_seconds
        if settle > settings.settle_seconds:
            suggested["motion.settle_seconds"] = float(np.ceil(settle * 100) / 100)
        if (noise := 3 * max(self.error, self.repeatability)) > settings.tolerance[i]:
            suggested[f"axes[{i}].tolerance"] = float(f"{noise:.2g}")
        if abs(self.hysteresis) > settings.tolerance[i] and not settings.backlash[i]:
            suggested[f"axes[{i}].backlash"] = float(f"{3 * abs(self.hysteresis):.2g}")
        return suggested


@dataclass(frozen=True)
class SightCheck:
    """How much the picture changes, in grey levels per pixel, when one axis moves by a step, and when none does."""

    change: float
    noise: float

    @property
    def visible(self) -> bool:
        """Whether the camera sees the axis move."""
        return self.change > VISIBLE * self.noise


def check_sight(worker: DeviceWorker, axis: int, step: float, seconds: float) -> SightCheck:
    """Compare pictures before and after a step of one axis, which then goes back."""
    home, before = worker.look(seconds).result(WAIT_SECONDS)
    _, again = worker.look(seconds).result(WAIT_SECONDS)
    worker.move(_at(home, axis, home[axis] + step)).result(WAIT_SECONDS)
    _, after = worker.look(seconds).result(WAIT_SECONDS)
    worker.move(home).result(WAIT_SECONDS)
    return SightCheck(_difference(before, after), _difference(before, again))


def _difference(one: Picture | None, other: Picture | None) -> float:
    if one is None or other is None:
        raise UserError("the rig has no camera; add a section rig.camera to the scenario")
    return float(np.abs(one.astype(np.float64) - other).mean())


def check_axis(
    worker: DeviceWorker, settings: MotionSettings, i: int, repeats: int, step: float | None = None
) -> AxisCheck:
    """Move one axis to and fro around where it is and back to there; nothing else moves."""
    axis = settings.axes[i]
    home = worker.position().result(WAIT_SECONDS)
    if not axis.low <= home[i] <= axis.high:
        raise UserError(
            f"axis {axis.name} is at {axis.show(home[i])}; allowed: {axis.show(axis.low)} to {axis.show(axis.high)}, "
            "its limits in the scenario; correct them, or jog it between them first"
        )
    chosen = _step(settings, i, step)
    centre = float(np.clip(home[i], axis.low + chosen, axis.high - chosen))
    traces: dict[float, list[list[Sample]]] = {+1.0: [], -1.0: []}
    for _ in range(repeats):
        for side, found in traces.items():
            worker.move(_at(home, i, centre - side * chosen)).result(WAIT_SECONDS)
            found.append(worker.trace(_at(home, i, centre), AFTER_SECONDS).result(WAIT_SECONDS))
    worker.move(home).result(WAIT_SECONDS)
    ends = {side: np.array([trace[-1][2][i] for trace in found]) for side, found in traces.items()}
    every = [trace for found in traces.values() for trace in found]
    arrivals = np.concatenate(list(ends.values()))
    return AxisCheck(
        axis,
        chosen,
        float(np.median([trace[-1][0] - trace[0][0] - AFTER_SECONDS for trace in every])),
        max(_settling(trace, i, settings.tolerance[i]) for trace in every),
        max(float(np.std(end)) for end in ends.values()),
        float(ends[+1.0].mean() - ends[-1.0].mean()),
        float(np.abs(arrivals - centre).max()),
    )


def _step(settings: MotionSettings, i: int, wanted: float | None) -> float:
    axis, travel = settings.axes[i], settings.axes[i].high - settings.axes[i].low
    step = max(STEP_SHARE * travel, TOLERANCES * float(settings.tolerance[i])) if wanted is None else wanted
    if not 0 < step <= travel / 2:
        raise UserError(
            f"a step of axis {axis.name} is {axis.show(step)}; allowed: more than 0, at most half of its travel, "
            f"{axis.show(travel / 2)}; choose --step accordingly"
        )
    return step


def _at(home: FloatArray, i: int, value: float) -> FloatArray:
    place = home.copy()
    place[i] = value
    return place


def _settling(trace: Sequence[Sample], i: int, tolerance: float) -> float:
    """Return how long after the first "not busy" the axis was last away from where it stayed."""
    end = trace[-1][2][i]
    done = next(now for now, busy, _ in trace if not busy)
    away = [now for now, _, position in trace if abs(position[i] - end) > tolerance]
    return max(0.0, (away[-1] if away else done) - done)
