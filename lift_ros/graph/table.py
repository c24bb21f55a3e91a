"""The one table of a graph's nodes, read by the launch files and by `lift run`; needs no ROS."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lift_ros.bags.reader import RunReader
from lift_ros.bags.writer import check_continuation
from lift_ros.collection.plan import OFF, ON, CollectionPlan
from lift_ros.collection.records import Mode
from lift_ros.errors import UserError
from lift_ros.graph.page_address import DEFAULT_ADDRESS, Address
from lift_ros.graph.parameters import (
    ASSIST_OF_ARBITER,
    ASSIST_OF_AUGMENTOR,
    PARAMETERS,
    Value,
    default_model_folder,
    find,
)
from lift_ros.graph.roles import require_libraries
from lift_ros.own_code import find_own
from lift_ros.policies.augmentations import AUGMENTATION_NAMES, UNCERTAINTY
from lift_ros.policies.learned import load_fitting_model
from lift_ros.policies.loading import is_routine
from lift_ros.scenario import GUARD_KEYS, Scenario, load_scenario

# A simulator waits as patiently as one likes: there a loaded machine must not change a trajectory.
PATIENT_DEADLINES: Mapping[str, Value] = {
    "plant_deadline": 30.0,
    "logging_policy_deadline": 30.0,
    "augmentor_deadline": 10.0,
}
# A rig with drivers rests between its moves, so that waiting for a loaded machine costs time and nothing else.
RIG_DEADLINES: Mapping[str, Value] = {"logging_policy_deadline": 5.0, "augmentor_deadline": 1.0}
SIMULATOR = "simulator"
HARDWARE = "hardware"
RIG = "rig"  # the node that drives the devices that a scenario names
PAGE = "page"
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


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
    augmentation: str | None = None  # learned, or a random one
    data: Sequence[Path] = ()  # runs in which the uncertainty model has seen its actions
    train_after: int | None = None  # 0 starts no trainer
    guard: str | None = None  # on or off
    wait_for_model: bool = True  # with a trainer: no episode between `train_after` and its first model
    topics: Sequence[str] = ()  # further ones to record along
    plant: str = SIMULATOR  # SIMULATOR, or HARDWARE for a plant node that somebody else starts
    namespace: str = "lift"
    page: bool = False  # serve the operator's page
    page_address: str = DEFAULT_ADDRESS
    parameters: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)  # by executable; these win
    token: str = field(default_factory=lambda: secrets.token_hex(4))  # tells this graph from all others


@dataclass(frozen=True)
class NodeEntry:
    """One row: an executable of this package, its parameters, and what its end means for the graph."""

    executable: str
    parameters: Mapping[str, Value]
    ends_graph: bool = False
    vital: bool = True  # else the graph goes on without it


def graph_nodes(options: GraphOptions) -> list[NodeEntry]:
    """Return the nodes in the order in which they start and end: what asks ends before what answers or records."""
    scenario = load_scenario(options.scenario)
    _check(options, scenario)
    plan = plan_of(options, scenario)
    if plan.model is not None:
        require_libraries(["augmentor"])
        load_fitting_model(
            plan.model, scenario.name, scenario.limits, shown=scenario.model_sight
        )  # refuses what the augmentor would refuse
    given: dict[str, Value] = {"scenario": options.scenario}
    run = str(options.run.resolve())
    seed = int(options.parameters.get("arbiter", {}).get("seed", options.seed))
    rows = {"arbiter": given | _arbiter(options, scenario, plan, run)}
    if plan.mode is not Mode.EVALUATE:
        rows["logging_policy"] = given
        _check_routine(options, scenario)
    if plan.has_augmentor or "augmentor" in options.parameters:
        rows["augmentor"] = given | _augmentor(plan, run) | {"model_folders": _model_folder(options)}
    if options.plant == SIMULATOR:
        rows[plant_node_of(scenario)] = given | ({"move_limit": scenario.make_rig().patience} if scenario.rig else {})
    if plan.trains:
        rows["trainer"] = given | {"run": run, "train_after": plan.train_after, "seed": seed}
    facts = plan.facts(scenario, seed=seed, made_by="graph")
    facts["policy"] = options.parameters.get("logging_policy", {}).get("policy") or facts["policy"]
    rows["recorder"] = {"run": run, "facts": json.dumps(facts), "topics": " ".join(options.topics)}
    if options.page:
        shown: dict[str, Value] = {"run": run, "address": options.page_address, "model_folders": _model_folder(options)}
        rows[PAGE] = given | shown
    mark: dict[str, Value] = {"graph": options.token}
    require_libraries(rows)
    by_hand = options.parameters
    return [
        NodeEntry(name, {**row, **mark, **by_hand.get(name, {})}, ends_graph=name == "arbiter", vital=name != PAGE)
        for name, row in rows.items()
    ]


def plan_of(options: GraphOptions, scenario: Scenario) -> CollectionPlan:
    """Return how the graph collects; parameters that are set by hand count as what the user decided."""
    arbiter, augmentor, trainer = (options.parameters.get(name, {}) for name in ("arbiter", "augmentor", "trainer"))
    model = augmentor.get("model") or options.model
    wishes = {"mode": options.mode, "episodes": options.episodes, "p": options.p, "budget": None}
    return CollectionPlan.make(
        scenario,
        **{name: arbiter.get(name, value) for name, value in wishes.items()},  # type: ignore[arg-type]
        assist=_without_prefix(arbiter, ASSIST_OF_ARBITER) | _without_prefix(augmentor, ASSIST_OF_AUGMENTOR),
        guard=_guard(options, arbiter),
        hardware=moves_hardware(options, scenario),
        augmentation=str(augmentor.get("policy") or options.augmentation or "") or None,
        model=Path(str(model)) if model else None,
        data=options.data,
        train_after=trainer.get("train_after", options.train_after),  # type: ignore[arg-type]
    )


def _guard(options: GraphOptions, arbiter: Mapping[str, Value]) -> dict[str, Value]:
    """Return the settings of the guard that the user decides."""
    given = {name: arbiter[f"guard_{name}"] for name in GUARD_KEYS if f"guard_{name}" in arbiter}
    return given if options.guard is None else {"enabled": options.guard == ON, **given}


def describe_graph(options: GraphOptions) -> str:
    """Return in one line who will act in which episodes."""
    return plan_of(options, load_scenario(options.scenario)).describe()


def topic_names(text: str) -> list[str]:
    """Return the topics that a parameter lists, separated by commas or blanks."""
    return text.replace(",", " ").split()


def moves_hardware(options: GraphOptions, scenario: Scenario) -> bool:
    """Whether something real moves, whoever starts its node."""
    return options.plant == HARDWARE or scenario.is_real


def plant_node_of(scenario: Scenario) -> str:
    """Return the executable that is, or simulates, the scenario's plant."""
    if scenario.rig:
        return RIG
    return "fetch_simulator" if scenario.plant.kind.startswith("fetch") else "positioning_simulator"


