"""The positioning problem as a gymnasium environment, registered when this is imported.

`gymnasium.make("lift_ros.positioning.environment:lift/Positioning-v0")` imports it by itself.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning.distortions import Distortion, make_distortion
from lift_ros.positioning.dynamics import HIGH, LOW, Beginning, Dynamics, ObservationKind
from lift_ros.positioning.simulated import SimulatedPositioning

Info = dict[str, Any]

ENVIRONMENT_ID = "lift/Positioning-v0"

if ENVIRONMENT_ID not in gymnasium.registry:
    gymnasium.register(ENVIRONMENT_ID, entry_point=f"{__name__}:ActivePositioning")

SEED_LIMIT = 2**63


class ActivePositioning(gymnasium.Env[FloatArray, FloatArray]):
    """Move from a random position to s_W within a threshold, under a distortion that is fixed per episode.

    The action space is the box around the ball of radius λ; a longer action is shortened onto the ball. `info` carries
    position, goal s_W, context W and distance.
    """

    def __init__(
        self,
        distortion: str | Distortion = "blend",
        dim: int = 2,
        sigma: float | None = None,
        action_radius: float = 0.3,
        threshold: float = 0.02,
        step_limit: int = 1000,
        observation: ObservationKind = "position",
        goal: tuple[float, ...] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None:
            raise UserError(f"lift/Positioning-v0 has no images: leave out render_mode={render_mode!r}")
        if isinstance(distortion, str):
            distortion = make_distortion(distortion, dim, sigma=sigma)
        dynamics = Dynamics(distortion, action_radius, threshold, step_limit, observation, goal)
        self._problem = SimulatedPositioning(dynamics)
        self.metadata = {"render_modes": []}
        self.render_mode = None
        size = distortion.dim
        reach = (LOW, HIGH) if observation == "position" else (LOW - HIGH, HIGH - LOW)
        self.observation_space = gymnasium.spaces.Box(*reach, (size,), np.float64)
        self.action_space = gymnasium.spaces.Box(-action_radius, action_radius, (size,), np.float64)
        self._threshold, self._step_limit = threshold, step_limit
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[FloatArray, Info]:
        """Begin the episode of this seed, or the next one of the environment's own stream."""
        super().reset(seed=seed)
        self._steps = 0
        observed = self._problem.reset(int(self.np_random.integers(SEED_LIMIT)) if seed is None else seed)
        assert self._problem.start is not None
        return observed.values, self._info(self._problem.start)

    def step(self, action: FloatArray) -> tuple[FloatArray, float, bool, bool, Info]:
        """Apply one action."""
        problem = self._problem
        start = problem.advance(action)
        self._steps += 1
        terminated = problem.distance <= self._threshold
        truncated = not terminated and self._steps >= self._step_limit
        return problem.observation(), -problem.distance, terminated, truncated, self._info(start)

    def _info(self, start: Beginning) -> Info:
        problem = self._problem
        return {
            "position": np.array(problem.position),
            "goal": start.goal,
            "context": start.context,
            "distance": problem.distance,
        }
