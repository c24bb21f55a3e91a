"""The attacks of benchmark/attacks on a living graph, in small: kills at bad moments, lies of every type."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from isolation import isolated

from benchmark.attacks import forged, kills
from benchmark.attacks.truth import examine
from lift_ros.bags import RunReader, RunWriter
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode
from lift_ros.scenario import load_scenario

ROOT = Path(__file__).parents[2]
SCENARIO, AUGMENTATION = "po-blend-d2", "gaussian_noise"


def test_nodes_killed_at_bad_moments_leave_true_records_and_the_graph_goes_on(tmp_path: Path) -> None:
    killed = kills.attack(8, seed=11, folder=tmp_path)
    assert killed.steps > 0
    assert not killed.bad, killed


def test_lies_of_every_type_change_nothing() -> None:
    lied = forged.attack(60, seed=11, names=list(forged.FORGERIES))
    assert lied.steps > 0
    assert set(lied.sent) == set(forged.FORGERIES)
    assert not lied.bad, lied


# The judge of both ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def true_run() -> list[Episode]:
    scenario = load_scenario(SCENARIO)
    augmentor = scenario.make_policy(AUGMENTATION)
    return collect(scenario, None, augmentor, episodes=3, seed=3, p=0.3, progress=False)


def judged(folder: Path, episodes: list[Episode]) -> list[str]:
    with RunWriter(folder / "run", {"seed": 3}) as writer:
        for episode in episodes:
            writer.write_episode(episode)
    truth = examine(folder / "run", SCENARIO, AUGMENTATION)
    assert truth.steps == sum(len(episode.steps) for episode in episodes)
    return [*truth.untrue, *truth.unsafe]


def test_a_true_run_is_found_true(tmp_path: Path, true_run: list[Episode]) -> None:
    assert judged(tmp_path, true_run) == []


@pytest.mark.parametrize("name", ["observation", "action", "logging_proposal", "augmentor_proposal"])
def test_one_changed_number_is_found_untrue(tmp_path: Path, true_run: list[Episode], name: str) -> None:
    first = true_run[0]
    place = next(step.index for step in first.steps if getattr(step, name).size)
    changed = dataclasses.replace(first.steps[place], **{name: np.nextafter(getattr(first.steps[place], name), 9.0)})
    steps = [*first.steps[:place], changed, *first.steps[place + 1 :]]
    found = judged(tmp_path, [dataclasses.replace(first, steps=steps), *true_run[1:]])
    assert any(f"episode 0 (reached), step {place}" in each for each in found)


# Two graphs -----------------------------------------------------------------------------------------------------------


def test_a_second_graph_in_the_same_place_says_so_and_the_first_goes_on(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with isolated():
        one = _begin(first, episodes=100_000)
        _wait_for_episodes(first)
        other = _begin(second, episodes=3)
        _wait_until(lambda: "Somebody else runs episodes here" in _told(second), lambda: _told(second))
        _wait_for_episodes(first, len(list(first.glob("*.mcap"))) + 3)
        for process in (other, one):
            process.send_signal(signal.SIGINT)
            process.wait(timeout=100)
    assert "/lift/arbiter publishes /lift/command" in _told(second)
    assert not list(second.glob("*.mcap"))
    truth = examine(first, SCENARIO, "")
    assert truth.steps > 0
    assert not truth.bad, truth


# The end of a run -----------------------------------------------------------------------------------------------------


def test_a_run_whose_arbiter_is_ended_early_says_so_and_fails(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with isolated():
        process = _begin(run, episodes=100_000)
        _wait_for_episodes(run)
        os.kill(_child(process.pid, "arbiter"), signal.SIGTERM)
        process.wait(timeout=100)
    assert process.returncode == 1, _told(run)
    assert "episodes are missing" in _told(run)
    assert len(RunReader(run).episode_indices) > 0


def _begin(run: Path, episodes: int) -> subprocess.Popen[bytes]:
    words = ["run", "--scenario", SCENARIO, "--p", "0", "--train-after", "0"]
    command = [sys.executable, "-m", "lift_ros.cli", *words, "--episodes", str(episodes), "--out", str(run)]
    with run.with_suffix(".log").open("wb") as log:  # a file never keeps a process waiting, as an unread pipe does
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def _told(run: Path) -> str:
    return run.with_suffix(".log").read_text(encoding="utf-8", errors="replace")


def _wait_for_episodes(run: Path, number: int = 1) -> None:
    _wait_until(lambda: len(list(run.glob("*.mcap"))) >= number, lambda: _told(run))


def _wait_until(happened: Callable[[], bool], explain: Callable[[], str]) -> None:
    deadline = time.monotonic() + 100
    while not happened():
        assert time.monotonic() < deadline, explain()
        time.sleep(0.05)


def _child(parent: int, executable: str) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_text().split("\0")
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(status[1]) == parent and executable in words:
                return int(entry.name)
    raise AssertionError(f"no {executable} below {parent}")
