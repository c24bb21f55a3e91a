"""What is recorded: one `Step` per command and one `Episode` per trajectory, as plain dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray, Picture

COMPRESSIONS = ("none", "zstd")  # with which runs are recorded; neither loses anything


def _empty() -> FloatArray:
    return np.empty(0)


class Source(IntEnum):
    """Who acted. The values are those of `Step.msg` and `Proposal.msg`."""

    LOGGING_POLICY = 1
    AUGMENTOR = 2


class Mode(IntEnum):
    """What the arbiter does with proposals. The values are those of `Query.msg` and `Episode.msg`."""

    COLLECT = 0
    SHADOW = 1
    EVALUATE = 2
    ASSIST = 3


class Outcome(IntEnum):
    """How an episode ended. The values are those of `Episode.msg`."""

    REACHED = 1
    STEP_LIMIT = 2
    ABORTED = 3
    RECOVERED = 4  # cut off by a crash; holds what had reached the disk


class Rejection(IntEnum):
    """Why the augmentor's proposal was not used although it was its turn, or NONE."""

    NONE = 0
    MISSING = 1
    LATE = 2
    NOT_FINITE = 3
    WRONG_SIZE = 4
    TOO_LONG = 5
    OUTSIDE_WORKSPACE = 6
    STALE = 7
    CANCELLING = 8  # in assist: its last moves undid one another
    TOO_SHORT = 9  # in assist: it hardly moves any more
    UNCOVERED = 10  # in assist: its model says that no data cover the observation
    BUDGET_USED = 11  # in assist
    LEASH = 12  # in collect: the episode takes too long, so it does not act any more


@dataclass(slots=True)
class Step:
    """One command with all that led to it; empty arrays and NaN mean unknown or not asked."""

    episode: int
    index: int
    time_ns: int
    observation: FloatArray
    action: FloatArray
    source: Source
    position: FloatArray = field(default_factory=_empty)
    reward: float = float("nan")
    logging_proposal: FloatArray = field(default_factory=_empty)
    augmentor_proposal: FloatArray = field(default_factory=_empty)
    rejection: Rejection = Rejection.NONE
    draw: float = float("nan")
    p: float = 0.0
    augmentations_left: int = 0
    model_hash: str = ""
    image: Picture | None = None  # seen with `observation`


@dataclass(slots=True)
class Episode:
    """One trajectory: its steps, how it ended and what was seen after the last step."""

    index: int
    seed: int
    mode: Mode
    outcome: Outcome
    steps: list[Step]
    final_observation: FloatArray
    reason: str = ""  # why it was aborted
    final_position: FloatArray = field(default_factory=_empty)
    final_image: Picture | None = None
    goal: FloatArray = field(default_factory=_empty)  # s_W where the plant knows it
    context: FloatArray = field(default_factory=_empty)  # W, flattened, where a simulator knows it
    start_time_ns: int = 0
    end_time_ns: int = 0

    @property
    def augmentations(self) -> int:
        """How many steps the augmentor made."""
        return sum(step.source == Source.AUGMENTOR for step in self.steps)

    @property
    def episode_return(self) -> float:
        """Undiscounted sum of rewards; NaN where a reward is unknown."""
        return float(sum(step.reward for step in self.steps))


def same(first: Any, second: Any) -> bool:
    """Whether two records agree bit for bit in every field, NaN equal to NaN."""
    match first, second:
        case np.ndarray(), np.ndarray():
            kinds_agree = first.dtype == second.dtype and first.shape == second.shape
            return kinds_agree and first.tobytes() == second.tobytes()
        case (np.ndarray(), _) | (_, np.ndarray()):
            return False
        case list(), list():
            return len(first) == len(second) and all(map(same, first, second))
        case (Step(), Step()) | (Episode(), Episode()):
            return all(same(getattr(first, name), getattr(second, name)) for name in type(first).__slots__)
        case float(), float() if first != first:
            return second != second
    return bool(first == second)
