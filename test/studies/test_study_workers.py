"""Cells on processes and on a local Ray, of whose workers one is killed in the middle: both end complete and alike."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from study_samples import here, results_of, small_study

from lift_ros.errors import UserError
from lift_ros.studies import running
from lift_ros.studies.running import run_study
from lift_ros.studies.store import Store
from lift_ros.studies.study import Study

PATIENCE = 120.0  # [s]


def study_of(folder: Path) -> Study:
    """Return cells that take long enough to be interrupted."""
    grids = [{"scenario": "easy", "method": ["CQL-SC", "LIFT-SC"], "l": [0.05, 0.1], "data": [0, 1]}]
    return small_study(folder, grids=grids, options={"updates": 150, "hidden": "16x16", "batch_size": 64})


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What comes out of the same cells in one process that nobody kills."""
    folder = tmp_path_factory.mktemp("expected")
    assert not run_study(study_of(folder), Store(folder), here, progress=False).failed
    return results_of(folder)


def descendants() -> Iterator[tuple[int, bytes]]:
    """Yield the processes below this one, with their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    below = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    for pid in sorted(below - {os.getpid()}):
        try:
            yield pid, Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue


@contextmanager
def killing_one(folder: Path, sign: bytes) -> Iterator[list[int]]:
    """Kill one busy worker once the first cell is stored, and say which it was."""
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not over.is_set() and not killed:
            if any((folder / "cells").glob("*.json")):
                for pid, command in descendants():
                    if sign in command:
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
                        break
            time.sleep(0.005)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(("place", "sign"), [("processes", b"spawn_main"), ("ray", b"ray::work")])
def test_a_killed_worker_costs_no_cell_and_changes_no_bit(
    tmp_path: Path, expected: dict[str, str], place: str, sign: bytes
) -> None:
    if place == "ray":
        pytest.importorskip("ray", reason="pip install 'lift_ros[study]'")
    execute = running.processes(2) if place == "processes" else running.ray("local", 2)
    with killing_one(tmp_path, sign) as killed:
        ran = run_study(study_of(tmp_path), Store(tmp_path), execute, progress=False)
    assert len(killed) == 1
    assert (ran.computed, ran.failed) == (8, {})
    assert results_of(tmp_path) == expected


def test_a_cluster_that_is_not_there_is_told(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'lift_ros[study]'")
    with pytest.raises(UserError, match="no Ray answers at '127.0.0.1:1'"):
        run_study(study_of(tmp_path), Store(tmp_path), running.ray("127.0.0.1:1", 2), progress=False)


def test_nobody_computes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the number of processes is 0, but must be at least 1"):
        running.processes(0)
