"""The graph's trajectories are those of the loop in process, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_graph import LiveGraph, assert_same, live_graph, recorded, write_model

from lift_ros.bags import RunWriter
from lift_ros.cli import main
from lift_ros.collection.guard import Guard
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source
from lift_ros.graph.table import PATIENT_DEADLINES, GraphOptions, graph_nodes, plant_node_of
from lift_ros.policies.augmentations import UncertaintyModel
from lift_ros.policies.coverage import MEAN, WHITENING
from lift_ros.policies.learned import load_model
from lift_ros.policies.protocol import Policy
from lift_ros.scenario import DEFAULT_GUARD, config_folder, load_scenario
from lift_ros.training import preset, train

SEED = 11


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[LiveGraph]:
    with live_graph(tmp_path) as graph:
        yield graph


def run_table(graph: LiveGraph, **wishes: Any) -> list[Episode]:
    """Run the nodes of the graph's table to their end and return what they recorded."""
    options = GraphOptions("po-blend-d2", graph.folder / "run", seed=SEED, **{"p": 0.4, "guard": "off", **wishes})
    for row in graph_nodes(options):
        graph.start(row.executable, **row.parameters)
    return finish(graph)


def finish(graph: LiveGraph) -> list[Episode]:
    """Wait for the arbiter's end and return what was recorded."""
    arbiter = graph.processes["arbiter"]
    graph.wait("the end of the run", lambda: arbiter.process.poll() is not None)
    assert arbiter.process.returncode == 0, graph.describe()
    assert graph.processes["recorder"].end() == 0
    return recorded(graph.folder / "run")


def run_graph(graph: LiveGraph, scenario: str, episodes: int, mode: str, p: float, model: Path) -> list[Episode]:
    """Run a graph to its end and return what it recorded."""
    run = graph.folder / "run"
    given: dict[str, Any] = {"scenario": scenario}
    graph.start(
        "arbiter",
        **given,
        mode=mode,
        p=p,
        seed=SEED,
        episodes=episodes,
        exit_when_done=True,
        model_from=0,
        guard_enabled=False,
        **PATIENT_DEADLINES,
    )
    graph.start("recorder", run=str(run))
    graph.start(plant_node_of(load_scenario(scenario)), **given)
    graph.start("augmentor", **given, model=str(model))
    if mode != "evaluate":
        graph.start("logging_policy", **given)
    return finish(graph)