def _check(options: GraphOptions, scenario: Scenario) -> None:
    if options.plant not in (SIMULATOR, HARDWARE):
        raise UserError(f"plant is {options.plant!r}; allowed: {SIMULATOR}, or {HARDWARE} for a plant node of your own")
    if scenario.is_real and not scenario.rig and options.plant == SIMULATOR:
        raise UserError(
            f"scenario {scenario.name} describes hardware, which has no simulator; start your plant node and choose "
            "plant hardware (lift run --plant hardware), or add a section rig to the scenario"
        )
    if options.augmentation not in (None, *AUGMENTATION_NAMES):
        raise UserError(f"augmentation is {options.augmentation!r}; allowed: {', '.join(AUGMENTATION_NAMES)}")
    if options.guard not in (None, ON, OFF):
        raise UserError(f"guard is {options.guard!r}; allowed: {ON}, {OFF}")
    check_namespace(options.namespace)
    Address.parse(options.page_address)
    if not is_routine(scenario.logging_policy.name):
        scenario.make_logging_policy()  # refuses a plant of sizes that it cannot work with; a routine may open devices
    if scenario.rig and options.plant == SIMULATOR:
        scenario.make_rig().make_devices()  # refuses devices of one's own classes that the node would not find
    for path in options.data:
        RunReader(path)  # refuses what is no run
    for executable, values in options.parameters.items():
        for name, value in values.items():
            parameter = find(PARAMETERS.get(executable, ()), name)
            if parameter is None:
                raise UserError(f"{executable} has no parameter {name}; see lift_{executable} --help")
            parameter.check(value)
    _check_shared(options)
    check_continuation(options.run, scenario)


