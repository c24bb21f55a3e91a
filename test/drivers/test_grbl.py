"""The serial protocol of GRBL, spoken with a device on a pseudo-terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grbl_device import FirmwareSimulator, GrblDevice

from lift_ros.drivers.protocol import DriverFault, MoveRefused, MoveStopped
from lift_ros.drivers.table import make_axes
from lift_ros.drivers.worker import DeviceWorker

pytest.importorskip("serial", reason="pip install 'lift_ros[grbl]'")

WAIT = 60.0
SIMULATOR = os.environ.get("LIFT_GRBL_SIMULATOR", "")  # a command, such as ./grbl_sim.exe -n
AnyDevice = GrblDevice | FirmwareSimulator


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[GrblDevice]:
    made = GrblDevice(**getattr(request, "param", {}))
    yield made
    made.close()


def worker_of(device: AnyDevice, feed: float = 600, **more: Any) -> DeviceWorker:
    places = {"unit": "mm", "low": -100, "high": 100, "tolerance": 0.02}
    axes, settings = make_axes(
        {
            "driver": "grbl",
            "port": device.port,
            "feed": feed,
            "answer_seconds": 1,
            "motion": {"settle_seconds": 0.1, **more},
            "axes": [{"name": "x", "letter": "X", **places}, {"name": "focus", "letter": "Z", **places}],
        }
    )
    return DeviceWorker(axes, settings)


@pytest.fixture
def worker(device: GrblDevice) -> Iterator[DeviceWorker]:
    made = worker_of(device)
    made.connect().result(WAIT)
    made.home().result(WAIT)
    yield made
    made.close()


@pytest.fixture(params=["pretended", "firmware"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyDevice]:
    """The pretended device, and the firmware's simulator where the environment names the command that starts it."""
    if request.param == "firmware" and not SIMULATOR:
        pytest.skip("LIFT_GRBL_SIMULATOR names no simulator of the firmware")
    made = GrblDevice(homing=False) if request.param == "pretended" else FirmwareSimulator(SIMULATOR, tmp_path)
    if isinstance(made, GrblDevice):
        made.speed = 2.0
    yield made
    made.close()


def wait_for_jog(device: AnyDevice) -> None:
    until = time.monotonic() + WAIT
    while not any(command.startswith("$J=") for command in device.commands) and time.monotonic() < until:
        time.sleep(0.005)


def test_jogs_go_to_machine_coordinates_and_are_read_back(worker: DeviceWorker, device: GrblDevice) -> None:
    assert np.allclose(worker.move(np.array([3.0, 1.5])).result(WAIT), [3.0, 1.5], atol=0.02)
    assert device.commands == ["$$", "$H", "$J=G90 G21 G53 X3.0000 Z1.5000 F600"]


def test_stop_cancels_the_jog_and_keeps_the_position(worker: DeviceWorker, device: GrblDevice) -> None:
    device.speed = 2.0
    answer = worker.move(np.array([40.0, 40.0]))
    wait_for_jog(device)
    worker.stop()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    first, second = (worker.position().result(WAIT) for _ in range(2))
    assert np.array_equal(first, second)
    assert (first < 40).all()
    assert worker.homed


def test_soft_limits_of_the_controller_refuse(worker: DeviceWorker) -> None:
    with pytest.raises(MoveRefused, match="error:15.*soft limits"):
        worker.move(np.array([60.0, 0.0])).result(WAIT)
    assert worker.fault is None


def test_short_move_is_a_latched_fault(worker: DeviceWorker, device: GrblDevice) -> None:
    device.short = 0.5
    with pytest.raises(DriverFault, match="axis x is at 2 mm, 2 mm off its target 4 mm"):
        worker.move(np.array([4.0, 0.0])).result(WAIT)
    assert worker.fault is not None


def test_stop_while_homing_is_no_fault_but_the_axes_must_be_homed_again(
    worker: DeviceWorker, device: GrblDevice
) -> None:
    worker.move(np.array([40.0, 0.0])).result(WAIT)
    device.speed = 1.0
    before = device.commands.count("$H")
    answer = worker.home()
    until = time.monotonic() + WAIT
    while device.commands.count("$H") == before and time.monotonic() < until:
        time.sleep(0.005)
    worker.stop()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    first, second = (worker.position().result(WAIT) for _ in range(2))
    assert np.array_equal(first, second) and first[0] > 0
    assert worker.fault is None and not worker.homed
    with pytest.raises(MoveRefused, match="not homed"):
        worker.move(np.array([1.0, 1.0])).result(WAIT)
    device.speed = 1000.0
    worker.home().result(WAIT)
    assert np.allclose(worker.move(np.array([1.0, 1.0])).result(WAIT), 1.0, atol=0.02)


def test_alarm_while_homing_that_nobody_asked_for_is_a_fault(worker: DeviceWorker, device: GrblDevice) -> None:
    device.homes = False
    with pytest.raises(DriverFault, match="ALARM:9"):
        worker.home().result(WAIT)
    assert worker.fault is not None and not worker.homed


def test_connecting_while_a_jog_of_somebody_else_is_under_way_ends_it(worker: DeviceWorker, device: GrblDevice) -> None:
    device.speed = 2.0
    worker.move(np.array([40.0, 40.0]))
    wait_for_jog(device)
    other = worker_of(device)  # as after a process that was killed in a move
    other.connect().result(WAIT)
    first, second = (other.position().result(WAIT) for _ in range(2))
    assert np.array_equal(first, second) and (first < 40).all()
    with pytest.raises(MoveRefused, match="not homed"):
        other.move(np.array([1.0, 1.0])).result(WAIT)
    other.close()


def test_silent_controller_is_a_fault_and_can_be_connected_again(worker: DeviceWorker, device: GrblDevice) -> None:
    device.silent = True
    with pytest.raises(DriverFault, match="did not answer '\\?' within 1 s"):
        worker.position().result(WAIT)
    device.silent = False
    worker.reset()
    worker.connect().result(WAIT)
    with pytest.raises(MoveRefused, match="not homed"):
        worker.move(np.array([1.0, 1.0])).result(WAIT)


@pytest.mark.parametrize("device", [{"inches": True}], indirect=True)
def test_inches_are_refused(device: GrblDevice) -> None:
    worker = worker_of(device)
    with pytest.raises(DriverFault, match="\\$13=0"):
        worker.connect().result(WAIT)
    worker.close()


@pytest.mark.parametrize("device", [{"homing": False}], indirect=True)
def test_homing_that_is_switched_off_is_told(device: GrblDevice) -> None:
    worker = worker_of(device)
    worker.connect().result(WAIT)
    with pytest.raises(DriverFault, match="error:5"):
        worker.home().result(WAIT)
    assert not worker.homed
    worker.close()


def test_jogs_stops_and_limits_of_the_pretended_device_and_of_the_firmware(either: AnyDevice) -> None:
    worker = worker_of(either, feed=120, home_required=False)
    worker.connect().result(WAIT)
    target = either.towards * np.array([1.0, 0.5])
    assert np.allclose(worker.move(target).result(WAIT), target, atol=0.02)
    either.commands.clear()
    answer = worker.move(either.towards * np.array([40.0, 40.0]))
    wait_for_jog(either)
    worker.stop()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    first, second = (worker.position().result(WAIT) for _ in range(2))
    assert np.array_equal(first, second)
    assert (np.abs(first) < 40).all()
    with pytest.raises(MoveRefused, match="error:15.*soft limits"):
        worker.move(either.towards * np.array([60.0, 1.0])).result(WAIT)
    assert worker.fault is None
    worker.close()
