"""How a policy converges: the distance to the goal after each step, over many fresh contexts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.policies.protocol import Policy, begin_episode, inform
from lift_ros.positioning.batched import BatchedPositioning
from lift_ros.positioning.plants import make_dynamics
from lift_ros.positioning.problem import Observed, Problem
from lift_ros.scenario import Scenario
from lift_ros.seeds import derive_seed

DEFAULT_STEPS = 50
REPORTED_STEPS = (5, 10, 30)


@runtime_checkable
class BatchPolicy(Policy, Protocol):
    """A policy without state that can answer many observations at once."""

    def act_batch(self, observations: FloatArray) -> FloatArray:
        """Return one action per row."""


def quartiles(values: FloatArray, method: Any = "linear") -> FloatArray:
    """Return lower quartile, median and upper quartile over the first axis."""
    return np.asarray(np.quantile(values, (0.25, 0.5, 0.75), axis=0, method=method))


@dataclass(frozen=True)
class Convergence:
    """Distances to the goal over steps, one row per context, and how many steps each took to arrive."""

    distances: FloatArray  # [contexts, steps + 1]; a context that has arrived stays where it is
    arrivals: FloatArray  # [contexts] steps until the goal was reached, NaN where it was not

    @property
    def success(self) -> float:
        """Share of contexts that arrived."""
        return float(np.isfinite(self.arrivals).mean())

    def distance_quartiles(self, step: int) -> list[float]:
        """Return lower quartile, median and upper quartile of the distance after `step` steps."""
        return list(quartiles(self.distances[:, min(step, self.distances.shape[1] - 1)]))

    def arrival_quartiles(self) -> list[float]:
        """Return the quartiles of the steps to arrive; infinite where that share did not arrive."""
        return list(quartiles(np.nan_to_num(self.arrivals, nan=np.inf), method="higher"))

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as JSON values; null stands for "did not arrive"."""
        names = ("q25", "median", "q75")
        arrival = [value if np.isfinite(value) else None for value in self.arrival_quartiles()]
        return {
            "contexts": len(self.arrivals),
            "success": self.success,
            "steps": dict(zip(names, arrival, strict=True)),
            "distance": {
                str(step): dict(zip(names, self.distance_quartiles(step), strict=True)) for step in REPORTED_STEPS
            },
        }


def context_seeds(seed: int, contexts: int) -> list[int]:
    """Return the seeds of evaluation contexts; no recorded run uses them."""
    if contexts < 1:
        raise UserError(f"the number of contexts is {contexts}, but must be at least 1")
    return [derive_seed(seed, "evaluation", index) for index in range(contexts)]


def converge(
    scenario: Scenario,
    policy: Policy,
    seeds: Sequence[int],
    *,
    steps: int = DEFAULT_STEPS,
    patience: int | None = None,
    problem: Problem | None = None,
) -> Convergence:
    """Let `policy` act alone in one context per seed and measure the distances of the first `steps` steps.

    It may go on to arrive for `patience` steps in all (default: `steps`). Policies that answer in batches are
    evaluated in all contexts at once where the plant allows it. `problem` saves building a plant that is slow to build.
    """
    if steps < 1:
        raise UserError(f"the number of steps is {steps}, but must be at least 1")
    patience = steps if patience is None else max(steps, patience)
    if isinstance(policy, BatchPolicy) and scenario.plant.kind == "positioning":
        return _converge_batched(scenario, policy, seeds, steps, patience)
    with closing(scenario.make_problem()) if problem is None else nullcontext(problem) as plant:
        return _converge_one_by_one(plant, policy, seeds, steps, patience)


def _converge_batched(
    scenario: Scenario, policy: BatchPolicy, seeds: Sequence[int], steps: int, patience: int
) -> Convergence:
    batch = BatchedPositioning(make_dynamics(scenario.plant.parameters))
    observations = batch.reset(seeds)
    distances = np.empty((len(seeds), steps + 1))
    distances[:, 0] = batch.distances
    for step in range(1, patience + 1):
        observations = batch.step(policy.act_batch(observations)).observations
        if step <= steps:
            distances[:, step] = batch.distances
        if batch.reached.all():
            distances[:, step + 1 :] = batch.distances[:, None]
            break
    arrivals = np.where(batch.reached, batch.steps, np.nan)
    return Convergence(distances, arrivals)


def _converge_one_by_one(
    problem: Problem, policy: Policy, seeds: Sequence[int], steps: int, patience: int
) -> Convergence:
    distances = np.empty((len(seeds), steps + 1))
    arrivals = np.full(len(seeds), np.nan)
    for row, seed in enumerate(seeds):
        observed = problem.reset(seed)
        begin_episode(policy, seed)
        inform(policy, observed)
        distances[row, 0] = _distance(observed)
        for step in range(1, patience + 1):
            observed = problem.step(policy.act(observed.values))
            if step <= steps:
                distances[row, step:] = _distance(observed)
            if observed.terminated:
                arrivals[row] = step
                break
    return Convergence(distances, arrivals)


def _distance(observed: Observed) -> float:
    if np.isfinite(observed.reward):
        return -observed.reward
    if observed.goal.size and observed.goal.shape == observed.position.shape:
        return float(np.linalg.norm(observed.position - observed.goal))
    raise UserError("the plant tells neither reward nor goal, so that no distance can be measured; use a simulator")
