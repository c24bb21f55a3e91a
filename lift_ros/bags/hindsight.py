"""Rewards for episodes that were recorded without: r_i = −‖s_{i+1} − s_W‖, once it is known where s_W was."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from lift_ros.array_types import BoolArray, FloatArray
from lift_ros.bags.arrays import EpisodeArrays, episodes_to_arrays
from lift_ros.collection.records import Episode

UNFINISHED = "did not reach their goal"
NO_POSITIONS = "have no positions to compute a reward from"


@dataclass(frozen=True)
class Labels:
    """The rewards of episodes, measured or labelled, and which episodes are which."""

    rewards: FloatArray  # [steps], NaN where they remain unknown
    labelled: BoolArray  # [episodes]
    unknown: dict[str, BoolArray]  # [episodes] that cannot be labelled, by reason


def label(arrays: EpisodeArrays) -> Labels:
    """Label the episodes that miss a reward, as a whole; measured ones stay as they are.

    s_W is the recorded goal or, where none was recorded, the last position of an episode that reached its goal.
    """
    counts = np.diff(arrays.offsets)
    missing = np.zeros(len(counts), dtype=bool)
    missing[np.repeat(np.arange(len(counts)), counts)[np.isnan(arrays.rewards)]] = True
    positioned = min(arrays.positions.shape[1], arrays.final_positions.shape[1]) > 0
    given = np.isfinite(arrays.goals).all(axis=1) & positioned
    unfinished = missing & ~given & ~arrays.terminated
    labelled = missing & ~unfinished & positioned
    rewards = arrays.rewards.copy()
    if labelled.any():
        goals = np.where(given[:, None], arrays.goals, arrays.final_positions)
        some = counts > 0
        after = np.empty_like(arrays.positions)
        after[:-1] = arrays.positions[1:]
        after[arrays.offsets[1:][some] - 1] = arrays.final_positions[some]
        rows = np.repeat(labelled, counts)
        rewards[rows] = 0.0 - np.linalg.norm((after - np.repeat(goals, counts, axis=0))[rows], axis=1)
    return Labels(rewards, labelled, {UNFINISHED: unfinished, NO_POSITIONS: missing & ~unfinished & ~labelled})


def hindsight(episodes: Iterable[Episode]) -> tuple[list[Episode], dict[str, int]]:
    """Return episodes with rewards, labelled where they were missing; count by reason who is left out without."""
    kept: list[Episode] = []
    counts: Counter[str] = Counter()
    for episode in episodes:
        if not any(math.isnan(step.reward) for step in episode.steps):
            kept.append(episode)
            continue
        labels = label(episodes_to_arrays([episode]))
        if labels.labelled.any():
            pairs = zip(episode.steps, labels.rewards.tolist(), strict=True)
            kept.append(replace(episode, steps=[replace(step, reward=reward) for step, reward in pairs]))
        else:
            counts[NO_POSITIONS if labels.unknown[NO_POSITIONS].any() else UNFINISHED] += 1
    return kept, dict(counts)
