"""Whole graphs on broken rigs: what the plant says of each fault, what is recorded, and that nothing moves then."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from std_srvs.srv import Trigger

from benchmark.attacks import rig_faults
from benchmark.attacks.living import living
from benchmark.attacks.rig_truth import examine
from benchmark.attacks.rigs import MicroManagerRig, Trace
from lift_ros.bags import RunWriter
from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.graph.table import GraphOptions

FAULT, STOPPED = "aborted: the plant refused: hardware fault", "aborted: the plant refused: emergency stop"
INTERRUPTED, UNKNOWN = "aborted: the plant refused: interrupted", "aborted: the plant refused: unknown episode"

# What the plant says, and the ends of episodes of which one is recorded; none where the episode goes on.
MICROMANAGER: dict[str, tuple[str, set[str]]] = {
    "stop by service": ("EMERGENCY_STOP", {STOPPED, INTERRUPTED}),
    "stop by topic": ("EMERGENCY_STOP", {STOPPED, INTERRUPTED}),
    "stop of a frozen node": ("EMERGENCY_STOP", {STOPPED, INTERRUPTED}),
    "pause": ("HELD", set()),
    "pushed in a pause": ("HELD", {INTERRUPTED}),
    "commands cease": ("HOLDING", set()),
    "node killed": ("READY or MOVING", {UNKNOWN}),
    "stuck": ("FAULT", {FAULT}),
    "deaf": ("FAULT", {FAULT}),
    "short": ("FAULT", {FAULT}),
    "unplugged": ("FAULT", {FAULT}),
    "dark": ("FAULT", {FAULT}),
}
EPICS: dict[str, tuple[str, set[str]]] = {
    "stop by service": ("EMERGENCY_STOP", {STOPPED, INTERRUPTED}),
    "server killed": ("FAULT", {FAULT}),
    "limits": ("FAULT", {FAULT}),
    "paused by SPMG": ("FAULT", {FAULT}),
}


@pytest.mark.parametrize(
    ("rig", "expected", "libraries"),
    [("micromanager", MICROMANAGER, ("pymmcore", "mm_test_adapters")), ("epics", EPICS, ("epics", "caproto"))],
)
def test_each_fault_is_said_and_recorded_and_nothing_moves(
    rig: str, expected: dict[str, tuple[str, set[str]]], libraries: tuple[str, ...], tmp_path: Path
) -> None:
    for library in libraries:
        pytest.importorskip(library, reason="pip install -r requirements/devices.txt")
    # A process of its own: Channel Access keeps to the servers that it knew when a process first asked.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        attack = partial(rig_faults.attack, rig, len(expected), seed=5, folder=tmp_path, faults=list(expected))
        broken = pool.submit(attack).result()
    assert not broken.bad, broken
    assert set(broken.faults) == set(expected)
    for fault, (said, ends) in expected.items():
        assert sum(broken.plant_said[f"{fault}: {status}"] for status in said.split(" or ")) == 1, (fault, str(broken))
        recorded = broken.recorded[fault]
        assert ends.intersection(recorded) if ends else "aborted" not in " ".join(recorded), (fault, recorded)


def test_homing_that_was_forgotten_or_is_refused_moves_nothing_and_records_no_step(tmp_path: Path) -> None:
    pytest.importorskip("mm_test_adapters", reason="pip install -r requirements/devices.txt")
    rig = MicroManagerRig(tmp_path)
    scenario = rig.scenario()
    scenario["rig"]["axes"]["motion"]["home_required"] = True
    options = GraphOptions(
        rig_faults.write_scenario(tmp_path, scenario),
        tmp_path / "run",
        episodes=0,
        p=0.0,
        train_after=0,
        parameters=rig_faults.PARAMETERS,
    )
    with living(tmp_path, options, first_step=False) as (_, watcher):
        watcher.wait("the fault", lambda: watcher.states.get("rig") == "FAULT")
        watcher.wait("the record of the episode", lambda: watcher.states.get("arbiter") == "PAUSED")
        assert "were not homed since they were connected; home them first" in watcher.status["rig"]
        watcher.call(Trigger, "reset_fault")
        assert watcher.call(Trigger, "home").success
        watcher.wait("the end of homing", lambda: "stage 'Z' cannot be homed" in watcher.status.get("rig", ""))
        assert watcher.states["rig"] == "FAULT"
        watcher.call(Trigger, "resume")
        watcher.wait("the next refusal", lambda: watcher.states.get("arbiter") == "PAUSED")
        time.sleep(0.2)
    assert len(rig.trace().times) > 0 and rig.trace().span(0, time.time_ns()) == 0.0
    truth = examine(tmp_path / "run", rig.trace(), rig.tolerance)
    assert not truth.untrue and truth.steps == 0
    assert set(truth.outcomes) == {"aborted"}


# The judge ------------------------------------------------------------------------------------------------------------

S = 1_000_000_000


def episode() -> Episode:
    """Two moves of one axis, at 10 s and 12 s, each of which takes a second."""
    common = {"source": Source.LOGGING_POLICY, "reward": float("nan")}
    steps = [
        Step(0, i, (10 + 2 * i) * S, observation=at(i), position=at(i), action=at(1.0), **common)  # type: ignore[arg-type]
        for i in range(2)
    ]
    ends = {"final_observation": at(2), "final_position": at(2), "start_time_ns": 9 * S, "end_time_ns": 14 * S}
    return Episode(0, 1, Mode.COLLECT, Outcome.ABORTED, steps, reason="stopped", **ends)  # type: ignore[arg-type]


def at(x: float) -> np.ndarray:
    return np.array([x], dtype=np.float64)


def trace(*places: tuple[float, float]) -> Trace:
    return Trace([int(second * S) for second, _ in places], [at(x) for _, x in places])


TRUE = trace((1.0, 0.0), (10.5, 0.5), (11.0, 1.0), (12.5, 1.5), (13.0, 2.0))


def judged(folder: Path, made: Episode, truth: Trace) -> list[str]:
    with RunWriter(folder / "run", {"seed": 3}) as writer:
        writer.write_episode(made)
    found = examine(folder / "run", truth, 0.01)
    assert (found.steps, found.recorded) == (2, {(0, 0), (0, 1)})
    return found.untrue


def test_a_true_record_is_found_true(tmp_path: Path) -> None:
    assert judged(tmp_path, episode(), TRUE) == []


def test_a_move_that_never_ended_is_found_untrue(tmp_path: Path) -> None:
    stopped = trace((1.0, 0.0), (10.5, 0.5), (11.0, 1.0), (12.5, 1.5))
    assert judged(tmp_path, episode(), stopped) == [
        "episode 0 (aborted), observation 2: the axes came no nearer to [2.0] than 0.5"
    ]


def test_an_action_that_is_not_the_way_is_found_untrue(tmp_path: Path) -> None:
    true = episode()
    wrong = dataclasses.replace(true, steps=[true.steps[0], dataclasses.replace(true.steps[1], action=at(0.5))])
    assert judged(tmp_path, wrong, TRUE) == ["episode 0 (aborted), step 1: its action and the way differ by 0.5"]


def test_what_nobody_could_see_is_counted_apart(tmp_path: Path) -> None:
    away = Trace([int(second * S) for second in (1, 10.5, 11, 12.5, 16)], [at(x) for x in (0, 0.5, 1, 1.5, 3)], 0.1 * S)
    assert judged(tmp_path, episode(), away) == []
    assert examine(tmp_path / "run", away, 0.01).unwatched == 1


def test_motion_after_a_stop_is_seen() -> None:
    assert TRUE.span(13.1 * S, 20 * S) == 0.0
    assert TRUE.span(12.2 * S, 20 * S) == 1.0
    assert TRUE.last_change(12.2 * S, 20 * S) == pytest.approx(0.8)
