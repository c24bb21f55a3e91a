"""Stages behind a GRBL 1.1 controller on a serial line, through `pyserial`: jogs only, which a stop can cancel."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.configuration import Key
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import Axis, DriverFault, MoveRefused
from lift_ros.errors import UserError

LETTERS = ("X", "Y", "Z")
KEYS = {
    "port": Key(str, meaning="serial port, such as /dev/ttyUSB0"),
    "baud": Key(int, 115_200, low=300, high=4_000_000, meaning="speed of the line"),
    "feed": Key(float, 600.0, above=0, high=100_000, meaning="speed of jogs in mm per minute"),
    "answer_seconds": Key(float, 3.0, above=0, high=60, meaning="seconds that the controller has for an answer"),
}
AXIS_KEYS = {"letter": Key(str, choices=LETTERS, meaning="the controller's name of the axis")}
_CANCEL_JOG, _RESET, _STATUS = b"\x85", b"\x18", b"?"
_BEYOND_LIMITS = "error:15"
_RESET_IN_MOTION = ("ALARM:3", "ALARM:6")  # while jogging, while homing
_FRESH_SECONDS = 0.01  # a report serves for state and position, so that the line is asked once per poll


class GrblAxes:
    """Up to three axes of one controller, in millimetres of its machine coordinates."""

    def __init__(
        self, layout: tuple[Axis, ...], axes: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
    ) -> None:
        self.layout = layout
        self._letters = [axis["letter"] for axis in axes]
        for axis in layout:
            if axis.unit != "mm":
                raise UserError(f"unit of axis {axis.name} is {axis.unit!r}; allowed: mm, since GRBL jogs in them")
        if len(set(self._letters)) != len(self._letters):
            raise UserError(f"letters of axes are {', '.join(self._letters)}; allowed: each letter once")
        self._settings, self._seconds = settings, settings["answer_seconds"]
        self._port: Any = None
        self._read = b""
        self._homing = False
        self._locked = False  # in alarm for a known reason, until it is homed
        self._report, self._reported = "", -1.0
        self._last = np.zeros(len(LETTERS))

    def connect(self) -> None:
        """Reset the controller, which loses no position at rest, and check that it counts in millimetres."""
        with needed_by("grbl"):
            import serial
        try:
            self._port = serial.Serial(self._settings["port"], self._settings["baud"], timeout=0, write_timeout=1)
        except (serial.SerialException, ValueError) as error:
            raise DriverFault(
                f"port {self._settings['port']!r} cannot be opened ({error}); name another port"
            ) from error
        self._read, self._homing, self._locked, self._reported = b"", False, True, -1.0
        self._port.write(_RESET)
        self._wait(lambda line: line.startswith("Grbl "), "its greeting")
        if "$13=1" in self._ask("$$"):
            raise DriverFault("GRBL reports inches ($13=1); allowed: millimetres; send $13=0 to it")

    def home(self) -> None:
        """Begin the homing cycle, during which the controller answers nothing."""
        self._homing, self._locked = True, False
        self._write(b"$H\n")

    def position(self) -> FloatArray:
        """Return the machine position; while homing, the one before."""
        if not self._homing:
            found = re.search(r"\|MPos:([-\d.]+),([-\d.]+),([-\d.]+)", self._status())
            if found is None:
                raise DriverFault(f"GRBL reports {self._report!r} without a machine position; send $10=1 to it")
            self._last = np.array([float(value) for value in found.groups()])
            self._reported = -1.0
        return np.array([self._last[LETTERS.index(letter)] for letter in self._letters])

    def start(self, target: FloatArray) -> None:
        """Jog to a target in machine coordinates."""
        words = " ".join(f"{letter}{value:.4f}" for letter, value in zip(self._letters, target.tolist(), strict=True))
        self._ask(f"$J=G90 G21 G53 {words} F{self._settings['feed']:g}")

    def busy(self) -> bool:
        """Whether the controller moves; DriverFault where a door is open, or it is in alarm and that is news."""
        if self._homing:
            return self._still_homing()
        self._reported = -1.0
        state = self._status().strip("<>").split("|")[0]
        if state == "Alarm" and self._locked:
            return False
        if state.startswith(("Alarm", "Door", "Sleep", "Check")):
            raise DriverFault(
                f"GRBL is in state {state}; allowed: Idle and Jog; find the reason, then home it again ($X unlocks it)"
            )
        return state != "Idle"

    def stop(self) -> None:
        """Cancel the jog, which slows down in order; homing is ended by a reset, after which it must be repeated."""
        self._locked |= self._homing
        self._write(_RESET if self._homing else _CANCEL_JOG)

    def close(self) -> None:
        """Close the port."""
        port, self._port = self._port, None
        if port is not None:
            with contextlib.suppress(Exception):
                port.close()

    def _still_homing(self) -> bool:
        while (line := self._line()) is not None:
            if line == "ok" or (self._locked and line.startswith("Grbl ")):
                self._homing = False
                return False
            self._check(line, "$H")
        return True

    def _status(self) -> str:
        if time.monotonic() - self._reported > _FRESH_SECONDS:
            self._write(_STATUS)
            self._report = self._wait(lambda line: line.startswith("<"), "?")[-1]
            self._reported = time.monotonic()
        return self._report

    def _ask(self, command: str) -> list[str]:
        self._write(f"{command}\n".encode())
        return self._wait(lambda line: line == "ok", command)

    def _wait(self, ends: Any, command: str) -> list[str]:
        """Return the lines up to the awaited one; what GRBL refuses is raised."""
        lines: list[str] = []
        deadline = time.monotonic() + self._seconds
        while time.monotonic() < deadline:
            line = self._line()
            if line is None:
                time.sleep(0.001)
                continue
            lines.append(line)
            if ends(line):
                return lines
            self._check(line, command)
        raise DriverFault(
            f"GRBL did not answer {command!r} within {self._seconds:g} s; check its power, its cable, port and baud"
        )

    def _check(self, line: str, command: str) -> None:
        if line == _BEYOND_LIMITS:
            raise MoveRefused(
                f"GRBL refused {command!r} ({line}): beyond its soft limits; narrow those of the scenario"
            )
        if self._locked and line in _RESET_IN_MOTION:
            return  # it was told to
        if line.startswith(("error:", "ALARM:")):
            self._homing = False
            raise DriverFault(
                f"GRBL answered {line} to {command!r}; its manual lists the codes; home it after an alarm"
            )

    def _line(self) -> str | None:
        """Return the next line that has come, or None."""
        if b"\n" not in self._read:
            self._read += self._opened().read(4096)
        if b"\n" not in self._read:
            return None
        line, self._read = self._read.split(b"\n", 1)
        return line.decode("ascii", "replace").strip()

    def _write(self, data: bytes) -> None:
        self._opened().write(data)

    def _opened(self) -> Any:
        if self._port is None:
            raise DriverFault("GRBL is not connected; connect the rig first")
        return self._port
