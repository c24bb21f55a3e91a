"""How expert a logging policy is: the steps it takes to the goal over its initial step size l."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np

from lift_ros.collection.loop import collect
from lift_ros.collection.records import Outcome
from lift_ros.errors import UserError
from lift_ros.evaluation.plots import make_figure, save_figure
from lift_ros.scenario import Scenario

DEFAULT_STEPS = (0.0125, 0.025, 0.05, 0.1)
DEFAULT_EPISODES = 50


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
    steps: Sequence[float] = DEFAULT_STEPS,
    episodes: int = DEFAULT_EPISODES,
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


def plot_expertness(path: str | Path, results: Sequence[Expertness], title: str) -> None:
    """Draw the curve of what was measured."""
    sizes, means, low, high, reached = zip(*map(astuple, results), strict=True)
    figure = make_figure(5.6, 4.0)
    axes = figure.subplots()
    axes.fill_between(sizes, low, high, alpha=0.2, linewidth=0, label="quartiles")
    axes.plot(sizes, means, marker="o", label="mean")
    for size, mean, share in zip(sizes, means, reached, strict=True):
        if share < 1:
            axes.annotate(f"{share:.0%} reached", (size, mean), fontsize=7)
    axes.set(xscale="log", yscale="log", xlabel="initial step size l", ylabel="steps per episode")
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes], minor=False)
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8)
    save_figure(figure, path)
