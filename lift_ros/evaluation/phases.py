"""Splits the episodes of a run into the phases of the method: who was acting, and what became of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.collection.records import Episode, Mode, Rejection, Source
from lift_ros.evaluation.paths import distances


class Phase(Enum):
    """A phase of the method; its value is its name in tables and plots."""

    LOGGING_POLICY = "logging policy"
    SHADOW = "shadow"  # the logging policy acts alone, while the augmentor is asked and recorded
    LIFT_COLLECTION = "LIFT collection"
    ASSIST = "assist"  # the learned policy acts until it stalls, and the logging policy finishes
    LEARNED_POLICY = "learned policy"


_PHASE_OF = {Mode.SHADOW: Phase.SHADOW, Mode.ASSIST: Phase.ASSIST, Mode.EVALUATE: Phase.LEARNED_POLICY}


def phase_of(episode: Episode) -> Phase:
    """Tell the phase from the record itself, so that every run can be sorted without further notes."""
    if episode.mode != Mode.COLLECT:
        return _PHASE_OF[episode.mode]
    if any(step.model_hash for step in episode.steps) or episode.augmentations:
        return Phase.LIFT_COLLECTION
    return Phase.LOGGING_POLICY


def split_phases(episodes: Sequence[Episode]) -> dict[Phase, list[Episode]]:
    """Sort episodes by phase, in the order of the method; phases without episodes are left out."""
    sorted_episodes = {phase: [item for item in episodes if phase_of(item) == phase] for phase in Phase}
    return {phase: items for phase, items in sorted_episodes.items() if items}


def finished_by_routine(episode: Episode) -> bool:
    """Whether the logging policy made the last step."""
    return bool(episode.steps) and episode.steps[-1].source == Source.LOGGING_POLICY


def distance_quartiles(episodes: Sequence[Episode], steps: int) -> FloatArray:
    """Return quartiles (3, steps + 1) of the distance over steps; an ended episode keeps its last distance."""
    curves = [curve for episode in episodes if np.isfinite(curve := distances(episode)).any()]
    if not curves:
        return np.empty((3, 0))
    held = np.stack([curve[np.minimum(np.arange(steps + 1), curve.size - 1)] for curve in curves])
    known = np.isfinite(held).any(axis=0)  # before the first step rewards tell nothing
    found = np.full((3, steps + 1), np.nan)
    found[:, known] = np.nanquantile(held[:, known], [0.25, 0.5, 0.75], axis=0)
    return found


def augmentation_outcomes(episodes: Sequence[Episode]) -> dict[str, int]:
    """Count what became of each step's chance to be augmented: made, rejected (and why) or left to the routine."""
    counts = {"augmented": 0, "left to the routine": 0}
    for step in (step for episode in episodes for step in episode.steps):
        key = "augmented" if step.source == Source.AUGMENTOR else "left to the routine"
        if step.source != Source.AUGMENTOR and step.rejection != Rejection.NONE:
            key = f"rejected: {step.rejection.name.lower().replace('_', ' ')}"
        counts[key] = counts.get(key, 0) + 1
    return counts
