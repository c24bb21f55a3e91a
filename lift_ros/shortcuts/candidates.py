"""The candidates of one step, so that anyone can check Algorithm 1 by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.errors import UserError
from lift_ros.shortcuts.rule import Rule, make_nodes, weights


def candidates(
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    i: int,
    *,
    gamma: float = 0.99,
    C: float = 0.0,  # noqa: N803
    action_radius: float,
    terminated: bool = True,
    strategy: str = "weighted",
) -> tuple[IntArray, FloatArray]:
    """Return the j's to which a shortcut may lead from step i, ascending, and the probability of each.

    In a terminated episode of n steps j = n is the terminal state. In any other episode the state after the last step
    is part of the trajectory only where it was observed, as it is in a run: then, too, say `terminated`. Else the last
    step has no candidates and both arrays are empty.
    """
    rule = Rule(gamma, C, action_radius, strategy)
    steps = len(np.asarray(actions))
    if not 0 <= i < steps:
        raise UserError(f"i is {i}, but the episode has {steps} steps, numbered from 0 to {steps - 1}.")
    nodes = make_nodes(actions, rewards, [0, steps], [terminated], rule)
    stops = np.arange(i + 1, int(nodes.ends[0]) + 1)
    chosen = stops[nodes.admissible(np.full_like(stops, i), stops)]
    if not len(chosen):
        return chosen, np.empty(0)
    return chosen, weights(nodes.reached[chosen], strategy)
