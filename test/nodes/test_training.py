"""Algorithm 2 through the real graph: record, train in a process of its own, hand the model over, go on."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_graph import LiveGraph, assert_same, live_graph, recorded
from lone_node import lone_node

from lift_ros.bags import RunWriter
from lift_ros.collection.exchange import Receipt
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Source
from lift_ros.errors import UserError
from lift_ros.graph.table import PATIENT_DEADLINES
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.trainer_node import Trainer
from lift_ros.policies.learned import load_model
from lift_ros.scenario import load_scenario
from lift_ros.training.job import TrainingJob
from lift_ros.training.runs import load_runs

SCENARIO = "po-none-d2"
TRAIN_AFTER, EPISODES = 3, 6
QUICK = json.dumps({"updates": 40, "batch_size": 32})
SLOW = json.dumps({"updates": 10**7, "batch_size": 32})


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[LiveGraph]:
    with live_graph(tmp_path) as graph:
        yield graph


def start_trainer(graph: LiveGraph, training: str) -> None:
    graph.start(
        "trainer", scenario=SCENARIO, run=str(graph.folder / "run"), train_after=TRAIN_AFTER, training=training, seed=5
    )


def start_graph(graph: LiveGraph, training: str) -> None:
    given: dict[str, Any] = {"scenario": SCENARIO}
    graph.start(
        "arbiter",
        **given,
        episodes=EPISODES,
        p=0.5,
        seed=5,
        model_from=TRAIN_AFTER,
        guard_enabled=False,
        **PATIENT_DEADLINES,
    )
    start_trainer(graph, training)
    graph.start("recorder", run=str(graph.folder / "run"))
    graph.start("positioning_simulator", **given)
    graph.start("logging_policy", **given)
    graph.start("augmentor", **given)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat").read_text()
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def test_graph_records_trains_hands_over_and_goes_on(graph: LiveGraph) -> None:
    start_graph(graph, QUICK)
    graph.wait("the end of the run", lambda: graph.state("arbiter") == "DONE")
    episodes = recorded(graph.folder / "run")
    model = graph.folder / "run-models" / f"model_{TRAIN_AFTER:06d}.safetensors"
    policy = load_model(model)
    before, after = episodes[:TRAIN_AFTER], episodes[TRAIN_AFTER:]
    assert {step.source for episode in before for step in episode.steps} == {Source.LOGGING_POLICY}
    assert {step.model_hash for episode in after for step in episode.steps} <= {policy.hash, ""}
    assert any(step.source is Source.AUGMENTOR for episode in after for step in episode.steps)
    assert policy.description["training"]["data"]["episodes"] == TRAIN_AFTER
    sources = load_runs([graph.folder / "run"], episodes=TRAIN_AFTER).sources
    assert policy.description["training"]["bags"] == [{**source, "held_out": []} for source in sources]
    scenario = load_scenario(SCENARIO)
    again = collect(
        scenario, augmentor=policy, episodes=EPISODES - TRAIN_AFTER, first=TRAIN_AFTER, seed=5, p=0.5, progress=False
    )
    assert_same(after, again)


def test_killed_trainer_loses_nothing_and_trains_again(graph: LiveGraph) -> None:
    start_graph(graph, SLOW)
    graph.wait(
        "training", lambda: graph.number("trainer", "training process") > 0 and graph.state("trainer") == "TRAINING"
    )
    job = int(graph.number("trainer", "training process"))
    graph.processes["trainer"].kill()
    deadline = time.monotonic() + 60
    while alive(job) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(job)
    assert len(recorded(graph.folder / "run")) == TRAIN_AFTER
    start_trainer(graph, QUICK)
    graph.wait("the end of the run", lambda: graph.state("arbiter") == "DONE")
    assert len(recorded(graph.folder / "run")) == EPISODES
    graph.processes["trainer"].kill()
    start_trainer(graph, QUICK)  # finds what it has trained before, and announces it
    graph.wait("the model again", lambda: graph.state("trainer") == "TRAINED")


def test_end_of_the_trainer_ends_the_training(graph: LiveGraph) -> None:
    run = graph.folder / "run"
    with RunWriter(run, {}) as writer:
        for episode in collect(load_scenario(SCENARIO), episodes=TRAIN_AFTER, seed=1, progress=False):
            writer.write_episode(episode)
    start_trainer(graph, SLOW)
    graph.wait("training", lambda: graph.number("trainer", "training process") > 0)
    job = int(graph.number("trainer", "training process"))
    nicer = min(19, os.getpriority(os.PRIO_PROCESS, graph.processes["trainer"].process.pid) + 10)
    graph.wait("the process to give way", lambda: os.getpriority(os.PRIO_PROCESS, job) == nicer)
    assert graph.processes["trainer"].end(signal.SIGINT) == 0
    assert not alive(job)


@pytest.mark.parametrize(
    ("recorded_episodes", "train_after", "train_every", "trained", "due"),
    [
        (9, 10, 0, 0, 0),
        (10, 10, 0, 0, 10),
        (37, 10, 0, 0, 10),
        (37, 10, 0, 10, 0),
        (37, 10, 5, 10, 35),
        (37, 10, 5, 35, 0),
    ],
)
def test_when_training_is_due_depends_on_numbers_alone(
    tmp_path: Path, recorded_episodes: int, train_after: int, train_every: int, trained: int, due: int
) -> None:
    with lone_node(Trainer, run=str(tmp_path / "run"), train_after=train_after, train_every=train_every) as node:
        node._trained = trained
        node._on_receipt(Receipt(recorded_episodes - 1, None))
        node._on_receipt(Receipt(recorded_episodes + 5, 3))  # a step says nothing of episodes
        assert node._due() == due


def test_episodes_whose_receipts_were_missed_are_counted_in_the_run(tmp_path: Path) -> None:
    with lone_node(Trainer, run=str(tmp_path / "run"), train_after=2, scenario=SCENARIO, training=QUICK) as node:
        node._poll()
        assert node._process is None
        with RunWriter(tmp_path / "run", {}) as writer:
            for episode in collect(load_scenario(SCENARIO), episodes=2, seed=1, progress=False):
                writer.write_episode(episode)
        node._poll()
        assert node._process is None  # it does not read the run all the time
        node._count_at = 0.0
        node._poll()
        assert node._process is not None


def test_failed_training_is_reported_with_its_reason_and_tried_again_later(tmp_path: Path) -> None:
    with lone_node(Trainer, run=str(tmp_path / "run"), train_after=1, scenario=SCENARIO) as node:
        node._on_receipt(Receipt(0, None))
        node._poll()
        assert node._process is not None
        node._process.wait(100)
        node._poll()
        assert node.diagnostics.status is Status.TRAINING_FAILED
        assert "run" in node.diagnostics.detail
        node._poll()
        assert node._process is None
        node._not_before = 0.0
        node._poll()
        assert node._process is not None


def test_trainer_needs_a_run() -> None:
    with pytest.raises(UserError, match="parameter run is empty"), lone_node(Trainer):
        pass


def test_job_travels_as_one_argument() -> None:
    job = TrainingJob("run", 3, SCENARIO, "out", 1, 2, 5, {"updates": 7})
    assert TrainingJob(**json.loads(job.command()[-1])) == job
