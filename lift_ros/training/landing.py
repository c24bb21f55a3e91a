"""The last step of an episode, lengthened to the goal itself.

A plant has arrived within θ of its goal, and a routine with small steps ends where it enters that ball. Whoever
imitates it aims at the border, where every error decides. Where the goal is recorded, the last step is taken to have
gone there: any end within θ would have ended the episode as well.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.arrays import EpisodeArrays
from lift_ros.policies.sight import Sight
from lift_ros.shortcuts.rule import PLAIN
from lift_ros.training.data import TrainingData, make_data
from lift_ros.training.options import TrainingOptions

_LEAST_GAIN = 0.05  # of movement per action, below which nothing is known of how far a step goes


def training_data(arrays: EpisodeArrays, options: TrainingOptions, sight: Sight) -> TrainingData:
    """Return episodes as the data of a training with these options."""
    if options.landing and options.strategy != PLAIN:
        arrays = replace(arrays, actions=landed(arrays))
    return make_data(arrays, options.reward, sight)


def landed(arrays: EpisodeArrays) -> FloatArray:
    """Return the actions, with last steps of arrived episodes that lead to their recorded goals."""
    actions = arrays.actions.copy()
    if min(arrays.positions.shape[1], arrays.final_positions.shape[1], arrays.goals.shape[1]) != actions.shape[1]:
        return actions
    first, last = arrays.offsets[:-1], arrays.offsets[1:] - 1
    moved = arrays.final_positions - arrays.positions[first]
    wanted = np.add.reduceat(actions, first, axis=0)
    known = np.isfinite(moved).all(axis=1)
    gain = float(np.sum(moved[known] * wanted[known]) / max(np.sum(np.square(wanted[known])), 1e-300))
    if gain < _LEAST_GAIN:
        return actions
    missed = arrays.goals - arrays.final_positions
    usable = arrays.terminated & np.isfinite(missed).all(axis=1)
    actions[last[usable]] += missed[usable] / gain
    return actions
