"""The one table of a graph's nodes, read by the launch files and by `lift run`; needs no ROS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lift_ros.errors import UserError
from lift_ros.graph.parameters import PARAMETERS, Value, find
from lift_ros.scenario import Scenario, load_scenario

# A simulator waits as patiently as one likes: there a loaded machine must not change a trajectory.
PATIENT_DEADLINES: Mapping[str, Value] = {
    "plant_deadline": 30.0,
    "logging_policy_deadline": 30.0,
    "augmentor_deadline": 10.0,
}
RESTARTS = 5
SIMULATOR = "simulator"
HARDWARE = "hardware"


@dataclass(frozen=True)
class GraphOptions:
    """What a user decides about a graph; None leaves it to the scenario."""

    scenario: str
    run: Path
    mode: str = "collect"
    episodes: int | None = None
    p: float | None = None
    seed: int = 0
    model: Path | None = None
    train_after: int = 0  # 0 starts no trainer
    wait_for_model: bool = True  # with a trainer: no episode between `train_after` and its first model
    plant: str = SIMULATOR  # SIMULATOR, or HARDWARE for a plant node that somebody else starts
    namespace: str = "lift"
    parameters: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)  # by executable; these win


@dataclass(frozen=True)
class NodeEntry:
    """One row: an executable of this package, its parameters, and what its end means for the graph."""

    executable: str
    parameters: Mapping[str, Value]
    restarts: int = RESTARTS
    ends_graph: bool = False


def graph_nodes(options: GraphOptions) -> list[NodeEntry]:
    """Return the nodes in the order in which they start and end: what asks ends before what answers or records."""
    scenario = load_scenario(options.scenario)
    _check(options, scenario)
    rows = [_arbiter(options, scenario)]
    if options.mode != "evaluate":
        rows.append(_entry("logging_policy", {"scenario": options.scenario}, options))
    if _may_augment(options, rows[0]):
        model = {"model": str(options.model.resolve())} if options.model else {}
        rows.append(_entry("augmentor", {"scenario": options.scenario, **model}, options))
    if options.plant == SIMULATOR:
        rows.append(_entry(simulator_of(scenario), {"scenario": options.scenario}, options))
    if options.train_after:
        rows.append(_trainer(options))
    rows.append(_entry("recorder", {"run": str(options.run.resolve()), "facts": json.dumps(_facts(options))}, options))
    return rows


def _may_augment(options: GraphOptions, arbiter: NodeEntry) -> bool:
    """Whether anybody will ask the augmentor; where nobody does, the loop is faster without it."""
    alone = options.mode == "collect" and arbiter.parameters["p"] == 0.0
    return not alone or bool(options.model or options.train_after or "augmentor" in options.parameters)


def simulator_of(scenario: Scenario) -> str:
    """Return the executable that simulates the scenario's plant."""
    return "fetch_simulator" if scenario.plant.kind.startswith("fetch") else "positioning_simulator"


def _check(options: GraphOptions, scenario: Scenario) -> None:
    if options.plant not in (SIMULATOR, HARDWARE):
        raise UserError(f"plant is {options.plant!r}; allowed: {SIMULATOR}, or {HARDWARE} for a plant node of your own")
    if scenario.plant.kind == HARDWARE and options.plant == SIMULATOR:
        raise UserError(
            f"scenario {scenario.name} describes hardware, which has no simulator; start your plant node and choose "
            "plant hardware (lift run --plant hardware)"
        )
    if options.mode == "evaluate" and options.model is None and "augmentor" not in options.parameters:
        raise UserError("mode evaluate needs a model; give one with --model FILE")
    if options.model is not None and not options.model.is_file():
        raise UserError(f"model {options.model} does not exist; train one with lift train")
    for executable, values in options.parameters.items():
        for name, value in values.items():
            parameter = find(PARAMETERS.get(executable, ()), name)
            if parameter is None:
                raise UserError(f"{executable} has no parameter {name}; see lift_{executable} --help")
            parameter.check(value)


def _arbiter(options: GraphOptions, scenario: Scenario) -> NodeEntry:
    collection = scenario.collection
    parameters: dict[str, Value] = {
        "scenario": options.scenario,
        "mode": options.mode,
        "episodes": collection.episodes if options.episodes is None else options.episodes,
        "p": float(collection.p if options.p is None else options.p),
        "seed": options.seed,
        "budget": collection.augmentation_budget,
        "exit_when_done": True,
    }
    if options.train_after and options.wait_for_model:
        parameters["model_from"] = options.train_after
    elif options.model is not None:
        parameters["model_from"] = 0
    if options.plant == SIMULATOR:
        parameters.update(PATIENT_DEADLINES)
    return _entry("arbiter", parameters, options, ends_graph=True)


def _trainer(options: GraphOptions) -> NodeEntry:
    parameters: dict[str, Value] = {
        "scenario": options.scenario,
        "run": str(options.run.resolve()),
        "train_after": options.train_after,
        "seed": options.seed,
    }
    return _entry("trainer", parameters, options)


def _entry(
    executable: str, parameters: Mapping[str, Value], options: GraphOptions, *, ends_graph: bool = False
) -> NodeEntry:
    return NodeEntry(executable, {**parameters, **options.parameters.get(executable, {})}, ends_graph=ends_graph)


def _facts(options: GraphOptions) -> dict[str, Any]:
    scenario = load_scenario(options.scenario)
    return {
        "scenario": scenario.name,
        "parameters": scenario.as_dict(),
        "seed": options.seed,
        "mode": options.mode,
        "p": scenario.collection.p if options.p is None else options.p,
        "made_by": "graph",
    }
