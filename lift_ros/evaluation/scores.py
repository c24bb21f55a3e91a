"""Scores of datasets: trajectory quality TQ and state–action coverage SACo, for runs that are compared with each other.

TQ is the mean return, scaled so that 0 is a lowest and 1 a highest reference. SACo is the number of distinct
state–action pairs divided by that of a reference run; states and actions are continuous here and count as distinct when
they lie in different cells of a grid that all compared runs share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.evaluation.paths import positions

DEFAULT_BINS = 10
LARGEST_BINS = 1000


@dataclass(frozen=True, slots=True)
class ReturnRange:
    """Mean returns that count as trajectory quality 0 and 1."""

    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of one run among those it is compared with; NaN where rewards or references are unknown."""

    mean_return: float
    trajectory_quality: float
    pairs: int  # distinct state-action cells
    coverage: float  # SACo: pairs of this run per pair of the reference run
    states: int  # distinct state cells
    exploration: float  # states of this run per state of the reference run


def mean_return(episodes: Sequence[Episode]) -> float:
    """Average undiscounted return of the episodes where it is known; NaN without any."""
    returns = [episode.episode_return for episode in episodes if math.isfinite(episode.episode_return)]
    return float(np.mean(returns)) if returns else math.nan


def trajectory_quality(average: float, references: ReturnRange) -> float:
    """Scale a mean return to its references: 0 at the lowest, 1 at the highest."""
    span = references.highest - references.lowest
    if span <= 0:
        raise UserError(
            f"the highest return {references.highest:g} must lie above the lowest {references.lowest:g}; "
            "check --highest-return and --lowest-return"
        )
    return (average - references.lowest) / span


def rewarded_goal(episode: Episode) -> FloatArray | None:
    """Return the point whose negative distance after each step is the reward, as the paper's problems have it.

    That is the goal or, for rewards labelled in hindsight, the last position; None where rewards are something else.
    """
    path = positions(episode)
    rewards = [step.reward for step in episode.steps]
    for goal in (episode.goal, episode.final_position):
        fits = goal.size and goal.shape == path.shape[1:]
        if fits and np.allclose(rewards, -np.linalg.norm(path[1:] - goal, axis=1), rtol=1e-6, atol=1e-9):
            return goal
    return None


def straight_return(distance: float, radius: float) -> float:
    """Return of going straight to a goal at `distance` with actions of length `radius`: the best there can be."""
    steps = math.ceil(distance / radius) - 1  # the step after these arrives
    return -max(0.0, steps * distance - radius * steps * (steps + 1) / 2)


def _start_distances(run: Sequence[Episode]) -> list[float]:
    """Return how far from its goal each episode began; nothing where rewards are unknown or no distances."""
    known = [episode for episode in run if episode.steps and math.isfinite(episode.episode_return)]
    goals = [(episode.steps[0].position, rewarded_goal(episode)) for episode in known]
    distances = [float(np.linalg.norm(start - goal)) for start, goal in goals if goal is not None]
    return distances if len(distances) == len(known) else []


def return_ranges(runs: Sequence[Sequence[Episode]], radius: float | None = None) -> list[ReturnRange | None]:
    """Derive each run's references from where its episodes began; None where its rewards are no distances.

    Highest: straight to the goal in actions of `radius` (by default the longest action of all runs). Lowest: standing
    still for as long as the longest episode of all runs.
    """
    steps = [step for run in runs for episode in run for step in episode.steps]
    longest = max((len(episode.steps) for run in runs for episode in run), default=0)
    if radius is None:
        radius = max((float(np.linalg.norm(step.action)) for step in steps), default=0.0)
    ranges: list[ReturnRange | None] = []
    for run in runs:
        starts = _start_distances(run)
        if not starts or max(starts) == 0 or radius <= 0:
            ranges.append(None)
            continue
        highest = float(np.mean([straight_return(start, radius) for start in starts]))
        ranges.append(ReturnRange(-longest * float(np.mean(starts)), highest))
    return ranges


def state_actions(episodes: Sequence[Episode]) -> tuple[FloatArray, FloatArray]:
    """Return the states and actions of all steps; a state is the observation, or the position where there is none."""
    steps = [step for episode in episodes for step in episode.steps]
    if not steps:
        return np.empty((0, 0)), np.empty((0, 0))
    states = [step.observation if step.observation.size else step.position for step in steps]
    if len({state.size for state in states}) > 1 or len({step.action.size for step in steps}) > 1:
        raise UserError("a run mixes observations or actions of different sizes; inspect its episodes one by one")
    return np.vstack(states), np.vstack([step.action for step in steps])


def count_cells(values: FloatArray, low: FloatArray, high: FloatArray, bins: int) -> int:
    """Count the cells of a grid between `low` and `high` that hold at least one row of `values`."""
    if values.size == 0:
        return 0
    width = np.where(high > low, high - low, 1.0)
    cells = np.clip(((values - low) / width * bins).astype(np.int64), 0, bins - 1).astype(np.uint16)
    rows = np.ascontiguousarray(cells).view(np.dtype((np.void, cells.dtype.itemsize * cells.shape[1])))
    return int(np.unique(rows).size)


def score_runs(
    runs: Sequence[Sequence[Episode]],
    *,
    reference: int = 0,
    references: ReturnRange | None = None,
    radius: float | None = None,
    bins: int = DEFAULT_BINS,
) -> list[Scores]:
    """Score runs against each other; `reference` is the run whose coverage counts as 1."""
    if not 1 <= bins <= LARGEST_BINS:
        raise UserError(f"--bins {bins} must lie between 1 and {LARGEST_BINS}")
    runs_of_pairs = [state_actions(run) for run in runs]
    for part in zip(*runs_of_pairs, strict=True):
        sizes = sorted({values.shape[1] for values in part if values.size})
        if len(sizes) > 1:
            raise UserError(f"runs of different sizes ({sizes}) cannot be compared; inspect them one by one")
    tables = [np.hstack(pairs) for pairs in runs_of_pairs]
    everything = np.vstack([table for table in tables if table.size] or [np.zeros((1, 1))])
    low, high = everything.min(axis=0), everything.max(axis=0)
    width = max(states.shape[1] for states, _ in runs_of_pairs)
    pairs = [count_cells(table, low, high, bins) for table in tables]
    states = [count_cells(table[:, :width], low[:width], high[:width], bins) for table in tables]
    averages = [mean_return(run) for run in runs]
    ranges = return_ranges(runs, radius) if references is None else [references] * len(runs)
    return [
        Scores(
            mean_return=averages[number],
            trajectory_quality=math.nan if limits is None else trajectory_quality(averages[number], limits),
            pairs=pairs[number],
            coverage=pairs[number] / (pairs[reference] or math.nan),
            states=states[number],
            exploration=states[number] / (states[reference] or math.nan),
        )
        for number, limits in enumerate(ranges)
    ]
