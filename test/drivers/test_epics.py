"""Motor records of caproto's fake motor, over real Channel Access on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

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


def axis(name: str, record: str, low: float = -100, high: float = 100, **more: object) -> dict[str, object]:
    place = {"record": f"{PREFIX}{record}", "home": "none", "unit": "mm"}
    return {"name": name, **place, "low": low, "high": high, "tolerance": 0.01, **more}


def worker_of(*axes: dict[str, object], connection_seconds: float = 20, **motion: object) -> DeviceWorker:
    rules = {"settle_seconds": 0.5, "home_required": False, **motion}
    device = {"driver": "epics", "connection_seconds": connection_seconds}
    made, settings = make_axes({**device, "motion": rules, "axes": list(axes)})
    return DeviceWorker(made, settings)


def put(field: str, value: object) -> None:
    """Write to a record as another client of the same server does."""
    epics = pytest.importorskip("epics")
    assert epics.caput(f"{PREFIX}{field}", value, wait=True, connection_timeout=WAIT, timeout=WAIT) is not None


def get(field: str) -> float:
    epics = pytest.importorskip("epics")
    return float(epics.caget(f"{PREFIX}{field}", connection_timeout=WAIT, timeout=WAIT, use_monitor=False))


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def assert_rests(field: str = "mtr1.RBV") -> float:
    """Return where a motor rests, as another client reads it again and again."""
    first = get(field)
    for _ in range(5):
        time.sleep(0.1)  # a tick of the server
        assert get(field) == first
    return first


@pytest.fixture
def worker(server: subprocess.Popen[bytes]) -> Iterator[DeviceWorker]:
    made = worker_of(axis("x", "mtr1"), axis("y", "mtr2"))
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
    begun = get("mtr1.RBV"), get("mtr2.RBV")
    answer = worker.move(np.array([9.0, 15.0]))
    wait_for(lambda: get("mtr1.RBV") > begun[0] and get("mtr2.RBV") > begun[1])
    worker.stop()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    assert begun[0] < assert_rests() < 9.0
    assert begun[1] < assert_rests("mtr2.RBV") < 15.0


def test_stop_before_the_motors_have_begun_is_said_again(worker: DeviceWorker) -> None:
    answer = worker.move(np.array([9.0, 15.0]))
    wait_for(lambda: get("mtr1.VAL") == 9.0)  # put, but the server looks at it only at its next tick
    worker.stop()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    assert assert_rests() < 9.0


@pytest.mark.parametrize(
    ("field", "value", "after", "said"),
    [
        ("mtr1.SPMG", 0, 3, "axis x is at .* the move was short or refused"),
        ("mtr1.STOP", 1, None, "axis x is at .* the move was short or refused"),
        ("mtr1.VAL", 2.8, None, "axis x is at .* the move was short or refused"),
        ("mtr1.VELO", 0.02, 1.0, "axis x is at .* limit 4 s; check that it moves freely"),
    ],
)
def test_what_others_do_to_a_motor_in_a_move_is_a_latched_fault_and_it_rests(
    server: subprocess.Popen[bytes], field: str, value: object, after: object, said: str
) -> None:
    worker = worker_of(axis("x", "mtr1"), time_limit=4.0)
    worker.connect().result(WAIT)
    begun = worker.move(np.array([1.0])).result(WAIT)[0]
    if field == "mtr1.VELO":
        put(field, value)
    answer = worker.move(np.array([3.0]))
    wait_for(lambda: get("mtr1.RBV") > begun)
    if field != "mtr1.VELO":
        put(field, value)
    with pytest.raises(DriverFault, match=said):
        answer.result(WAIT)
    if after is not None:
        put(field, after)  # as it was: no old target is taken up again
    place = assert_rests()
    assert place < 3.0
    with pytest.raises(DriverFault, match=said):
        worker.move(np.array([3.0])).result(WAIT)
    worker.reset()
    assert np.allclose(worker.move(np.array([place + 0.1])).result(WAIT), place + 0.1, atol=0.01)
    worker.close()


def test_limits_of_a_record_that_change_are_heeded_and_zero_means_none(worker: DeviceWorker) -> None:
    put("mtr1.HLM", 0.05)
    try:
        with pytest.raises(MoveRefused, match="axis x is 0.5 mm; allowed: 0 mm to 0.05 mm"):
            worker.move(np.array([0.5, 0.0])).result(WAIT)
        put("mtr1.HLM", 0.0)  # with LLM 0: unset
        for place in (-0.2, 0.1):
            assert np.allclose(worker.move(np.array([place, 0.0])).result(WAIT), [place, 0.0], atol=0.01)
    finally:
        put("mtr1.HLM", 10.0)


def test_unit_that_is_not_the_scenarios_is_refused(server: subprocess.Popen[bytes]) -> None:
    put("mtr3.EGU", "um")
    try:
        worker = worker_of(axis("focus", "mtr3"))
        with pytest.raises(DriverFault, match="axis focus is in um, not in mm; correct its unit and limits"):
            worker.connect().result(WAIT)
        worker.close()
    finally:
        put("mtr3.EGU", "mm")


def test_homing_asks_in_the_direction_of_the_scenario_and_is_required(server: subprocess.Popen[bytes]) -> None:
    worker = worker_of(axis("x", "mtr1", home="reverse"), axis("y", "mtr2", home="forward"), home_required=True)
    worker.connect().result(WAIT)
    before = worker.position().result(WAIT)
    with pytest.raises(MoveRefused, match="not homed"):
        worker.move(before + 0.1).result(WAIT)
    worker.home().result(WAIT)
    assert (get("mtr1.HOMR"), get("mtr1.HOMF"), get("mtr2.HOMF")) == (1.0, 0.0, 1.0)
    assert np.allclose(worker.move(before + 0.1).result(WAIT), before + 0.1, atol=0.01)
    worker.close()


def test_homing_that_does_not_end_is_a_fault_and_the_motor_is_stopped(server: subprocess.Popen[bytes]) -> None:
    worker = worker_of(axis("x", "mtr1", home="forward"), home_required=True, home_seconds=0.5)
    worker.connect().result(WAIT)
    put("mtr1.VAL", 9.0)  # the fake motor does not home; this one moves on and on
    wait_for(lambda: get("mtr1.MOVN") == 1)
    with pytest.raises(DriverFault, match="axes x still move .* after homing began, limit 0.5 s"):
        worker.home().result(WAIT)
    wait_for(lambda: get("mtr1.MOVN") == 0)
    assert assert_rests() < 9.0
    assert not worker.homed
    worker.close()


def test_server_that_dies_is_a_fault_and_can_be_connected_again(server: subprocess.Popen[bytes]) -> None:
    worker = worker_of(axis("x", "mtr1"), axis("y", "mtr2"), connection_seconds=12)
    worker.connect().result(WAIT)
    answer = worker.move(np.array([9.0, 15.0]))
    wait_for(lambda: get("mtr1.MOVN") == 1)
    end(server)
    with pytest.raises(DriverFault, match="is gone"):
        answer.result(WAIT)
    assert worker.fault is not None
    worker.stop()  # said into the void, it does not wait
    again = start_server()
    try:
        worker.reset()
        worker.connect().result(WAIT)
        assert np.allclose(worker.move(np.array([0.1, 0.1])).result(WAIT), 0.1, atol=0.01)
    finally:
        worker.close()
        end(again)
