"""Stages and camera of Micro-Manager's own demo devices, which its makers test with."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lift_ros.drivers.micromanager_core import Core
from lift_ros.drivers.protocol import Axes, Camera, DriverFault, MoveRefused, MoveStopped
from lift_ros.drivers.table import make_axes, make_camera
from lift_ros.drivers.worker import DeviceWorker
from lift_ros.errors import UserError

pytest.importorskip("pymmcore", reason="pip install 'lift_ros[micromanager]'")
pytest.importorskip("mm_test_adapters", reason="pip install 'lift_ros[micromanager]'")

WAIT = 60.0
XY = [
    {"name": name, "device": "XY", "direction": name, "unit": "um", "low": -500, "high": 500, "tolerance": 0.1}
    for name in ("x", "y")
]
Z = {"name": "z", "device": "Z", "unit": "um", "low": -1000, "high": 1000, "tolerance": 0.1}
AXES = {"driver": "micromanager", "configuration": "demo", "motion": {"home_required": False}, "axes": [*XY, Z]}


def camera_of(**more: Any) -> Camera:
    return make_camera({"driver": "micromanager", "configuration": "demo", "device": "Camera", **more})


@pytest.fixture
def worker() -> Iterator[DeviceWorker]:
    axes, settings = make_axes(AXES)
    made = DeviceWorker(axes, settings, camera_of(properties={"Mode": "Fluorescent Beads", "PixelType": "8bit"}))
    made.connect().result(WAIT)
    yield made
    made.close()


def see(worker: DeviceWorker) -> np.ndarray:
    return worker.frame(time.monotonic(), WAIT).result(WAIT).astype(float)


def sharpness(picture: np.ndarray) -> float:
    return float(np.square(np.diff(picture, axis=0)).mean() + np.square(np.diff(picture, axis=1)).mean())


def test_three_axes_move_together_and_are_read_back(worker: DeviceWorker) -> None:
    for target in ([12.0, -7.0, 3.0], [0.0, 0.0, 0.0]):
        reached = worker.move(np.array(target)).result(WAIT)
        assert np.allclose(reached, target, atol=0.1)


def test_camera_sees_what_the_stages_do(worker: DeviceWorker) -> None:
    worker.move(np.zeros(3)).result(WAIT)
    sharp = see(worker)
    worker.move(np.array([0.0, 0.0, 5.0])).result(WAIT)
    assert sharpness(see(worker)) < 0.8 * sharpness(sharp)


@pytest.mark.parametrize(("way", "axis"), [((20.0, 0.0), 1), ((0.0, 20.0), 0)])
def test_picture_shifts_by_one_pixel_per_micrometre(worker: DeviceWorker, way: tuple[float, float], axis: int) -> None:
    worker.move(np.zeros(3)).result(WAIT)
    before = see(worker)
    worker.move(np.array([*way, 0.0])).result(WAIT)
    after = see(worker)
    shifts = range(-30, 31)
    inner = (slice(40, -40), slice(40, -40))
    apart = [np.abs(np.roll(before, shift, axis=axis)[inner] - after[inner]).mean() for shift in shifts]
    assert abs(shifts[int(np.argmin(apart))]) == 20
    assert min(apart) < 0.5 * np.median(apart)


def test_what_a_stage_refuses_is_a_latched_fault(worker: DeviceWorker) -> None:
    with pytest.raises(DriverFault, match="out of range"):
        worker.move(np.array([0.0, 0.0, 900.0])).result(WAIT)
    assert worker.fault is not None
    worker.reset()
    assert np.allclose(worker.move(np.array([1.0, 1.0, 1.0])).result(WAIT), 1.0, atol=0.1)


def test_a_stage_without_homing_is_left_out_where_the_scenario_says_so(worker: DeviceWorker) -> None:
    with pytest.raises(DriverFault, match="stage 'Z' cannot be homed .*say home: false"):
        worker.home().result(WAIT)
    homing, settings = make_axes({**AXES, "axes": [*XY, {**Z, "home": False}]})
    other = DeviceWorker(homing, settings)
    other.connect().result(WAIT)
    other.home().result(WAIT)
    assert other.homed
    other.close()


def test_stop_ends_a_long_move_and_the_stage_rests(worker: DeviceWorker) -> None:
    worker.move(np.zeros(3)).result(WAIT)
    core = Core.of({"configuration": "demo", "adapters": None}).api  # the devices themselves, past the driver
    core.setProperty("XY", "Velocity", "0.1")  # µm per ms: five seconds for the way
    answer = worker.move(np.array([500.0, 500.0, 0.0]))
    until = time.monotonic() + WAIT
    while core.getXPosition("XY") < 5.0 and time.monotonic() < until:
        time.sleep(0.002)
    worker.stop()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    stopped = core.getXPosition("XY"), core.getYPosition("XY")
    time.sleep(0.1)
    assert (core.getXPosition("XY"), core.getYPosition("XY")) == stopped
    assert 5.0 <= stopped[0] < 400.0
    assert not core.deviceBusy("XY")
    with pytest.raises(MoveRefused, match="target of axis x is 501 um"):
        worker.move(np.array([501.0, 0.0, 0.0])).result(WAIT)
    assert core.getXPosition("XY") == stopped[0]


def test_stop_does_not_wait_for_an_exposure_that_holds_the_library(worker: DeviceWorker) -> None:
    core = Core.of({"configuration": "demo", "adapters": None}).api
    core.setExposure(3000.0)
    answer = worker.frame(time.monotonic(), WAIT)
    while not answer.running():
        time.sleep(0.001)
    worker.stop()
    assert not answer.done()
    assert "did not take a stop" in str(worker.fault)
    assert answer.result(WAIT).shape == (512, 512)


@pytest.mark.parametrize(("kind", "encoding"), [("8bit", "mono8"), ("16bit", "mono16"), ("32bitRGB", "rgb8")])
def test_pixel_types_become_pictures(kind: str, encoding: str) -> None:
    camera = camera_of(properties={"PixelType": kind})
    camera.connect()
    try:
        picture = camera.frame(time.monotonic(), WAIT)
        assert (camera.format.encoding, picture.shape) == (encoding, camera.format.shape)
        assert picture.dtype == camera.format.dtype
    finally:
        camera.close()


def test_pixel_type_without_a_name_in_ros_is_refused() -> None:
    camera = camera_of(properties={"PixelType": "32bit"})
    try:
        with pytest.raises(DriverFault, match="uint32.*allowed.*another pixel format"):
            camera.connect()
    finally:
        camera.close()


def test_connecting_again_after_close(worker: DeviceWorker) -> None:
    worker.connect().result(WAIT)
    assert worker.position().result(WAIT).shape == (3,)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"device": "Lamp"}, "cannot be set up"),
        ({"properties": {"Mode": "Nonsense"}}, "cannot be set up"),
    ],
)
def test_bad_camera_is_named(more: dict[str, Any], said: str) -> None:
    camera = camera_of(**more)
    try:
        with pytest.raises(DriverFault, match=said):
            camera.connect()
    finally:
        camera.close()


def connected(change: dict[str, Any]) -> Axes:
    axes, _ = make_axes({**AXES, **change})
    axes.connect()
    return axes


def test_stage_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(DriverFault, match="no device 'Piezo'; known are .*XY"):
        connected({"axes": [{**Z, "device": "Piezo"}]})


def test_configuration_that_is_no_file_or_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="which is no file"):
        connected({"configuration": str(tmp_path / "none.cfg")})
    (tmp_path / "bad.cfg").write_text("Device,Stage,Nothing,Nowhere\n")
    with pytest.raises(DriverFault, match="cannot load the configuration"):
        connected({"configuration": str(tmp_path / "bad.cfg")})
