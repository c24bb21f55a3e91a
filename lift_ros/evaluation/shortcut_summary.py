"""What shortcuts a run holds: how many Algorithm 1 takes, by length and by C, and what the theory says of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags.contents import seen_part
from lift_ros.collection.records import Episode, Outcome, Source
from lift_ros.console import attribute_table, format_table
from lift_ros.errors import UserError
from lift_ros.evaluation.paths import distances, evenly, positions
from lift_ros.progress import Progress
from lift_ros.shortcuts import theory
from lift_ros.training.options import TrainingOptions

EPISODE_LIMIT = 30  # more would take long and tell little more
STEP_LIMIT = 2000  # all pairs of longer episodes would not fit into memory
LONGEST = 200  # starts and lengths of the heatmap
QUANTILE = 0.95  # the largest of all pairs would tell of the one where the plant hardly moved
SHOWN_LENGTHS = (2, 5, 10, 20, 50, 100)

_COLUMNS = (
    "run, episodes, gamma as γ, C, shortcuts, guaranteed, L_f, L_V, C_theorem as C of Theorem 3.6, contracting, "
    "improving"
)


@dataclass(frozen=True, slots=True)
class ShortcutSummary:
    """What a run's table of shortcuts says; NaN where positions are unknown."""

    run: str
    episodes: int  # that were looked at
    gamma: float
    C: float
    action_radius: float
    shortcuts: float  # share of all pairs that Algorithm 1 takes
    guaranteed: float  # share of these that Theorem 3.6 guarantees, given L_f and L_V
    L_f: float  # the largest of all episodes
    L_V: float
    C_theorem: float  # with which Algorithm 1 would take only what Theorem 3.6 guarantees
    contracting: float  # share of pairs of logged steps that do not move apart
    improving: float  # share of logged steps that come closer to the goal
    by_length: list[float]  # share of pairs of length 0, 1, 2, … that Algorithm 1 takes


def summarise_shortcuts(
    run: str, episodes: Sequence[Episode], facts: dict[str, Any], action_radius: float | None, *, progress: bool = False
) -> tuple[ShortcutSummary, FloatArray] | None:
    """Look at episodes whose rewards are known and return their summary and the C-heatmap; None without any.

    Element [k, i] of the heatmap is the largest C that admits a shortcut from i to i+k, averaged over the episodes that
    hold the pair inside the action ball. NaN stands where none does, and for k < 2, which every C admits.
    """
    usable = [part for part in map(seen_part, episodes) if 2 <= len(part.steps) <= STEP_LIMIT]
    shown = evenly([episode for episode in usable if math.isfinite(episode.episode_return)], EPISODE_LIMIT)
    if not shown:
        return None
    gamma, constant = shortcut_settings(facts)
    radius = action_radius or max(float(np.linalg.norm(step.action)) for episode in shown for step in episode.steps)
    constants, counts = [], np.zeros(4)
    pairs = _Pairs()
    with Progress(len(shown), "shortcuts", unit="episodes", enabled=progress) as bar:
        for episode in shown:
            estimate, shares = _estimate(episode, gamma)
            constants.append(estimate)
            counts += shares
            pairs.add(_largest(episode, gamma, radius), constant, estimate[-1])
            bar.advance()
    taken, longest = pairs.taken.sum(), np.flatnonzero(pairs.all)[-1] + 1
    placement, lipschitz, theorem = np.fmax.reduce(constants).tolist()
    summary = ShortcutSummary(
        run=run,
        episodes=len(shown),
        gamma=gamma,
        C=constant,
        action_radius=radius,
        shortcuts=_share(taken, pairs.all.sum()),
        guaranteed=math.nan if math.isnan(theorem) else _share(pairs.guaranteed.sum(), taken),
        L_f=placement,
        L_V=lipschitz,
        C_theorem=theorem,
        contracting=_share(*counts[:2]),
        improving=_share(*counts[2:]),
        by_length=list(map(_share, pairs.taken[:longest], pairs.all[:longest])),
    )
    return summary, pairs.heatmap()


def shortcut_table(summaries: Sequence[ShortcutSummary]) -> str:
    """Return the constants of the theory, and below them which share of pairs of some lengths are shortcuts."""
    header = ["shortcuts of length", *map(str, SHOWN_LENGTHS)]
    rows = [
        [entry.run, *(dict(enumerate(entry.by_length)).get(k, math.nan) for k in SHOWN_LENGTHS)] for entry in summaries
    ]
    return f"{attribute_table(_COLUMNS, summaries)}\n\n{format_table(header, rows)}"


def _estimate(episode: Episode, gamma: float) -> tuple[list[float], list[int]]:
    """Return what one episode says of L_f, L_V and C, NaN where it says nothing, and four counts.

    These are pairs of logged steps that contract, all such pairs, logged steps that improve, and all of them.
    """
    logged = np.array([step.source is Source.LOGGING_POLICY for step in episode.steps])
    change = np.diff(distances(episode))[logged]
    improving = int((change < 0).sum()), int(np.isfinite(change).sum())
    path = positions(episode)
    if not len(path):
        return [math.nan] * 3, [0, 0, *improving]
    counts = [*theory.contracting_pairs(path, logged), *improving]
    actions, rewards = [step.action for step in episode.steps], [step.reward for step in episode.steps]
    try:
        placement = theory.placement_constant(path, actions, QUANTILE)
        lipschitz = theory.lipschitz_constant(path, rewards, gamma, QUANTILE)
    except UserError:  # it hardly moves
        return [math.nan] * 3, counts
    return [placement, lipschitz, theory.theorem_constant(gamma, placement, lipschitz)], counts


class _Pairs:
    """Pairs by their length, and the heatmap, collected episode by episode."""

    def __init__(self) -> None:
        self.all, self.taken, self.guaranteed = np.zeros((3, STEP_LIMIT + 1), dtype=np.int64)
        self._total, self._count = np.zeros((2, LONGEST + 1, LONGEST + 1))

    def add(self, largest: FloatArray, constant: float, theorem: float) -> None:
        last = int(np.isposinf(np.diagonal(largest, 1)).sum())  # the state to which the longest shortcut may lead
        self.all[1 : last + 1] += np.arange(last, 0, -1)
        for counts, limit in ((self.taken, constant), (self.guaranteed, theorem)):
            start, stop = np.nonzero(largest >= limit)
            counts += np.bincount(stop - start, minlength=len(counts))
        start, stop = np.nonzero(np.isfinite(largest))
        kept = (start <= LONGEST) & (stop - start <= LONGEST)
        start, length = start[kept], (stop - start)[kept]
        self._total[length, start] += largest[start, start + length]
        self._count[length, start] += 1

    def heatmap(self) -> FloatArray:
        empty = np.full_like(self._total, np.nan)
        return np.asarray(np.divide(self._total, self._count, out=empty, where=self._count > 0))


def _largest(episode: Episode, gamma: float, radius: float) -> FloatArray:
    actions, rewards = [step.action for step in episode.steps], [step.reward for step in episode.steps]
    over = episode.outcome is Outcome.REACHED
    return theory.largest_constants(np.array(actions), rewards, gamma=gamma, terminated=over, action_radius=radius)


def shortcut_settings(facts: dict[str, Any]) -> tuple[float, float]:
    """Return γ and C as training on this run would take them."""
    training = (facts.get("parameters") or {}).get("training") or {}
    given = {key: value for key, value in training.items() if value is not None}
    defaults = TrainingOptions()
    return float(given.get("gamma", defaults.gamma)), float(given.get("C", defaults.C))


def _share(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else math.nan
