"""Motor records of caproto's fake motor, over real Channel Access on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from lift_ros.drivers.protocol import DriverFault, MoveRefused, MoveStopped
from lift_ros.drivers.table import make_axes
from lift_ros.drivers.worker import DeviceWorker

pytest.importorskip("epics", reason="pip install 'lift_ros[epics]'")
pytest.importorskip("caproto", reason="pip install -r requirements/devices.txt")

WAIT = 60.0
PREFIX = f"lift{os.getpid()}:"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


PORT = free_port()  # one for all tests here: libca reads its environment once per process


def start_server() -> subprocess.Popen[bytes]:
    os.environ.update(EPICS_CA_ADDR_LIST="127.0.0.1", EPICS_CA_AUTO_ADDR_LIST="NO", EPICS_CA_SERVER_PORT=str(PORT))
    command = ["-m", "caproto.ioc_examples.fake_motor_record", "--interfaces", "127.0.0.1", "--prefix", PREFIX]
    return subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def end(server: subprocess.Popen[bytes]) -> None:
    server.kill()
    server.wait(WAIT)


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[bytes]]:
    process = start_server()
    yield process
    end(process)


def axis(name: str, record: str, low: float, high: float) -> dict[str, object]:
    place = {"record": f"{PREFIX}{record}", "home": "none", "unit": "mm"}
    return {"name": name, **place, "low": low, "high": high, "tolerance": 0.01}


@pytest.fixture
def worker(server: subprocess.Popen[bytes]) -> Iterator[DeviceWorker]:
    axes, settings = make_axes(
        {
            "driver": "epics",
            "connection_seconds": 20,
            "motion": {"settle_seconds": 0.5, "home_required": False},
            "axes": [axis("x", "mtr1", -100, 100), axis("y", "mtr2", -100, 100)],
        }
    )
    made = DeviceWorker(axes, settings)
    made.connect().result(WAIT)
    yield made
    made.close()


def test_two_motors_move_together_and_are_read_back(worker: DeviceWorker) -> None:
    for target in ([0.5, -1.0], [0.2, 0.3]):
        assert np.allclose(worker.move(np.array(target)).result(WAIT), target, atol=0.01)


def test_limits_of_the_record_are_checked_for_it(worker: DeviceWorker) -> None:
    before = worker.position().result(WAIT)
    with pytest.raises(MoveRefused, match="axis x is 11 mm; allowed: 0 mm to 10 mm, LLM and HLM"):
        worker.move(np.array([11.0, 0.0])).result(WAIT)
    assert np.array_equal(worker.position().result(WAIT), before)


def test_stop_ends_a_long_move_and_the_motors_rest(worker: DeviceWorker) -> None:
    answer = worker.move(np.array([9.0, 15.0]))
    time.sleep(0.5)  # a few ticks of the server, so that the motors have begun
    worker.stop()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    first = worker.position().result(WAIT)
    time.sleep(0.3)
    assert np.array_equal(worker.position().result(WAIT), first)
    assert (first < [9.0, 15.0]).all()


def test_server_that_dies_is_a_fault_and_can_be_connected_again(
    worker: DeviceWorker, server: subprocess.Popen[bytes]
) -> None:
    end(server)
    with pytest.raises(DriverFault, match="is gone"):
        worker.position().result(WAIT)
    assert worker.fault is not None
    again = start_server()
    try:
        worker.reset()
        worker.connect().result(WAIT)
        assert np.allclose(worker.move(np.array([0.1, 0.1])).result(WAIT), 0.1, atol=0.01)
    finally:
        end(again)
