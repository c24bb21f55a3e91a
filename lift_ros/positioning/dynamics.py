"""The arithmetic of an active positioning problem, shared by the single and the batched simulators.

Positions stay in P = [−1, 1]^d: a movement beyond the border stops there, coordinate by coordinate. An action longer
than λ is shortened onto the ball (the paper's clip_λ), so that any sample of a box-shaped action space is legal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning.distortions import Distortion
from lift_ros.seeds import generator

ObservationKind = Literal["position", "displacement"]
OBSERVATION_KINDS: tuple[ObservationKind, ...] = ("position", "displacement")
LOW, HIGH = -1.0, 1.0
_TRIED_STARTS = 1000
_FEWEST_STARTS = 0.01  # share of all positions that are no goal already


class Beginning(NamedTuple):
    """Where an episode begins, where it has to go and under which context."""

    position: FloatArray
    goal: FloatArray
    context: FloatArray


@dataclass(frozen=True)
class Dynamics:
    """All that fixes a problem: distortion f, ball A of radius λ, threshold θ, and what is observed."""

    distortion: Distortion
    action_radius: float
    threshold: float
    step_limit: int
    observation: ObservationKind = "position"
    goal: tuple[float, ...] | None = None  # s_W of position observations; the origin unless given

    def __post_init__(self) -> None:
        if self.observation not in OBSERVATION_KINDS:
            raise UserError(f"observation must be one of {', '.join(OBSERVATION_KINDS)}, not {self.observation!r}")
        for name, value in (("action_radius", self.action_radius), ("threshold", self.threshold)):
            if not 0 < value < math.inf:
                raise UserError(f"{name} must be a finite number > 0, not {value!r}")
        if self.step_limit < 1:
            raise UserError(f"step_limit must be at least 1, not {self.step_limit!r}")
        self._check_goal()
        self._check_starts()

    def _check_goal(self) -> None:
        if self.goal is None:
            return
        if self.observation == "displacement":
            raise UserError("a fixed goal needs position observations; displacement observations draw s_W anew")
        if len(self.goal) != self.dim or not all(LOW <= value <= HIGH for value in self.goal):
            raise UserError(f"goal must have {self.dim} entries within [{LOW:g}, {HIGH:g}], not {self.goal!r}")

    def _check_starts(self) -> None:
        """Refuse a threshold within which nearly all positions lie: none would be found to begin at."""
        # A goal that is drawn anew lies in the middle at worst.
        goal = np.zeros(self.dim) if self.goal is None else np.array(self.goal)
        tried = np.random.default_rng(0).uniform(LOW, HIGH, (_TRIED_STARTS, self.dim))
        distances = self.distance(tried, goal)
        if np.mean(distances > self.threshold) < _FEWEST_STARTS:
            most = float(np.quantile(distances, 1 - _FEWEST_STARTS))
            raise UserError(
                f"threshold is {self.threshold:g}; allowed: less than {most:.2g} with this goal in {self.dim} "
                "dimensions, else episodes would begin where they have to arrive"
            )

    @property
    def dim(self) -> int:
        """Dimension d of position, action and observation."""
        return self.distortion.dim

    def start(self, seed: int) -> Beginning:
        """Draw goal, context and an initial position that is not a goal already."""
        rng = generator(seed, "problem")
        if self.observation == "displacement":
            goal = rng.uniform(LOW, HIGH, self.dim)
        else:
            goal = np.zeros(self.dim) if self.goal is None else np.array(self.goal)
        context = self.distortion.sample(rng, goal)
        while True:
            position = rng.uniform(LOW, HIGH, self.dim)
            if self.distance(position, goal) > self.threshold:
                return Beginning(position, goal, context)

    def distance(self, positions: FloatArray, goal: FloatArray) -> FloatArray:
        """Return how far positions, one or one per row, are from having arrived."""
        return np.asarray(np.sqrt(np.sum((positions - goal) ** 2, axis=-1)))
