"""Composed pictures: what an episode showed at its start, and what has changed in another one since its own.

Where all episodes begin at one place, before a camera that stands still, the difference of two pictures of an episode
is the plant that has moved, and its first picture shows the goal. So lessons show any goal with the plant at any
place, also beyond the goal, where a routine that arrives has never been.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lift_ros.array_types import BoolArray, IntArray, Picture
from lift_ros.bags.arrays import EpisodeArrays
from lift_ros.console import shown
from lift_ros.errors import UserError

_APART = 0.1  # of λ; starts that are farther apart are not one place


@dataclass(frozen=True)
class Composition:
    """Which entries of a mini-batch are composed, and of which steps."""

    entries: IntArray
    goals: IntArray  # first steps of the episodes whose goals are shown
    starts: IntArray  # first steps of the episodes in which the plant moved


class Composer:
    """Draws what is composed; of an episode that reaches several goals in turn, the way to the first one is used."""

    def __init__(self, share: float, offsets: IntArray, rows: IntArray, arrived: BoolArray) -> None:
        """Take the pieces of the training data, where each step's picture lies, and which pieces arrived."""
        self._share = share
        # Behind the last picture of an episode lies one more, which no step has seen.
        fresh = np.r_[True, rows[offsets[1:-1]] - rows[offsets[1:-1] - 1] > 1]
        usable = fresh & arrived
        lengths = np.diff(offsets)
        self._first = np.repeat(offsets[:-1], lengths)
        self._usable = np.repeat(usable, lengths)
        self._goals = offsets[:-1][usable]

    def draw(self, steps: IntArray, rng: np.random.Generator) -> Composition | None:
        """Return which of these steps of a mini-batch are shown with the goal of another episode."""
        if not self._share or not len(self._goals):
            return None
        chosen = (rng.random(len(steps)) < self._share) & self._usable[steps]
        goals = self._goals[rng.integers(0, len(self._goals), len(steps))]
        entries = np.flatnonzero(chosen)
        return Composition(entries, goals[entries], self._first[steps[entries]])


def compose(goal: Picture, moved: Picture, start: Picture) -> Picture:
    """Return pictures of the goal with what differs between the other two, in the type of all three."""
    if goal.dtype.kind == "f":
        drawn: Picture = goal + (moved - start)
        return drawn
    limits = np.iinfo(goal.dtype)
    total = goal.astype(np.int32) + moved.astype(np.int32) - start.astype(np.int32)
    return np.clip(total, limits.min, limits.max).astype(goal.dtype)


def require_one_start(arrays: EpisodeArrays, action_radius: float) -> None:
    """Refuse episodes that do not begin at one place, where recorded positions tell."""
    firsts = arrays.positions[arrays.offsets[:-1]]
    if not firsts.size or not np.isfinite(firsts).all():
        return
    apart = float(np.linalg.norm(firsts - np.median(firsts, axis=0), axis=1).max())
    if apart > _APART * action_radius:
        raise UserError(
            f"composed pictures need episodes that begin at one place, but these begin up to {shown(apart)} away from "
            f"their middle; allowed: {_APART:g} of the action radius, {shown(_APART * action_radius)}; "
            "set the option composed to 0 (scenario: training.composed, or --option composed=0)"
        )
