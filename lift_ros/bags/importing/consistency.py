"""Whether imported actions are what led from one position to the next: velocities taken for increments are not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.importing.mapping import DIFFERENCE, Action
from lift_ros.collection.records import Episode

FEWEST = 5  # steps; fewer tell nothing
_FAR = 3.0  # factor from which on it is no matter of how a plant distorts its moves
_MOST = 0.75  # share of the steps in which it has to be so
_ALIKE = 0.25  # relative difference up to which a factor is taken for the rate of the commands
_STILL = 1e-9  # of the longest: shorter ones stand still


def doubts_of_actions(action: Action, episodes: Sequence[Episode], period: float) -> list[str]:
    """Return what is odd about actions beside recorded positions; `period` is the usual time between commands in s."""
    if action.meaning == DIFFERENCE:
        return []
    pairs = [_ways(episode) for episode in episodes if _can_compare(episode)]
    if not pairs:
        return []
    commanded, made = np.concatenate(pairs, axis=1)
    moving = (commanded > _STILL * commanded.max()) & (made > _STILL * made.max())
    if moving.sum() < FEWEST:
        return []
    ratios = commanded[moving] / made[moving]
    factor = float(np.median(ratios))
    same_side = np.mean(ratios > _FAR) if factor > 1 else np.mean(ratios < 1 / _FAR)
    if 1 / _FAR <= factor <= _FAR or same_side < _MOST:
        return []
    longer = f"{factor:.3g} times as long as" if factor > 1 else f"{1 / factor:.3g} times shorter than"
    return [
        f"actions are {longer} the ways between recorded positions (median of {int(moving.sum())} steps): "
        f"{_remedy(action.meaning, factor, period)}"
    ]


def _remedy(meaning: str, factor: float, period: float) -> str:
    if meaning == "increment" and abs(factor * period - 1) <= _ALIKE:
        return (
            f"that is 1/{period:.3g} s, the rate of the commands, so they are likely velocities; write "
            "`meaning: velocity` below action in the mapping, which multiplies them by the time that they hold"
        )
    if meaning == "velocity" and abs(factor / period - 1) <= _ALIKE:
        return (
            f"that is {period:.3g} s, the time between commands, so they are likely no velocities; write "
            "`meaning: increment` below action in the mapping"
        )
    return (
        "check their `meaning` in the mapping, and that actions and positions have the same unit; "
        "`action: difference_of_positions` takes them from the positions"
    )


def _can_compare(episode: Episode) -> bool:
    return bool(episode.steps) and episode.steps[0].position.shape == episode.steps[0].action.shape


def _ways(episode: Episode) -> FloatArray:
    """Return how far each step was commanded and how far it went, as two rows."""
    positions = np.stack([*(step.position for step in episode.steps), episode.final_position])
    actions = np.stack([step.action for step in episode.steps])
    return np.stack([np.linalg.norm(actions, axis=1), np.linalg.norm(np.diff(positions, axis=0), axis=1)])
