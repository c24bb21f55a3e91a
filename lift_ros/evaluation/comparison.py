"""A model next to the logging policy, the direct and the optimal policy on the same contexts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

import numpy as np

from lift_ros.console import format_table
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import DEFAULT_STEPS, REPORTED_STEPS, Convergence, context_seeds, converge
from lift_ros.policies.protocol import Policy
from lift_ros.scenario import OPTIMAL, Scenario
from lift_ros.seeds import derive_seed

LOGGING_POLICY = "logging policy"
DIRECT = "direct"


def comparison_table(results: Mapping[str, Convergence]) -> str:
    """Return an aligned table of success, steps to arrive and distances."""
    header = ["", "success", "steps to θ", *(f"distance at {step}" for step in REPORTED_STEPS)]
    rows = [
        [name, f"{result.success:.2f}", "{1:.0f} [{0:.0f}, {2:.0f}]".format(*result.arrival_quartiles())]
        + ["{1:.3f} [{0:.3f}, {2:.3f}]".format(*result.distance_quartiles(step)) for step in REPORTED_STEPS]
        for name, result in results.items()
    ]
    note = "median [quartiles] over contexts; inf: that share of contexts did not arrive"
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

    The logging policy may take the plant's whole step limit.
    """
    if not seeds:
        raise UserError("evaluation needs at least one seed")
    everyone = [seed for base in seeds for seed in context_seeds(base, contexts)]
    results: dict[str, Convergence] = {}
    with closing(scenario.make_problem()) as problem:
        for name, policy in {**models, **yardsticks(scenario)}.items():
            patience = problem.limits.step_limit if name == LOGGING_POLICY else steps
            results[name] = converge(scenario, policy, everyone, steps=steps, patience=patience, problem=problem)
            advance(name)
    return results


def yardsticks(scenario: Scenario) -> dict[str, Policy]:
    """Return the policies a model is compared with: those that exist for this plant."""
    policies: dict[str, Policy] = {LOGGING_POLICY: scenario.make_logging_policy()}
    if scenario.observation_size == scenario.action_size:
        policies[DIRECT] = scenario.make_policy("direct")
    if scenario.plant.kind == "positioning":
        policies[OPTIMAL] = scenario.make_policy(OPTIMAL)
    return policies


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