def check_namespace(namespace: str) -> None:
    """Refuse what ROS would not take as a namespace."""
    if not all(map(_NAME.fullmatch, namespace.strip("/").split("/"))):
        raise UserError(
            f"namespace is {namespace!r}; allowed: letters, digits and _, not beginning with a digit, with / between "
            "names"
        )


def _check_shared(options: GraphOptions) -> None:
    """Refuse to give one node another scenario or run than the others: the run's facts would be untrue."""
    shared = {"scenario": ("--scenario", options.scenario), "run": ("--out", str(options.run.resolve()))}
    for executable, values in options.parameters.items():
        for name, (option, wanted) in shared.items():
            if values.get(name, wanted) != wanted:
                raise UserError(
                    f"parameter {name} of {executable} is {values[name]!r}, but the graph has {wanted!r}: choose one "
                    f"for all nodes with {option}"
                )


def _check_routine(options: GraphOptions, scenario: Scenario) -> None:
    """Refuse a routine that the logging policy would not find, unless another one is set by hand."""
    name = scenario.logging_policy.name
    if is_routine(name) and "policy" not in options.parameters.get("logging_policy", {}):
        find_own(name, "routine")


def _arbiter(options: GraphOptions, scenario: Scenario, plan: CollectionPlan, run: str) -> dict[str, Value]:
    parameters: dict[str, Value] = {
        "mode": plan.mode.name.lower(),
        "episodes": plan.episodes,
        "p": plan.p,
        "seed": options.seed,
        "budget": plan.budget,
        "exit_when_done": True,
    }
    if plan.mode is Mode.ASSIST:
        parameters |= _with_prefix(plan, ASSIST_OF_ARBITER)
    parameters["guard_enabled"] = plan.is_guarded
    if plan.is_guarded:
        parameters |= {f"guard_{name}": getattr(plan.guard, name) for name in GUARD_KEYS}
        parameters |= {"run": run, "model": plan.model_hash}
    if plan.model is not None or (plan.is_random and not plan.train_after):
        parameters["model_from"] = 0
    elif plan.train_after and options.wait_for_model:
        parameters["model_from"] = plan.train_after
    if scenario.rig:
        parameters |= {**RIG_DEADLINES, "plant_deadline": scenario.make_rig().patience}
    elif not moves_hardware(options, scenario):
        parameters.update(PATIENT_DEADLINES)
    return parameters


def _augmentor(plan: CollectionPlan, run: str) -> dict[str, Value]:
    if plan.model is not None:
        watched = _with_prefix(plan, ASSIST_OF_AUGMENTOR) if plan.mode is Mode.ASSIST else {}
        return {"model": str(plan.model.resolve()), **watched}
    if plan.augmentation != UNCERTAINTY:
        return {"policy": plan.augmentation} if plan.is_random else {}
    data = [str(path.resolve()) for path in plan.data] or [run]
    return {"policy": UNCERTAINTY, "data": os.pathsep.join(data), "data_episodes": plan.train_after}


def _model_folder(options: GraphOptions) -> str:
    """Return where the graph's trainer writes models, the only ones that its augmentor takes."""
    by_hand = options.parameters.get("trainer", {}).get("models")
    return str(Path(str(by_hand)).resolve() if by_hand else default_model_folder(options.run.resolve()))


def _with_prefix(plan: CollectionPlan, names: Sequence[str]) -> dict[str, Value]:
    """Return settings of mode assist under the names of the parameters that carry them."""
    return {f"assist_{name}": getattr(plan.assist, name) for name in names}


def _without_prefix(given: Mapping[str, Value], names: Sequence[str]) -> dict[str, Value]:
    """Return the settings of mode assist that parameters decide."""
    return {name: given[f"assist_{name}"] for name in names if f"assist_{name}" in given}
