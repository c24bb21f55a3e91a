"""Splits the episodes of a run into the phases of the method and sums each up: who was acting, and how well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source
from lift_ros.evaluation.paths import distances


class Phase(Enum):
    """A phase of the method; its value is its name in tables and plots."""

    LOGGING_POLICY = "logging policy"
    SHADOW = "shadow"  # the logging policy acts alone, while the augmentor is asked and recorded
    LIFT_COLLECTION = "LIFT collection"
    LEARNED_POLICY = "learned policy"


@dataclass(frozen=True)
class PhaseSummary:
    """What a table says of one phase."""

    phase: Phase
    episodes: int
    success: float  # share of episodes that reached the goal
    mean_steps: float
    mean_return: float  # NaN where rewards are unknown


def phase_of(episode: Episode) -> Phase:
    """Tell the phase from the record itself, so that every run can be sorted without further notes."""
    if episode.mode != Mode.COLLECT:
        return Phase.SHADOW if episode.mode == Mode.SHADOW else Phase.LEARNED_POLICY
    if any(step.model_hash for step in episode.steps) or episode.augmentations:
        return Phase.LIFT_COLLECTION
    return Phase.LOGGING_POLICY


def split_phases(episodes: Sequence[Episode]) -> dict[Phase, list[Episode]]:
    """Sort episodes by phase, in the order of the method; phases without episodes are left out."""
    sorted_episodes = {phase: [item for item in episodes if phase_of(item) == phase] for phase in Phase}
    return {phase: items for phase, items in sorted_episodes.items() if items}


def summarise(phase: Phase, episodes: Sequence[Episode]) -> PhaseSummary:
    """Sum up the episodes of one phase."""
    return PhaseSummary(
        phase=phase,
        episodes=len(episodes),
        success=float(np.mean([episode.outcome == Outcome.REACHED for episode in episodes])),
        mean_steps=float(np.mean([len(episode.steps) for episode in episodes])),
        mean_return=float(np.mean([episode.episode_return for episode in episodes])),
    )


def distance_quartiles(episodes: Sequence[Episode], steps: int) -> FloatArray:
    """Return quartiles (3, steps + 1) of the distance over steps; an ended episode keeps its last distance."""
    curves = [curve for episode in episodes if np.isfinite(curve := distances(episode)).any()]
    if not curves:
        return np.empty((3, 0))
    held = np.stack([np.concatenate([c[: steps + 1], np.full(max(0, steps + 1 - c.size), c[-1])]) for c in curves])
    return np.asarray(np.nanquantile(held, [0.25, 0.5, 0.75], axis=0), dtype=np.float64)


def augmentation_outcomes(episodes: Sequence[Episode]) -> dict[str, int]:
    """Count what became of each step's chance to be augmented: made, rejected (and why) or left to the routine."""
    counts = {"augmented": 0, "left to the routine": 0}
    for episode in episodes:
        for step in episode.steps:
            if step.source == Source.AUGMENTOR:
                key = "augmented"
            elif step.rejection != Rejection.NONE:
                key = f"rejected: {step.rejection.name.lower().replace('_', ' ')}"
            else:
                key = "left to the routine"
            counts[key] = counts.get(key, 0) + 1
    return counts
