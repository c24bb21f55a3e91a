"""How policies converge: the distance to the goal after each step over many fresh contexts, side by side in a table.

And how expert a logging policy is: the steps it takes to the goal over its initial step size l.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Outcome
from lift_ros.console import format_table
from lift_ros.errors import UserError
from lift_ros.policies.protocol import Policy, begin_episode, inform
from lift_ros.policies.sight import look, sight_of
from lift_ros.positioning.batched import BatchedPositioning
from lift_ros.positioning.plants import make_dynamics
from lift_ros.positioning.problem import Observed, Problem
from lift_ros.scenario import OPTIMAL, Scenario
from lift_ros.seeds import derive_seed

DEFAULT_STEPS = 50
MOST_CONTEXTS = 100_000
MOST_DISTANCES = 100_000_000  # of a policy, which are kept
EXPERTNESS_SIZES = (0.0125, 0.025, 0.05, 0.1)
REPORTED_STEPS = (5, 10, 30)
LOGGING_POLICY = "logging policy"
DIRECT = "direct"
SECANT = "secant"
# Plants whose observation holds displacements, of which the routine's sight shows them.
_SHOW_DISPLACEMENTS = ("positioning", "fetch_reach", "fetch_touch_and_place", "lens", "light_tunnel", "sensors")


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
    if contexts > MOST_CONTEXTS:
        raise UserError(f"the number of contexts is {contexts}, but must be at most {MOST_CONTEXTS}")
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
    if steps * len(seeds) > MOST_DISTANCES:
        raise UserError(
            f"{steps} steps in {len(seeds)} contexts are {steps * len(seeds)} distances, but must be at most "
            f"{MOST_DISTANCES}; choose fewer steps or contexts"
        )
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
    return Convergence(distances, np.where(batch.reached, batch.steps, np.nan))


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
            observed = problem.step(policy.act(look(policy, observed.values, observed.image)))
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


def comparison_table(results: Mapping[str, Convergence], unit: str = "") -> str:
    """Return an aligned table of success, steps to arrive and distances, which are lengths in `unit`."""
    header = ["", "success", "steps to θ", *(f"distance at {step}" for step in REPORTED_STEPS)]
    rows = [
        [name, f"{result.success:.2f}", "{1:.0f} [{0:.0f}, {2:.0f}]".format(*result.arrival_quartiles())]
        + ["{1:.3f} [{0:.3f}, {2:.3f}]".format(*result.distance_quartiles(step)) for step in REPORTED_STEPS]
        for name, result in results.items()
    ]
    note = "median [quartiles] over contexts; inf: that share of contexts did not arrive"
    note += f"; distances in {unit}" if unit else ""
    return f"{format_table(header, rows)}\n{note}"


def compare(
    scenario: Scenario,
    models: Mapping[str, Policy],
    *,
    contexts: int = 100,
    seeds: Sequence[int] = (0,),
    steps: int = DEFAULT_STEPS,
    advance: Callable[[str], None] = lambda name: None,
) -> dict[str, Convergence]:
    """Return who converged how on the same contexts, by name: models, then yardsticks.

    The logging policy may take the plant's whole step limit, and its distances are measured until then.
    """
    if not seeds:
        raise UserError("evaluation needs at least one seed")
    everyone = [seed for base in seeds for seed in context_seeds(base, contexts)]
    results: dict[str, Convergence] = {}
    with closing(scenario.make_problem()) as problem, closing(scenario.make_blind_problem()) as blind:
        for name, policy in {**models, **yardsticks(scenario)}.items():
            measured = max(steps, problem.limits.step_limit) if name == LOGGING_POLICY else steps
            plant = problem if sight_of(policy).image else blind
            results[name] = converge(scenario, policy, everyone, steps=measured, problem=plant)
            advance(name)
    return results


def yardsticks(scenario: Scenario) -> dict[str, Policy]:
    """Return the policies a model is compared with: those that exist for this plant."""
    policies: dict[str, Policy] = {LOGGING_POLICY: scenario.make_logging_policy()}
    if scenario.plant.kind in _SHOW_DISPLACEMENTS and not is_hidden(scenario):
        policies.update({name: scenario.make_policy(name) for name in (DIRECT, SECANT)})
    if scenario.plant.kind == "positioning":
        policies[OPTIMAL] = scenario.make_policy(OPTIMAL)
    return policies


def is_hidden(scenario: Scenario) -> bool:
    """Whether models are not shown what the routine sees: then policies that need the offset are no peers of theirs."""
    return not scenario.model_sight.shows(scenario.routine_sight, scenario.observation_size)


def make_judge(scenario: Scenario, *, contexts: int = 50, seed: int = 0) -> Callable[[Policy], dict[str, float]]:
    """Return a measure of policies for use during training, on contexts that no evaluation uses."""
    seeds = [derive_seed(seed, "evaluation during training", index) for index in range(contexts)]
    problem = scenario.make_problem()

    def judge(policy: Policy) -> dict[str, float]:
        result = converge(scenario, policy, seeds, problem=problem)
        distance = result.distance_quartiles(10)[1]
        # Among equally successful policies the quicker one counts as the better.
        score = result.success - distance / (1.0 + distance) / max(1, contexts)
        return {
            "score": score,
            "success": result.success,
            "distance_10": distance,
            "distance_30": result.distance_quartiles(30)[1],
            "mean_distance_30": float(np.mean(result.distances[:, 30])),
        }

    return judge


@dataclass(frozen=True)
class Expertness:
    """What the logging policy with initial step size `step` needs; the step counts are over all episodes."""

    step: float
    mean: float
    lower_quartile: float
    upper_quartile: float
    reached: float  # share of episodes


def measure_expertness(
    scenario: Scenario,
    steps: Sequence[float] = EXPERTNESS_SIZES,
    episodes: int = 50,
    seed: int = 0,
    *,
    progress: bool = False,
) -> list[Expertness]:
    """Run the scenario's logging policy with each initial step size, on the same starts and contexts."""
    if episodes < 1:
        raise UserError(f"the expertness curve needs at least 1 episode per step size, not {episodes}")
    results = []
    for step in steps:
        finished = collect(with_step(scenario, step), episodes=episodes, seed=seed, progress=progress)
        counts = [len(episode.steps) for episode in finished]
        reached = np.mean([episode.outcome is Outcome.REACHED for episode in finished])
        low, high = np.quantile(counts, (0.25, 0.75))
        results.append(Expertness(step, float(np.mean(counts)), float(low), float(high), float(reached)))
    return results


def with_step(scenario: Scenario, step: float) -> Scenario:
    """Return the scenario with another initial step size of its logging policy."""
    policy = scenario.logging_policy
    if "step" not in policy.arguments:
        raise UserError(
            f"logging policy {policy.name!r} of scenario {scenario.name} has no argument 'step', "
            "so there is no expertness to vary"
        )
    if not 0 < step <= scenario.action_radius:
        raise UserError(
            f"step size {step:g} must be above 0 and at most the action radius {scenario.action_radius:g} "
            f"of scenario {scenario.name}"
        )
    return replace(scenario, logging_policy=replace(policy, arguments={**policy.arguments, "step": step}))
