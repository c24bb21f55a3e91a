"""The two rigs on which faults are injected, and what their own axes truly do, written down beside the plant.

Micro-Manager's devices live in the process of the rig node. So its axes are wrapped by a class that the scenario names:
a thread of its own reads the demo stages without asking the driver and appends what changed to a file, and a word in
another file makes the wrapped device fail. EPICS is watched over Channel Access from outside.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.drivers.frames import no_frame
from lift_ros.drivers.micromanager import MicroManagerAxes, MicroManagerCamera
from lift_ros.drivers.protocol import Axis
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.positioning.problem import Observed

TRACE, WORD = "trace", "fault"  # files in the folder of the wrapped axes
_ENTRY = struct.Struct("<qddd")  # ns since the epoch, x, y, z [µm]
_SAMPLE_SECONDS, _LOOK_NS = 0.004, 20_000_000  # between two looks, two entries of axes at rest
_GAP_NS = 60e6  # between two entries, where the thread was kept waiting
_NUDGE_UM = 2.0
_FAST, _SLOW = "0.05", "0.004"  # µm per ms
_CORE = {"configuration": "demo", "adapters": None}
_PARTS = [
    {"device": device, "direction": way, "home": True} for device, way in (("XY", "x"), ("XY", "y"), ("Z", "single"))
]


class WatchedStages:
    """Micro-Manager's demo stages, slowed down, watched, and broken in the way that a file says."""

    def __init__(self, layout: tuple[Axis, ...], folder: str) -> None:
        self.layout = layout
        self._axes = MicroManagerAxes(layout, _PARTS, _CORE)
        self._folder = Path(folder)
        self._ended = threading.Event()
        self._watching: threading.Thread | None = None

    def _word(self) -> str:
        try:
            return (self._folder / WORD).read_text()
        except FileNotFoundError:
            return ""

    def _fail_where_told(self) -> None:
        word = self._word()
        if word == "unplugged":
            raise OSError("cable pulled")
        if word == "hanging":
            time.sleep(0.5)

    def connect(self) -> None:
        """Load the devices and begin to watch them."""
        self._fail_where_told()
        self._axes.connect()
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, args=(self._ended,), daemon=True)
        self._watching.start()

    def home(self) -> None:
        """Home the stages, which do nothing then."""
        self._axes.home()

    def position(self) -> FloatArray:
        """Read the stages."""
        self._fail_where_told()
        return self._axes.position()

    def start(self, target: FloatArray) -> None:
        """Start the stages, or not, or for half of the way."""
        self._fail_where_told()
        word = self._word()
        if word == "short":
            here = self._axes.position()
            target = here + (target - here) / 2
        if word not in ("deaf", "stuck"):
            self._axes._core.api.setProperty("XY", "Velocity", _SLOW if word == "slow" else _FAST)
            self._axes.start(target)

    def busy(self) -> bool:
        """Ask the stages; those that are stuck say that they move."""
        self._fail_where_told()
        return self._word() == "stuck" or self._axes.busy()

    def stop(self) -> None:
        """Stop the stages."""
        self._fail_where_told()
        self._axes.stop()

    def close(self) -> None:
        """End watching and unload the devices."""
        self._ended.set()
        if self._watching is not None:
            self._watching.join()
        self._axes.close()

    def _watch(self, ended: threading.Event) -> None:
        """Write down where the stages are when that has changed, or after a while; somebody may also push them."""
        last, written = np.full(3, np.nan), 0
        with (self._folder / TRACE).open("ab", buffering=0) as trace:
            while not ended.wait(_SAMPLE_SECONDS):
                position = self._axes.position()
                if not np.array_equal(position, last) or time.time_ns() - written > _LOOK_NS:
                    written = time.time_ns()
                    trace.write(_ENTRY.pack(written, *position))
                    last = position
                if self._word() == "nudge":
                    self._axes.start(position + np.array([_NUDGE_UM, 0.0, 0.0]))
                    (self._folder / WORD).write_text("nudged")


class WatchedCamera:
    """Micro-Manager's demo camera, which delivers nothing where a file says so."""

    def __init__(self, folder: str, properties: dict[str, str]) -> None:
        settings = {**_CORE, "device": "Camera", "exposure_ms": 5.0, "properties": properties}
        self._camera = MicroManagerCamera(settings)
        self._word = Path(folder) / WORD

    @property
    def format(self) -> PictureFormat:
        """Of the pictures."""
        return self._camera.format

    def connect(self) -> None:
        """Connect the camera."""
        self._camera.connect()

    def frame(self, exposed_after: float, timeout: float) -> Picture:
        """Take a picture, or wait in vain."""
        if self._word.exists() and self._word.read_text() == "dark":
            time.sleep(timeout)
            raise no_frame("Camera", timeout)
        return self._camera.frame(exposed_after, timeout)

    def close(self) -> None:
        """Release the camera."""
        self._camera.close()


def from_centre(position: FloatArray, picture: Picture | None, centre: list[float]) -> Observed:
    """Observe how far the axes are from a place, which is never reached: episodes end at their step limit."""
    return Observed(position - centre, position=position)


