"""Cells that need no training: where routines go, what their value functions look like, which C admits shortcuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Outcome
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import context_seeds
from lift_ros.policies.protocol import Policy, begin_episode
from lift_ros.positioning.plants import make_dynamics
from lift_ros.positioning.simulated import SimulatedPositioning
from lift_ros.scenario import Scenario
from lift_ros.seeds import derive_seed
from lift_ros.shortcuts.theory import largest_constants
from lift_ros.studies.recordings import Recordings, as_scenario
from lift_ros.studies.store import Store

_LONGEST = 100  # starts and lengths of the heatmap
_GRID = 31  # points along a side of a value function
_DIGITS = 4


def measure_constants(settings: Mapping[str, Any], places: Sequence[str], store: Store) -> dict[str, Any]:
    """Return which C admits a shortcut from i to i+k, on average over episodes that hold it inside the action ball."""
    recording = settings["recording"]
    radius = as_scenario(recording["scenario"]).action_radius
    total, count = np.zeros((_LONGEST + 1, _LONGEST)), np.zeros((_LONGEST + 1, _LONGEST))
    episodes = 0
    for run in Recordings(recording, store).runs():
        for episode in RunReader(run):
            actions = np.array([step.action for step in episode.steps])
            rewards = np.array([step.reward for step in episode.steps])
            largest = largest_constants(
                actions,
                rewards,
                gamma=settings["gamma"],
                terminated=episode.outcome is Outcome.REACHED,
                action_radius=radius,
            )
            episodes += 1
            for length in range(2, min(_LONGEST, len(actions)) + 1):  # every C admits the direct successor
                values = np.diagonal(largest, length)[:_LONGEST]
                known = np.isfinite(values)
                total[length, : len(values)][known] += values[known]
                count[length, : len(values)][known] += 1
    with np.errstate(invalid="ignore"):
        heatmap = total / count
    return {"episodes": episodes, "heatmap": [_listed(row) for row in heatmap]}


def measure_values(settings: Mapping[str, Any], places: Sequence[str], store: Store) -> dict[str, Any]:
    """Return the value function of the routine on a grid of positions, in one context."""
    scenario = as_scenario(settings["scenario"])
    if scenario.plant.kind != "positioning" or scenario.action_size != 2:
        raise UserError("a value function is drawn over the plane: it needs a plant of kind 'positioning' with dim 2")
    plant = SimulatedPositioning(make_dynamics(scenario.plant.parameters))
    seed = derive_seed(settings["seed"], "study")
    plant.reset(seed)
    routine = scenario.make_logging_policy()
    sides = np.linspace(-1.0, 1.0, _GRID)
    values = [
        [_return(plant, routine, np.array([x, y]), settings["gamma"], seed) for x in sides.tolist()]
        for y in sides.tolist()
    ]
    return {"sides": _listed(sides), "values": [_listed(np.array(row)) for row in values]}


def _return(plant: SimulatedPositioning, routine: Policy, start: FloatArray, gamma: float, seed: int) -> float:
    begin_episode(routine, seed)
    observation = plant.stand_at(start)
    total, discount = 0.0, 1.0
    for _ in range(plant.limits.step_limit):
        if plant.distance <= plant.dynamics.threshold:
            break
        plant.advance(routine.act(observation))
        observation = plant.observation()
        total -= discount * plant.distance
        discount *= gamma
    return total


def measure_paths(settings: Mapping[str, Any], places: Sequence[str], store: Store) -> dict[str, Any]:
    """Return where a policy goes from several starts, each in a context of its own."""
    scenario = as_scenario(settings["scenario"])
    seeds = context_seeds(derive_seed(settings["evaluation"]["seed"], "study"), settings["evaluation"]["contexts"])
    limit = min(settings["evaluation"]["steps"], scenario.limits.step_limit)
    return {"paths": [_path(scenario, settings["policy"], seed, limit) for seed in seeds]}


def _path(scenario: Scenario, name: str, seed: int, limit: int) -> list[list[float | None]]:
    policy = scenario.make_policy(name) if name != "logging policy" else scenario.make_logging_policy()
    with closing(scenario.make_problem()) as problem:
        observed = problem.reset(seed)
        begin_episode(policy, seed)
        path = [observed.position]
        while not observed.terminated and len(path) <= limit:
            observed = problem.step(policy.act(observed.values))
            path.append(observed.position)
    return [_listed(point) for point in path]


def _listed(values: FloatArray) -> list[float | None]:
    return [float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None for value in values.tolist()]