@pytest.mark.parametrize(
    ("scenario", "episodes", "mode", "p"),
    [
        ("po-blend-d2", 6, "collect", 0.4),
        ("po-regrot-d5", 1, "shadow", 0.5),
        ("po-none-d2", 2, "evaluate", 1.0),
        ("fetch-reach", 2, "collect", 0.5),
        ("po-blend-d2", 4, "assist", 1.0),
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
    assert actors == expected.get(mode, actors)


@pytest.mark.parametrize("pull", [-3.0, 30.0])
def test_every_hand_over_of_assist_agrees(graph: LiveGraph, pull: float) -> None:
    """Models that run away, or swing about the goal; their data end at a distance of 0.8."""
    model, scenario = graph.folder / "bad.safetensors", load_scenario("po-blend-d2")
    region = {MEAN: np.zeros(2, dtype=np.float32), WHITENING: np.eye(2, dtype=np.float32) / np.float32(0.8)}
    write_model(model, 2, 2, scenario.action_radius, pull, region)
    in_graph = run_table(graph, episodes=5, mode="assist", model=model)
    alike = collect(scenario, None, load_model(model), episodes=5, seed=SEED, p=0.4, mode=Mode.ASSIST, progress=False)
    assert_same(in_graph, alike)
    assert all(episode.outcome is Outcome.REACHED for episode in in_graph)
    assert_both_act(in_graph)
    reasons = {step.rejection for episode in in_graph for step in episode.steps}
    assert Rejection.UNCOVERED in reasons


@pytest.mark.parametrize("pull", [-3.0, 30.0])
def test_the_guard_decides_alike_also_in_a_run_that_goes_on(graph: LiveGraph, pull: float) -> None:
    """Of a model that runs away and of one that swings about the goal, in two parts and at once."""
    model = graph.folder / "bad.safetensors"
    settings = {"plain": 2, "leash": 1.5, "rejections": 9, "allowance": 3.0, "evidence": 1.2}
    write_model(model, 2, 2, load_scenario("po-blend-d2").action_radius, pull)
    by_hand = {"arbiter": {f"guard_{name}": value for name, value in settings.items()}}
    guard = Guard(replace(DEFAULT_GUARD.on(hardware=False), **settings))
    alike = collect(
        load_scenario("po-blend-d2"),
        augmentor=load_model(model),
        episodes=9,
        seed=SEED,
        p=0.9,
        guard=guard,
        progress=False,
    )
    for episodes in (5, 9):
        in_graph = run_table(graph, episodes=episodes, model=model, p=0.9, guard="on", parameters=by_hand)
        for process in graph.processes.values():
            if process.process.poll() is None:
                process.end()
    assert_same(in_graph, alike)
    chosen = {step.p for episode in in_graph[:5] for step in episode.steps}
    assert len(chosen) == (3 if pull < 0 else 2)  # of the one that runs away, p was lowered


def in_process(augmentor: Policy, episodes: int, first: int = 0) -> list[Episode]:
    scenario = load_scenario("po-blend-d2")
    return collect(scenario, None, augmentor, episodes=episodes, first=first, seed=SEED, p=0.4, progress=False)


def fitted(seen: list[Episode]) -> UncertaintyModel:
    model = load_scenario("po-blend-d2").make_augmentation("uncertainty")
    assert isinstance(model, UncertaintyModel)
    steps = [step for episode in seen for step in episode.steps]
    model.fit(np.array([step.observation for step in steps]), np.array([step.action for step in steps]))
    return model


def assert_both_act(episodes: list[Episode]) -> None:
    assert {step.source for episode in episodes for step in episode.steps} == set(Source)


@pytest.mark.parametrize("name", ["gaussian_noise", "random_scaling", "uniform"])
def test_every_random_augmentation_agrees(graph: LiveGraph, name: str) -> None:
    in_graph = run_table(graph, episodes=2, augmentation=name)
    assert_same(in_graph, in_process(load_scenario("po-blend-d2").make_augmentation(name), 2))
    assert_both_act(in_graph)


def test_the_uncertainty_model_of_named_runs_agrees(graph: LiveGraph) -> None:
    seen = collect(load_scenario("po-blend-d2"), episodes=2, seed=1, progress=False)
    with RunWriter(graph.folder / "seen", {}) as writer:
        for episode in seen:
            writer.write_episode(episode)
    in_graph = run_table(graph, episodes=2, augmentation="uncertainty", data=[graph.folder / "seen"])
    assert_same(in_graph, in_process(fitted(seen), 2))
    assert_both_act(in_graph)


class Silent:
    """An augmentor without a model: it is asked, but proposes nothing."""

    def reset(self) -> None:
        """Keep no state."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Propose nothing."""
        return np.empty(0)


def test_the_uncertainty_model_of_the_runs_first_episodes_agrees(graph: LiveGraph) -> None:
    in_graph = run_table(graph, episodes=4, augmentation="uncertainty", train_after=2)
    before = in_process(Silent(), 2)
    assert_same(in_graph, before + in_process(fitted(before), 2, first=2))
    assert not any(episode.augmentations for episode in in_graph[:2])
    assert_both_act(in_graph[2:])


def test_what_the_scenario_says_is_algorithm_2(graph: LiveGraph) -> None:
    """With nothing but a short plan: record, train, go on with the model, all as in process."""
    scenario = graph.folder / "short.yaml"
    text = (config_folder() / "po-blend-d2.yaml").read_text()
    scenario.write_text(
        text.replace("episodes: 100", "episodes: 3").replace("after: 50", "after: 2").replace("ates: 1000", "ates: 20")
    )
    for row in graph_nodes(GraphOptions(str(scenario), graph.folder / "run", seed=SEED, guard="off")):
        graph.start(row.executable, **row.parameters)
    in_graph = finish(graph)
    trained = load_model(graph.folder / "run-models" / "model_000002.safetensors")
    loaded = load_scenario(scenario)
    before = collect(loaded, None, Silent(), episodes=2, seed=SEED, p=0.6, progress=False)
    after = collect(loaded, None, trained, episodes=1, first=2, seed=SEED, p=0.6, progress=False)
    assert_same(in_graph, before + after)
    assert_both_act(in_graph[2:])
    words = [
        "--scenario",
        str(scenario),
        "--out",
        str(graph.folder / "alone"),
        "--seed",
        str(SEED),
        "--quiet",
        "--guard",
        "off",
    ]
    assert main(["collect", *words, "--augmentation", "learned"]) == 0
    assert_same(without_hashes(in_graph), without_hashes(recorded(graph.folder / "alone")))


def without_hashes(episodes: list[Episode]) -> list[Episode]:
    """Leave out which file a model came from: it names the bags, and these hold times."""
    return [replace(episode, steps=[replace(step, model_hash="") for step in episode.steps]) for episode in episodes]


@pytest.mark.parametrize(("scenario", "mode"), [("light-tunnel", "assist"), ("sensors", "collect")])
def test_who_sees_pictures_or_readings_acts_in_the_graph_as_in_process(
    graph: LiveGraph, scenario: str, mode: str
) -> None:
    loaded = load_scenario(scenario)
    episodes = collect(loaded, episodes=2, seed=1, progress=False)
    options = preset("fast", loaded, updates=2, lessons=2, batch_size=8, maps=(4, 4), held_out=0.0)
    model = graph.folder / "seeing.safetensors"
    train(episodes, options, action_radius=loaded.action_radius, out=model, threads=1, scenario=loaded)
    in_graph = run_graph(graph, scenario, 2, mode, 0.5, model)
    alike = collect(
        loaded,
        None,
        load_model(model),
        episodes=2,
        seed=SEED,
        p=0.5,
        mode=Mode[mode.upper()],
        budget=20,
        progress=False,
    )
    assert_same(in_graph, alike)
    assert_both_act(in_graph)
    assert all((step.image is not None) == (scenario == "light-tunnel") for step in in_graph[0].steps)