class Trace:
    """Where the axes truly were, as often as it changed; what was said again is left out."""

    def __init__(self, times_ns: list[int], positions: list[FloatArray], gap_ns: float = float("inf")) -> None:
        news = [i for i in range(len(positions)) if i == 0 or (positions[i] != positions[i - 1]).any()]
        self.times = np.array([times_ns[i] for i in news], dtype=np.int64)
        self.positions = np.array([positions[i] for i in news])
        self._looks, self._gap_ns = np.array(times_ns, dtype=np.int64), gap_ns

    def distance(self, position: FloatArray, begin_ns: float, end_ns: float) -> float:
        """Return how near the axes came to a position in between, by the axis that was furthest off."""
        seen = self._between(begin_ns, end_ns)
        return float(np.abs(seen - position).max(axis=1).min()) if len(seen) else float("inf")

    def was_looked_away(self, begin_ns: float, end_ns: float) -> bool:
        """Whether nobody looked for a while in between, where axes are looked at on and on."""
        first = max(0, int(np.searchsorted(self._looks, begin_ns)) - 1)
        around = self._looks[first : int(np.searchsorted(self._looks, end_ns)) + 1]
        return bool(np.diff(around).max(initial=0) > self._gap_ns)

    def span(self, begin_ns: float, end_ns: float) -> float:
        """Return how far an axis moved in between."""
        seen = self._between(begin_ns, end_ns)
        return float(np.ptp(seen, axis=0).max()) if len(seen) else 0.0

    def last_change(self, begin_ns: float, end_ns: float) -> float:
        """Return seconds from the beginning to the last change in between; 0 where there was none."""
        inside = self.times[(self.times > begin_ns) & (self.times <= end_ns)]
        return float(inside[-1] - begin_ns) / 1e9 if inside.size else 0.0

    def _between(self, begin_ns: float, end_ns: float) -> FloatArray:
        """Return the places in between, with the one where the axes were at the beginning."""
        first = max(0, int(np.searchsorted(self.times, begin_ns, side="right")) - 1)
        return np.asarray(self.positions[first : int(np.searchsorted(self.times, end_ns, side="right"))])


class MicroManagerRig:
    """Three stages and a camera in the process of the rig node."""

    name, node_owns_devices = "micromanager", True
    tolerance, grace_seconds = 0.1, 0.3
    words = ("stuck", "deaf", "short", "unplugged", "hanging", "dark")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.environment: dict[str, str] = {}

    def scenario(self) -> dict[str, Any]:
        """Return the scenario."""
        common = {"unit": "um", "low": -60, "high": 60, "tolerance": self.tolerance}
        axes = [{"name": name, **common} for name in ("x", "y", "z")]
        folder = str(self._folder)
        properties = {"Binning": "8", "Mode": "Fluorescent Beads", "PixelType": "8bit"}
        return {
            "plant": {
                "kind": "hardware", "observation_size": 3, "action_size": 3, "action_radius": 6.0, "threshold": 0.1,
                "step_limit": 12, "picture_height": 64, "picture_width": 64, "picture_encoding": "mono8",
            },
            "rig": {
                "axes": {
                    "driver": f"{__name__}:WatchedStages", "folder": folder, "axes": axes,
                    "motion": {
                        "home_required": False, "poll_seconds": 0.005, "settle_seconds": 0.03, "time_limit": 6.0,
                        "stall_seconds": 1.0,
                    },
                },
                "camera": {"driver": f"{__name__}:WatchedCamera", "folder": folder, "properties": properties},
                "camera_seconds": 1.0,
                "reading": {"name": f"{__name__}:from_centre", "arguments": {"centre": [0.0, 0.0, 0.0]}},
                "start_low": [-30, -30, 0], "start_high": [30, 30, 20],
            },
            "logging_policy": {"name": "coordinate_walk", "arguments": {"step": 5.0}},
        }  # fmt: skip

    def break_it(self, word: str) -> None:
        """Make the wrapped devices fail."""
        (self._folder / WORD).write_text(word)

    def mend(self) -> None:
        """Make them whole again."""
        (self._folder / WORD).unlink(missing_ok=True)

    def slow_down(self) -> None:
        """Let moves take so long that a stop which is not heeded is seen."""
        self.break_it("slow")

    def push(self) -> None:
        """Move a stage as somebody does who turns its knob."""
        self.break_it("nudge")
        time.sleep(0.3)
        self.mend()

    def trace(self) -> Trace:
        """Return what the devices did so far."""
        file = self._folder / TRACE
        data = file.read_bytes() if file.exists() else b""
        entries = list(_ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]))
        return Trace([entry[0] for entry in entries], [np.array(entry[1:]) for entry in entries], _GAP_NS)

    def close(self) -> None:
        """Do nothing: the devices end with the rig node."""


