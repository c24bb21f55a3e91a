"""Axes that do what a test of the rules needs, and note what was asked of them."""

from __future__ import annotations

import threading

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.drivers.motion import MotionSettings
from lift_ros.drivers.protocol import Axis, MoveRefused

LAYOUT = (Axis("x", "mm", -10.0, 10.0),)


def settings(backlash: float = 0.0, **more: float) -> MotionSettings:
    one = np.ones(1)
    chosen = {"poll_seconds": 0.002, "settle_seconds": 0.01, **more}
    return MotionSettings(LAYOUT, 0.01 * one, np.nan * one, backlash * one, **chosen)  # type: ignore[arg-type]


class FakeAxes:
    """Moves at once, or never where `stuck`; `broken` names the calls that raise."""

    def __init__(self) -> None:
        self.layout = LAYOUT
        self.calls: list[str] = []
        self.threads: set[str] = set()
        self.stuck = False
        self.broken: set[str] = set()
        self.starting = threading.Event()  # set when a start has begun
        self.may_start = threading.Event()  # a start waits for it
        self.may_start.set()
        self.may_stop = threading.Event()  # a stop waits for it, as for a library's lock
        self.may_stop.set()
        self.refuses_from = 1_000_000  # this start and later ones are refused
        self._position, self._moving = np.zeros(1), False

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if call != "stop":
            self.threads.add(threading.current_thread().name)
        if call in self.broken:
            raise OSError("cable pulled")

    def connect(self) -> None:
        self._note("connect")

    def home(self) -> None:
        self._note("home")
        self._position = np.zeros(1)

    def position(self) -> FloatArray:
        if "position" in self.broken:
            raise OSError("cable pulled")
        return self._position.copy()

    def start(self, target: FloatArray) -> None:
        self.starting.set()
        assert self.may_start.wait(20)
        self._note("start")
        if self.calls.count("start") >= self.refuses_from:
            raise MoveRefused("beyond the device's own limits")
        self._moving = self.stuck
        if not self.stuck:
            self._position = np.array(target)

    def busy(self) -> bool:
        return self._moving

    def stop(self) -> None:
        assert self.may_stop.wait(20)
        self._note("stop")
        self._moving = False

    def close(self) -> None:
        self._note("close")
