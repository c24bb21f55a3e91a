"""How a run moves, for tables and programs: the κ that shortcuts of it would use, and what that rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.collection.records import Episode
from lift_ros.console import fold, format_table
from lift_ros.shortcuts.motion import Motion, estimate_motion
from lift_ros.training.data import make_track

_FACTS = ("κ", "rests on", "episodes", "steps")
_EVIDENCE = ("best κ ≠ 0", "its error", "linear error", "noise", "better in")
NOTE = (
    "κ: a step goes M·a‖a‖^κ; 0 is linear. Errors of predicted stretches relative to how far they went, in the median "
    "episode and without what noise explains; better in: share of episodes that the best κ ≠ 0 predicts better."
)


@dataclass(frozen=True, slots=True)
class MotionSummary:
    """What one run says of its motion."""

    run: str
    motion: Motion

    def as_dict(self) -> dict[str, Any]:
        """Return everything as values for programs."""
        return {"run": self.run, **asdict(self.motion)}

    def cells(self) -> list[object]:
        """Return the row of the table."""
        motion, evidence = self.motion, self.motion.evidence
        if evidence is None:
            told = [math.nan] * len(_EVIDENCE)
        else:
            told = [evidence.best_kappa, evidence.error, evidence.linear_error, evidence.noise, evidence.better]
        return [self.run, motion.kappa, motion.source or "nothing", motion.episodes, motion.steps, *told]


def summarise_motion(run: str, episodes: Sequence[Episode]) -> MotionSummary:
    """Estimate how a run moves as training on it would."""
    arrays = episodes_to_arrays(episodes)
    return MotionSummary(run, estimate_motion(make_track(arrays) if len(arrays) else None))


def motion_table(summaries: Sequence[MotionSummary]) -> str:
    """Return the estimates as a table, and below it why each was chosen."""
    reasons = [f"{entry.run}: κ = {entry.motion.kappa:.2f}, since {entry.motion.reason}" for entry in summaries]
    table = format_table(["motion of", *_FACTS, *_EVIDENCE], [entry.cells() for entry in summaries])
    return "\n".join([table, *(fold(reason, "  ") for reason in reasons), fold(NOTE, "")])