class EpicsRig:
    """Two motors of caproto's fake motor record in a server of their own, watched by a Channel Access client."""

    name, node_owns_devices = "epics", False
    tolerance, grace_seconds = 0.01, 1.0
    words = ("server killed", "server frozen", "limits", "paused by SPMG", "stopped by STOP", "another VAL", "slow")

    def __init__(self, folder: Path) -> None:
        self._prefix = f"soak{os.getpid()}:"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.environment = {
            "EPICS_CA_ADDR_LIST": "127.0.0.1", "EPICS_CA_AUTO_ADDR_LIST": "NO", "EPICS_CA_SERVER_PORT": str(port),
        }  # fmt: skip
        os.environ.update(self.environment)
        self._server = self._serve()
        self._events: list[tuple[int, int, float]] = []  # ns since the epoch, axis, RBV
        import epics

        self._epics = epics
        self._records = [f"{self._prefix}mtr1", f"{self._prefix}mtr2"]
        self._watched = [
            epics.PV(f"{record}.RBV", callback=self._note(axis), auto_monitor=True)
            for axis, record in enumerate(self._records)
        ]
        for channel in self._watched:
            if not channel.wait_for_connection(60.0):
                raise RuntimeError(f"no answer of {channel.pvname}")

    def _note(self, axis: int) -> Callable[..., None]:
        def note(value: float, **_: Any) -> None:
            self._events.append((time.time_ns(), axis, value))

        return note

    def _serve(self) -> subprocess.Popen[bytes]:
        words = ["-m", "caproto.ioc_examples.fake_motor_record", "--interfaces", "127.0.0.1", "--prefix", self._prefix]
        nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([sys.executable, *words], env={**os.environ, **self.environment}, **nowhere)

    def scenario(self) -> dict[str, Any]:
        """Return the scenario."""
        common = {"unit": "mm", "home": "none", "tolerance": self.tolerance, "velocity": 1.0}
        return {
            "plant": {
                "kind": "hardware", "observation_size": 2, "action_size": 2, "action_radius": 0.5, "threshold": 0.01,
                "step_limit": 8,
            },
            "rig": {
                "axes": {
                    "driver": "epics", "connection_seconds": 1.5,
                    "motion": {"home_required": False, "settle_seconds": 0.3, "time_limit": 5.0, "stall_seconds": 2.0},
                    "axes": [
                        {"name": "x", "record": self._records[0], "low": 0, "high": 10, **common},
                        {"name": "y", "record": self._records[1], "low": -5, "high": 5, **common},
                    ],
                },
                "reading": {"name": f"{__name__}:from_centre", "arguments": {"centre": [5.0, 0.0]}},
                "start_low": [3.5, -1.5], "start_high": [6.5, 1.5],
            },
            "logging_policy": {"name": "coordinate_walk", "arguments": {"step": 0.4}},
        }  # fmt: skip

    def break_it(self, word: str) -> None:
        """Do to the server or its records what the word says."""
        match word:
            case "server killed":
                self._server.kill()
                self._server.wait()
            case "server frozen":
                self._server.send_signal(signal.SIGSTOP)
            case "limits":
                self._put("mtr1.HLM", 0.001)
            case "paused by SPMG":
                self._put("mtr1.SPMG", 0)
            case "stopped by STOP":
                for record in ("mtr1", "mtr2"):
                    self._put(f"{record}.STOP", 1)
            case "another VAL":
                self._put("mtr1.VAL", self._get("mtr1.RBV") + 0.7)
            case "slow":
                for record in ("mtr1", "mtr2"):
                    self._put(f"{record}.VELO", 0.01)

    def mend(self) -> None:
        """Make all as it was; motors that still hurry to another VAL are left to the plant."""
        if self._server.poll() is not None:
            self._server = self._serve()
            for channel in self._watched:
                channel.wait_for_connection(60.0)
        self._server.send_signal(signal.SIGCONT)
        self._put("mtr1.SPMG", 3)
        self._put("mtr1.HLM", 10.0)
        self._put("mtr1.VELO", 1.0)
        self._put("mtr2.VELO", 2.0)

    def slow_down(self) -> None:
        """Let moves take so long that a stop which is not heeded is seen."""
        for record in ("mtr1", "mtr2"):
            self._put(f"{record}.VELO", 0.1)

    def push(self) -> None:
        """Move a motor as somebody does at another terminal."""
        self._put("mtr1.VAL", self._get("mtr1.RBV") + 0.3)
        time.sleep(1.0)

    def _put(self, field: str, value: float) -> None:
        if self._epics.caput(f"{self._prefix}{field}", value, connection_timeout=60.0) is None:
            raise RuntimeError(f"{field} was not put")

    def _get(self, field: str) -> float:
        value = self._epics.caget(f"{self._prefix}{field}", timeout=60.0, connection_timeout=60.0, use_monitor=False)
        if value is None:
            raise RuntimeError(f"{field} was not got")
        return float(value)

    def trace(self) -> Trace:
        """Return what the motors did so far."""
        places = np.zeros(2)
        times, positions = [], []
        for moment, axis, value in list(self._events):
            places = places.copy()
            places[axis] = value
            times.append(moment)
            positions.append(places)
        return Trace(times, positions)

    def close(self) -> None:
        """End the server."""
        self._server.kill()
        self._server.wait()


RIGS: dict[str, Callable[[Path], MicroManagerRig | EpicsRig]] = {"micromanager": MicroManagerRig, "epics": EpicsRig}
AnyRig = MicroManagerRig | EpicsRig
