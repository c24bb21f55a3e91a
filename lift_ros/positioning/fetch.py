"""Fetch as positioning problems: reach one goal, and touch an object before placing it at the goal."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning.ball import shorten
from lift_ros.positioning.fetch_arm import FetchArm
from lift_ros.positioning.offscreen import OffscreenCamera
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.positioning.problem import Bounds, Limits, Observed
from lift_ros.seeds import generator

SIZE = 3
GOAL_RANGE = 0.15  # of goals and objects around the gripper's initial position, in metres, as in gymnasium-robotics
OBJECT_CLEARANCE = 0.1  # least distance of the object from the point below the gripper
TABLE_HEIGHT = 0.425  # of an object that lies on the table; the gripper comes down to about 0.417
# The initial position of the gripper to 0.1 µm, where MuJoCo lets the arm settle; here to know limits without it.
HOME = (1.3419051, 0.7491007, 0.5347952)
_WORKSPACE_RANGE = 0.3
WORKSPACE: Bounds = (np.array(HOME) - _WORKSPACE_RANGE, np.array(HOME) + _WORKSPACE_RANGE)
# In the terms of MuJoCo's camera, in the order in which cameras are added: so close that θ is more than a pixel of 64,
# and so far that all goals are in sight. Of one camera the first tells most; two that look across each other tell where
# the goal is to 3 mm, one alone to 15 mm along its axis, and in a third of the steps the arm hides the goal from it.
VIEWS = {
    "side": {"lookat": (1.34, 0.75, 0.54), "distance": 0.6, "azimuth": 112.0, "elevation": -5.0},
    "front": {"lookat": (1.34, 0.75, 0.54), "distance": 0.6, "azimuth": 225.0, "elevation": -5.0},
}
FIELD_OF_VIEW = 60.0  # of these cameras, in degrees


class _FetchProblem(ABC):
    """What both tasks share: the arm, its limits and the images."""

    model_name: ClassVar[str]
    observation_size: ClassVar[int]

    def __init__(
        self, action_radius: float, threshold: float, step_limit: int, picture_size: int = 0, cameras: int = 1
    ) -> None:
        self.arm = FetchArm(self.model_name)
        self.limits = self.make_limits(action_radius, threshold, step_limit, picture_size, cameras)
        self.threshold = threshold
        self._camera = None
        if picture_size:
            self._camera = OffscreenCamera(self.arm.model, picture_size, list(VIEWS.values())[:cameras], FIELD_OF_VIEW)
        self._goal = np.empty(0)

    @classmethod
    def make_limits(
        cls, action_radius: float, threshold: float, step_limit: int, picture_size: int = 0, cameras: int = 1
    ) -> Limits:
        """Return what a plant with these parameters can do; a proposal may aim at all of the workspace."""
        picture = PictureFormat(picture_size, cameras * picture_size, "rgb8") if picture_size else None
        return Limits(cls.observation_size, SIZE, action_radius, step_limit, WORKSPACE, picture)

    def reset(self, seed: int) -> Observed:
        """Begin the episode that `seed` determines, whatever came before."""
        self.arm.restore()
        self._goal = self._place(generator(seed, "problem"))
        self.arm.show_goal(self._goal)
        return self._observed(first=True)

    def step(self, action: FloatArray) -> Observed:
        """Apply one action."""
        if not self._goal.size:
            raise UserError("reset(seed) the problem before its first step")
        values = np.asarray(action, dtype=np.float64)
        if values.shape != (SIZE,) or not np.isfinite(values).all():
            raise UserError(f"an action has {SIZE} finite entries, not {action!r}")
        self.arm.move(shorten(values, self.limits.action_radius))
        return self._observed()

    def close(self) -> None:
        """Give the camera's resources back."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    @abstractmethod
    def _place(self, rng: np.random.Generator) -> FloatArray:
        """Prepare a new episode and return its goal."""

    @abstractmethod
    def _look(self) -> tuple[FloatArray, float]:
        """Return what is observed, and the length of the way that is left."""

    def _draw_goal(self, rng: np.random.Generator, away_from: FloatArray) -> FloatArray:
        """Draw a goal above the table that is not reached already."""
        low = self.arm.home_position - GOAL_RANGE
        high = self.arm.home_position + GOAL_RANGE
        low[2] = TABLE_HEIGHT
        while True:
            goal = rng.uniform(low, high)
            if _length(goal - away_from) > 2 * self.threshold:
                return goal

    def _observed(self, first: bool = False) -> Observed:
        values, left = self._look()
        return Observed(
            values=values,
            position=self.arm.position(),
            goal=self._goal.copy(),
            reward=math.nan if first else -left,
            terminated=left <= self.threshold,
            image=None if self._camera is None else self._camera.image(self.arm.data),
        )


class FetchReach(_FetchProblem):
    """Move the gripper to s_W; observed is s − s_W, and the reward is −‖s − s_W‖."""

    model_name = "reach.xml"
    observation_size = SIZE

    def _place(self, rng: np.random.Generator) -> FloatArray:
        return self._draw_goal(rng, self.arm.position())

    def _look(self) -> tuple[FloatArray, float]:
        displacement = self.arm.position() - self._goal
        return displacement, _length(displacement)


class FetchTouchAndPlace(_FetchProblem):
    """Touch an object on the table with the gripper, then bring the gripper with it to s_W.

    Observed are the displacements of the gripper from the object and from s_W; the first is zero once the object was
    touched (came within θ). Gripper control is assumed perfect: the robot passes through the object until it is
    touched, and carries it from then on. The reward is minus the length of the way that is left.
    """

    model_name = "pick_and_place.xml"
    observation_size = 2 * SIZE

    def __init__(
        self, action_radius: float, threshold: float, step_limit: int, picture_size: int = 0, cameras: int = 1
    ) -> None:
        super().__init__(action_radius, threshold, step_limit, picture_size, cameras)
        self.arm.let_object_pass()
        self.touched = False  # in this episode

    def _place(self, rng: np.random.Generator) -> FloatArray:
        self.touched = False
        self.arm.put_object(self._draw_object(rng))
        return self._draw_goal(rng, self.arm.object_position())

    def _look(self) -> tuple[FloatArray, float]:
        gripper, thing = self.arm.position(), self.arm.object_position()
        to_object, to_goal = gripper - thing, gripper - self._goal
        self.touched = self.touched or _length(to_object) <= self.threshold
        if self.touched:
            self.arm.put_object(gripper)
            return np.concatenate([np.zeros(SIZE), to_goal]), _length(to_goal)
        return np.concatenate([to_object, to_goal]), _length(to_object) + _length(thing - self._goal)

    def _draw_object(self, rng: np.random.Generator) -> FloatArray:
        home = self.arm.home_position
        while True:
            offset = rng.uniform(-GOAL_RANGE, GOAL_RANGE, 2)
            if _length(offset) >= OBJECT_CLEARANCE:
                return np.array([home[0] + offset[0], home[1] + offset[1], TABLE_HEIGHT])


def _length(vector: FloatArray) -> float:
    return math.sqrt(float(np.dot(vector, vector)))
