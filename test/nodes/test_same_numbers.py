"""The graph's trajectories are those of the loop in process, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_graph import LiveGraph, assert_same, live_graph, recorded, write_model

from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode, Mode, Source
from lift_ros.graph.table import PATIENT_DEADLINES, simulator_of
from lift_ros.policies.learned import load_model
from lift_ros.scenario import load_scenario

SEED = 11


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[LiveGraph]:
    with live_graph(tmp_path) as graph:
        yield graph


def run_graph(graph: LiveGraph, scenario: str, episodes: int, mode: str, p: float, model: Path) -> list[Episode]:
    """Run a graph to its end and return what it recorded."""
    run = graph.folder / "run"
    given: dict[str, Any] = {"scenario": scenario}
    arbiter = graph.start(
        "arbiter",
        **given,
        mode=mode,
        p=p,
        seed=SEED,
        episodes=episodes,
        exit_when_done=True,
        model_from=0,
        **PATIENT_DEADLINES,
    )
    graph.start("recorder", run=str(run))
    graph.start(simulator_of(load_scenario(scenario)), **given)
    graph.start("augmentor", **given, model=str(model))
    if mode != "evaluate":
        graph.start("logging_policy", **given)
    graph.wait("the end of the run", lambda: arbiter.process.poll() is not None)
    assert arbiter.process.returncode == 0, graph.describe()
    assert graph.processes["recorder"].end() == 0
    return recorded(run)


@pytest.mark.parametrize(
    ("scenario", "episodes", "mode", "p"),
    [
        ("po-blend-d2", 6, "collect", 0.4),
        ("po-regrot-d5", 1, "shadow", 0.5),
        ("po-none-d2", 2, "evaluate", 1.0),
        ("fetch-reach", 2, "collect", 0.5),
    ],
)
def test_graph_and_process_agree(
    graph: LiveGraph, tmp_path: Path, scenario: str, episodes: int, mode: str, p: float
) -> None:
    loaded = load_scenario(scenario)
    model = tmp_path / "pull.safetensors"
    write_model(model, loaded.observation_size, loaded.action_size, loaded.action_radius)
    in_graph = run_graph(graph, scenario, episodes, mode, p, model)
    in_process = collect(
        loaded,
        augmentor=load_model(model),
        episodes=episodes,
        seed=SEED,
        p=p,
        mode=Mode[mode.upper()],
        budget=20,
        progress=False,
    )
    assert_same(in_graph, in_process)
    actors = {step.source for episode in in_graph for step in episode.steps}
    expected = {"collect": set(Source), "shadow": {Source.LOGGING_POLICY}, "evaluate": {Source.AUGMENTOR}}
    assert actors == expected[mode]
