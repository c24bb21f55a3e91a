"""A controller on a pseudo-terminal that speaks GRBL 1.1 as documented, and the firmware's own simulator on another.

What the pretended one does was compared with the pages interface, jogging and realtime_cmds of the firmware's
documentation: the start message and the alarm after power-on where homing is enabled, jogs in Idle and Jog alone, a jog
cancelled without a reset, a reset in motion as ALARM:3 and while homing as ALARM:6, no reports while homing.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import threading
import time
import tty
from pathlib import Path

TICK = 0.005  # [s]
TRAVEL = 50.0  # [mm] that the soft limits allow, from 0


class GrblDevice:
    """Runs on a thread of its own until closed."""

    towards = 1.0  # the sign of places within its limits

    def __init__(self, inches: bool = False, homing: bool = True) -> None:
        self._ours, theirs = os.openpty()
        tty.setraw(theirs)
        self.port = os.ttyname(theirs)
        self._theirs = theirs
        self.commands: list[str] = []
        self.speed = 100.0  # [mm/s], whatever the feed
        self.short = 1.0  # share of the way that jogs go
        self.silent = False
        self.homes = True  # whether homing finds its switches
        self._settings = f"$10=1\r\n$13={int(inches)}\r\n$22={int(homing)}\r\nok"
        self._homing_enabled = homing
        self._state = "Alarm" if homing else "Idle"  # a controller that can home insists on it after power-on
        self._position, self._target = [0.0] * 3, [0.0] * 3
        self._typed = b""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and hang up."""
        self._ended.set()
        self._thread.join(20)
        os.close(self._ours)
        os.close(self._theirs)

    def _run(self) -> None:
        while not self._ended.is_set():
            if select.select([self._ours], [], [], TICK)[0]:
                for byte in os.read(self._ours, 4096):
                    self._take(byte)
            self._advance()

    def _say(self, line: str) -> None:
        if not self.silent:
            os.write(self._ours, f"{line}\r\n".encode())

    def _take(self, byte: int) -> None:
        """Real-time commands are picked from the stream; while homing only a reset is heard."""
        if byte == 0x18:
            self._reset()
        elif self._state == "Home":
            return
        elif byte == 0x85:
            self._target = list(self._position) if self._state == "Jog" else self._target
        elif byte == ord("?"):
            places = ",".join(f"{value:.3f}" for value in self._position)
            self._say(f"<{self._state}|MPos:{places}|FS:0,0>")
        elif byte == ord("\n"):
            line, self._typed = self._typed.decode().strip(), b""
            self._obey(line)
        else:
            self._typed += bytes([byte])

    def _reset(self) -> None:
        if self._state != "Idle":
            if self._state != "Alarm":
                self._say("ALARM:6" if self._state == "Home" else "ALARM:3")
            self._state = "Alarm"
        self._target, self._typed = list(self._position), b""
        self._say("\r\nGrbl 1.1h ['$' for help]")
        if self._state == "Alarm":
            self._say("[MSG:'$H'|'$X' to unlock]")

    def _obey(self, line: str) -> None:
        self.commands.append(line)
        if line.startswith("$") and not line.startswith("$J=") and self._state not in ("Idle", "Alarm"):
            self._say("error:8")
        elif line == "$$":
            self._say(self._settings)
        elif line == "$H":
            self._home()
        elif line.startswith("$J="):
            self._jog(line)
        else:
            self._say("error:3" if line.startswith("$") else "error:20")

    def _home(self) -> None:
        if not self._homing_enabled:
            self._say("error:5")
            return
        if not self.homes:
            self._state = "Alarm"
            self._say("ALARM:9")
            return
        self._state, self._target = "Home", [0.0] * 3

    def _jog(self, line: str) -> None:
        if self._state == "Alarm":
            self._say("error:9")
            return
        words = {letter: float(value) for letter, value in re.findall(r"([XYZF])([-\d.]+)", line)}
        if "F" not in words:
            self._say("error:22")
            return
        wanted = [words.get(letter, here) for letter, here in zip("XYZ", self._position, strict=True)]
        if not all(0 <= value <= TRAVEL for value in wanted):
            self._say("error:15")
            return
        self._target = [a + self.short * (b - a) for a, b in zip(self._position, wanted, strict=True)]
        self._state = "Jog"
        self._say("ok")

    def _advance(self) -> None:
        if self._state not in ("Jog", "Home"):
            return
        step = self.speed * TICK
        pairs = zip(self._position, self._target, strict=True)
        self._position = [here + max(-step, min(step, there - here)) for here, there in pairs]
        if self._position == self._target:
            homed, self._state = self._state == "Home", "Idle"
            if homed:
                self._say("ok")
        time.sleep(0)


class FirmwareSimulator:
    """The firmware's simulator, a program that speaks on its standard input and output, behind a pseudo-terminal."""

    towards = -1.0

    def __init__(self, command: str, folder: Path) -> None:
        self._ours, theirs = os.openpty()
        tty.setraw(theirs)
        self.port = os.ttyname(theirs)
        self._theirs = theirs
        self.commands: list[str] = []
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._program = subprocess.Popen(shlex.split(command), cwd=folder, bufsize=0, **pipes)
        for setting in ("", "$22=1", "$20=1", "$130=50", "$131=50", "$132=50", "$X"):
            self._send(f"{setting}\n".encode())
            time.sleep(0.2)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the program and hang up."""
        self._ended.set()
        self._thread.join(20)
        self._program.kill()
        self._program.wait(20)
        os.close(self._ours)
        os.close(self._theirs)

    def _send(self, data: bytes) -> None:
        assert self._program.stdin is not None
        self._program.stdin.write(data)

    def _run(self) -> None:
        assert self._program.stdout is not None
        said = self._program.stdout.fileno()
        typed = b""
        while not self._ended.is_set():
            for ready in select.select([self._ours, said], [], [], TICK)[0]:
                data = os.read(ready, 4096)
                if ready == said:
                    os.write(self._ours, data)
                else:
                    self._send(data)
                    *lines, typed = (typed + data).split(b"\n")
                    self.commands += [line.decode("ascii", "ignore") for line in lines]
