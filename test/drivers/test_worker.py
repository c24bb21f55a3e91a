"""One thread talks to the devices; a stop goes past it, and what fails is latched."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from fake_axes import FakeAxes, settings

from lift_ros.drivers.protocol import Displaced, DriverFault, MoveRefused, MoveStopped
from lift_ros.drivers.worker import DeviceWorker

WAIT = 20.0  # [s] for what takes milliseconds
AT_2 = np.array([2.0])


@pytest.fixture
def axes() -> FakeAxes:
    return FakeAxes()


@pytest.fixture
def worker(axes: FakeAxes) -> Iterator[DeviceWorker]:
    made = DeviceWorker(axes, settings())
    made.connect().result(WAIT)
    yield made
    axes.may_start.set()
    made.close()


def home(worker: DeviceWorker) -> None:
    worker.home().result(WAIT)


def test_move_arrives_after_homing_and_all_runs_on_one_thread(worker: DeviceWorker, axes: FakeAxes) -> None:
    with pytest.raises(MoveRefused, match="not homed"):
        worker.move(AT_2).result(WAIT)
    home(worker)
    assert worker.homed
    assert worker.move(AT_2).result(WAIT).tolist() == [2.0]
    assert worker.position().result(WAIT).tolist() == [2.0]
    assert axes.threads == {"devices"}
    assert worker.fault is None


def test_refused_move_starts_nothing_and_is_not_latched(worker: DeviceWorker, axes: FakeAxes) -> None:
    home(worker)
    with pytest.raises(MoveRefused, match="11 mm"):
        worker.move(np.array([11.0])).result(WAIT)
    assert "start" not in axes.calls
    assert worker.move(AT_2).result(WAIT).tolist() == [2.0]


def test_stop_ends_the_move_under_way_and_all_that_is_queued(worker: DeviceWorker, axes: FakeAxes) -> None:
    home(worker)
    axes.stuck = True
    asked = [worker.move(AT_2) for _ in range(3)]
    assert axes.starting.wait(WAIT)
    worker.stop()
    for answer in asked:
        with pytest.raises(MoveStopped):
            answer.result(WAIT)
    assert axes.calls.count("start") <= 1
    assert worker.fault is None
    axes.stuck = False
    assert worker.move(AT_2).result(WAIT).tolist() == [2.0]


def test_stop_during_a_start_is_said_again_after_it(worker: DeviceWorker, axes: FakeAxes) -> None:
    home(worker)
    axes.stuck = True
    axes.may_start.clear()
    answer = worker.move(AT_2)
    assert axes.starting.wait(WAIT)
    worker.stop()
    axes.may_start.set()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    assert axes.calls[-2:] == ["start", "stop"]
    assert not axes.busy()


def test_exception_of_a_driver_is_latched_until_reset(worker: DeviceWorker, axes: FakeAxes) -> None:
    home(worker)
    axes.broken = {"start"}
    with pytest.raises(DriverFault, match="cable pulled"):
        worker.move(AT_2).result(WAIT)
    axes.broken = set()
    assert axes.calls[-1] == "stop"
    before = list(axes.calls)
    with pytest.raises(DriverFault, match="cable pulled"):
        worker.move(AT_2).result(WAIT)
    assert axes.calls == before
    worker.reset()
    assert worker.fault is None
    assert worker.move(AT_2).result(WAIT).tolist() == [2.0]


def test_reconnecting_needs_homing_again(worker: DeviceWorker, axes: FakeAxes) -> None:
    home(worker)
    axes.broken = {"position"}
    with pytest.raises(DriverFault, match="cable pulled"):
        worker.position().result(WAIT)
    axes.broken = set()
    worker.reset()
    worker.connect().result(WAIT)
    assert axes.calls[-2:] == ["close", "connect"]
    assert not worker.homed


def test_stalled_move_trips_and_is_stopped(axes: FakeAxes) -> None:
    axes.stuck = True
    worker = DeviceWorker(axes, settings(stall_seconds=0.05, home_required=False))
    worker.connect().result(WAIT)
    with pytest.raises(DriverFault, match="stalled"):
        worker.move(AT_2).result(WAIT)
    assert axes.calls[-1] == "stop"
    assert worker.fault is not None
    worker.close()


def test_close_never_raises_and_calls_a_broken_device_once(worker: DeviceWorker, axes: FakeAxes) -> None:
    axes.broken = {"stop", "close", "position"}
    axes.calls.clear()
    worker.close()
    worker.close()
    assert sorted(axes.calls) == ["close", "stop"]
    with pytest.raises(DriverFault, match="closed"):
        worker.position().result(WAIT)


def test_nothing_is_asked_of_devices_that_are_not_connected(axes: FakeAxes) -> None:
    worker = DeviceWorker(axes, settings())
    with pytest.raises(DriverFault, match="not connected"):
        worker.position().result(WAIT)
    worker.reset()
    worker.stop()
    assert axes.calls == []
    worker.close()


def test_picture_without_a_camera_is_refused(worker: DeviceWorker) -> None:
    with pytest.raises(DriverFault, match="no camera"):
        worker.frame(0.0, 1.0).result(WAIT)


def test_refusal_after_the_axes_have_moved_is_a_latched_fault(axes: FakeAxes) -> None:
    worker = DeviceWorker(axes, settings(backlash=0.5, home_required=False))
    worker.connect().result(WAIT)
    axes.refuses_from = 2  # the approach from below is taken, what follows it is not
    with pytest.raises(DriverFault, match="axes stay where the last approach begins: beyond the device") as raised:
        worker.move(-AT_2).result(WAIT)
    assert worker.fault is raised.value
    assert axes.position().tolist() == [-2.5]
    worker.close()


def test_stop_that_the_library_holds_back_returns_and_is_a_fault_and_comes_in_the_end(
    worker: DeviceWorker, axes: FakeAxes
) -> None:
    home(worker)
    axes.may_stop.clear()
    worker.stop()  # returns, though nobody lets the axes stop
    assert "stop" not in axes.calls
    assert "did not take a stop within 1 s" in str(worker.fault)
    with pytest.raises(DriverFault, match="did not take a stop"):
        worker.move(AT_2).result(WAIT)
    axes.may_stop.set()
    until = time.monotonic() + WAIT
    while "stop" not in axes.calls and time.monotonic() < until:
        time.sleep(0.005)
    assert "stop" in axes.calls
    worker.reset()
    assert worker.move(AT_2).result(WAIT).tolist() == [2.0]


def test_axes_that_still_move_when_they_are_connected_are_stopped(axes: FakeAxes) -> None:
    axes.stuck = True
    axes.start(AT_2)  # by a process that ended in the middle of it
    worker = DeviceWorker(axes, settings())
    worker.connect().result(WAIT)
    assert not axes.busy() and "stop" in axes.calls
    worker.close()


def test_way_begins_only_where_the_axes_were_last_seen(worker: DeviceWorker, axes: FakeAxes) -> None:
    home(worker)
    worker.move_by(AT_2, np.zeros(1)).result(WAIT)
    with pytest.raises(Displaced, match="axis x is at 2 mm, but was last seen at 0 mm .*0.02 mm.: something else"):
        worker.move_by(AT_2, np.zeros(1)).result(WAIT)
    assert axes.position().tolist() == [2.0]
    assert worker.fault is None
    assert worker.move_by(AT_2, np.array([2.015])).result(WAIT).tolist() == [4.0]
