"""Fetch as positioning problems: reach one goal, and touch an object before placing it at the goal."""

from __future__ import annotations

import math

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning.ball import shorten
from lift_ros.positioning.fetch_arm import FetchArm
from lift_ros.positioning.offscreen import OffscreenCamera
from lift_ros.positioning.problem import Bounds, Observed
from lift_ros.seeds import generator

SIZE = 3
GOAL_RANGE = 0.15  # of goals and objects around the gripper's initial position, in metres, as in gymnasium-robotics
OBJECT_CLEARANCE = 0.1  # least distance of the object from the point below the gripper
TABLE_HEIGHT = 0.425  # of an object that lies on the table; the gripper comes down to about 0.417
# The initial position of the gripper to 0.1 µm, where MuJoCo lets the arm settle; here to know limits without it.
HOME = (1.3419051, 0.7491007, 0.5347952)
_WORKSPACE_RANGE = 0.3
WORKSPACE: Bounds = (np.array(HOME) - _WORKSPACE_RANGE, np.array(HOME) + _WORKSPACE_RANGE)


class _FetchProblem:
    """What both tasks share: the arm, its limits and the images."""

    model_name: str
    observation_size: int
    action_size = SIZE

    def __init__(self, action_radius: float, threshold: float, step_limit: int, render_size: int | None = None) -> None:
        self._arm = FetchArm(self.model_name)
        self.action_radius, self.threshold, self.step_limit = action_radius, threshold, step_limit
        self.workspace = WORKSPACE  # that a proposal may aim at
        self.joint_names = self._arm.joint_names
        self._camera: OffscreenCamera | None = None
        if render_size is not None:
            self._camera = OffscreenCamera(
                self._arm.model, render_size, lookat=(1.3, 0.75, 0.55), distance=1.5, azimuth=132.0, elevation=-14.0
            )
        self._goal = np.empty(0)

    def joint_positions(self) -> FloatArray:
        """Return the angle or displacement of each joint, in the order of `joint_names`."""
        return self._arm.joint_positions()

    def close(self) -> None:
        """Give the camera's resources back."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def _move(self, action: FloatArray) -> None:
        if not self._goal.size:
            raise UserError("reset(seed) the problem before its first step")
        values = np.asarray(action, dtype=np.float64)
        if values.shape != (SIZE,) or not np.isfinite(values).all():
            raise UserError(f"an action has {SIZE} finite entries, not {action!r}")
        self._arm.move(shorten(values, self.action_radius))

    def _draw_goal(self, rng: np.random.Generator, away_from: FloatArray) -> FloatArray:
        """Draw a goal above the table that is not reached already."""
        low = self._arm.home_position - GOAL_RANGE
        high = self._arm.home_position + GOAL_RANGE
        low[2] = TABLE_HEIGHT
        while True:
            goal = rng.uniform(low, high)
            if _length(goal - away_from) > 2 * self.threshold:
                return goal

    def _observed(self, values: FloatArray, reward: float, terminated: bool) -> Observed:
        return Observed(
            values=values,
            position=self._arm.position(),
            goal=self._goal.copy(),
            reward=reward,
            terminated=terminated,
            image=None if self._camera is None else self._camera.image(self._arm.data),
        )


class FetchReach(_FetchProblem):
    """Move the gripper to s_W; observed is s − s_W, and the reward is −‖s − s_W‖."""

    model_name = "reach.xml"
    observation_size = SIZE

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines, whatever came before."""
        self._arm.restore()
        self._goal = self._draw_goal(generator(seed, "problem"), self._arm.position())
        self._arm.show_goal(self._goal)
        return self._look(first=True)

    def step(self, action: FloatArray) -> Observed:
        """Apply one action."""
        self._move(action)
        return self._look()

    def _look(self, first: bool = False) -> Observed:
        displacement = self._arm.position() - self._goal
        distance = _length(displacement)
        return self._observed(displacement, float("nan") if first else -distance, distance <= self.threshold)


class FetchTouchAndPlace(_FetchProblem):
    """Touch an object on the table with the gripper, then bring the gripper with it to s_W.

    Observed are the displacements of the gripper from the object and from s_W; the first is zero once the object was
    touched (came within θ). Gripper control is assumed perfect: the robot passes through the object until it is
    touched, and carries it from then on. The reward is minus the length of the way that is left.
    """

    model_name = "pick_and_place.xml"
    observation_size = 2 * SIZE

    def __init__(self, action_radius: float, threshold: float, step_limit: int, render_size: int | None = None) -> None:
        super().__init__(action_radius, threshold, step_limit, render_size)
        self._arm.let_object_pass()
        self.touched = False  # in this episode

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines, whatever came before."""
        rng = generator(seed, "problem")
        self._arm.restore()
        self._arm.put_object(self._draw_object(rng))
        self._goal = self._draw_goal(rng, self._arm.object_position())
        self._arm.show_goal(self._goal)
        self.touched = False
        return self._look(first=True)

    def step(self, action: FloatArray) -> Observed:
        """Apply one action; afterwards the object is where the gripper carries it."""
        self._move(action)
        gripper = self._arm.position()
        self.touched = self.touched or _length(gripper - self._arm.object_position()) <= self.threshold
        if self.touched:
            self._arm.put_object(gripper)
        return self._look()

    def _look(self, first: bool = False) -> Observed:
        gripper, thing = self._arm.position(), self._arm.object_position()
        to_object = np.zeros(SIZE) if self.touched else gripper - thing
        to_goal = gripper - self._goal
        left = _length(to_goal) if self.touched else _length(to_object) + _length(thing - self._goal)
        return self._observed(
            np.concatenate([to_object, to_goal]),
            float("nan") if first else -left,
            self.touched and _length(to_goal) <= self.threshold,
        )

    def _draw_object(self, rng: np.random.Generator) -> FloatArray:
        home = self._arm.home_position
        while True:
            offset = rng.uniform(-GOAL_RANGE, GOAL_RANGE, 2)
            if _length(offset) >= OBJECT_CLEARANCE:
                return np.array([home[0] + offset[0], home[1] + offset[1], TABLE_HEIGHT])


def _length(vector: FloatArray) -> float:
    return math.sqrt(float(np.dot(vector, vector)))
