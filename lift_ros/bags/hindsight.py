"""Rewards for episodes that were recorded without: once the goal was reached, it is known where it was."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lift_ros.collection.records import Episode, Outcome

UNFINISHED = "did not reach their goal"
KEPT = "did not reach their goal and stay without reward"
NO_POSITIONS = "have no positions to compute a reward from"


def hindsight(episodes: Iterable[Episode], keep_unfinished: bool = False) -> tuple[list[Episode], dict[str, int]]:
    """Label r_i = −‖s_{i+1} − s_W‖ with s_W the last position, and count what could not be labelled, by reason.

    Episodes with a measured reward stay as they are. Those that did not reach their goal have no s_W: they are left
    out, or kept as they are with `keep_unfinished`.
    """
    kept: list[Episode] = []
    counts: Counter[str] = Counter()
    for episode in episodes:
        if not any(math.isnan(step.reward) for step in episode.steps):
            kept.append(episode)
        elif episode.outcome != Outcome.REACHED:
            counts[KEPT if keep_unfinished else UNFINISHED] += 1
            if keep_unfinished:
                kept.append(episode)
        elif not episode.final_position.size:
            counts[NO_POSITIONS] += 1
        else:
            kept.append(_labelled(episode))
    return kept, dict(counts)


def _labelled(episode: Episode) -> Episode:
    goal = episode.final_position
    after = [*(step.position for step in episode.steps[1:]), goal]
    rewards = [0.0 - float(np.linalg.norm(position - goal)) for position in after]
    steps = [replace(step, reward=reward) for step, reward in zip(episode.steps, rewards, strict=True)]
    return replace(episode, steps=steps)
