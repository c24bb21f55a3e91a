from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("mujoco", reason="Fetch needs mujoco and gymnasium-robotics")

from lift_ros.errors import UserError
from lift_ros.policies.coordinate_walk import CoordinateWalk
from lift_ros.policies.displacement import DirectPolicy
from lift_ros.positioning import offscreen
from lift_ros.positioning.fetch import (
    GOAL_RANGE,
    HOME,
    TABLE_HEIGHT,
    VIEWS,
    WORKSPACE,
    FetchReach,
    FetchTouchAndPlace,
)
from lift_ros.positioning.problem import Observed, Problem

Task = FetchReach | FetchTouchAndPlace
TASKS = (FetchReach, FetchTouchAndPlace)
LIMITS = {"action_radius": 0.05, "threshold": 0.02, "step_limit": 600}


@pytest.fixture(scope="module")
def reach() -> Iterator[FetchReach]:
    problem = FetchReach(**LIMITS)
    yield problem
    problem.close()


@pytest.fixture(scope="module")
def touch() -> Iterator[FetchTouchAndPlace]:
    problem = FetchTouchAndPlace(**LIMITS)
    yield problem
    problem.close()


@pytest.fixture(params=["reach", "touch"])
def task(request: pytest.FixtureRequest) -> Task:
    return request.getfixturevalue(request.param)


def record(problem: Task, seed: int, actions: npt.NDArray[np.float64]) -> list[Observed]:
    return [problem.reset(seed), *(problem.step(action) for action in actions)]


def agree(first: list[Observed], second: list[Observed]) -> bool:
    return all(
        np.array_equal(a.values, b.values) and np.array_equal(a.position, b.position) and np.array_equal(a.goal, b.goal)
        for a, b in zip(first, second, strict=True)
    )


def test_is_a_problem(task: Task) -> None:
    assert isinstance(task, Problem)
    seen = task.reset(0)
    assert seen.values.shape == (task.limits.observation_size,)
    assert (task.limits.action_size, task.limits.action_radius, task.limits.step_limit) == (3, 0.05, 600)
    low, high = WORKSPACE
    assert (low < seen.position).all() and (seen.position < high).all()
    assert (low < seen.goal).all() and (seen.goal < high).all()
    assert math.isnan(seen.reward) and not seen.terminated and seen.image is None


def test_the_workspace_lies_around_the_gripper_at_rest(task: Task) -> None:
    low, high = WORKSPACE
    assert np.allclose((low + high) / 2, task.reset(0).position, rtol=0, atol=1e-6)


def test_every_reset_is_the_same_whatever_came_before(task: Task) -> None:
    rng = np.random.default_rng(0)
    actions = rng.normal(0, 0.02, (8, 3))
    first = record(task, 3, actions)
    joints = task.arm.joint_positions()
    record(task, 4, rng.normal(0, 0.05, (15, 3)))
    assert agree(record(task, 3, actions), first)
    assert np.array_equal(task.arm.joint_positions(), joints)
    other = type(task)(**LIMITS)
    other.reset(99)
    assert agree(record(other, 3, actions), first)
    other.close()


def test_different_seeds_have_different_goals_from_the_same_pose(task: Task) -> None:
    starts = [task.reset(seed) for seed in range(5)]
    assert len({start.goal.tobytes() for start in starts}) == 5
    assert len({start.position.tobytes() for start in starts}) == 1


def test_moves_like_the_environment_of_gymnasium_robotics(reach: FetchReach) -> None:
    mujoco = pytest.importorskip("mujoco")
    environments = pytest.importorskip("gymnasium_robotics.envs.fetch.reach")
    environment = environments.MujocoFetchReachEnv(reward_type="dense")
    environment.reset(seed=0)
    reach.reset(0)
    whole = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(environment.model, whole))
    mujoco.mj_getState(reach.arm.model, reach.arm.data, state, whole)
    mujoco.mj_setState(environment.model, environment.data, state, whole)
    mujoco.mj_forward(environment.model, environment.data)
    rng = np.random.default_rng(0)
    for action in rng.uniform(-0.025, 0.025, (10, 3)):
        seen = reach.step(action)
        stock = environment.step(np.array([*(action / 0.05), 0.0]))[0]
        np.testing.assert_allclose(seen.position, stock["achieved_goal"], rtol=0, atol=1e-6)
    environment.close()


def test_reach_observes_the_displacement_and_rewards_closeness(reach: FetchReach) -> None:
    seen = reach.reset(1)
    assert np.array_equal(seen.values, seen.position - seen.goal)
    before = np.linalg.norm(seen.values)
    seen = reach.step(DirectPolicy(3, 0.05).act(seen.values))
    assert seen.reward == pytest.approx(-np.linalg.norm(seen.values))
    assert -seen.reward < before


def test_a_long_action_is_shortened(reach: FetchReach) -> None:
    reach.reset(0)
    far = reach.step(np.array([0.0, 3.0, 0.0])).position
    reach.reset(0)
    np.testing.assert_allclose(reach.step(np.array([0.0, 0.05, 0.0])).position, far, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_walk_arrives_and_the_direct_policy_is_faster(task: Task, seed: int) -> None:
    steps = {}
    for policy in (CoordinateWalk(3, 0.01), DirectPolicy(3, 0.05)):
        seen = task.reset(seed)
        count = 0
        while not seen.terminated and count < task.limits.step_limit:
            seen = task.step(policy.act(seen.values))
            count += 1
        assert seen.terminated
        assert np.linalg.norm(seen.position - seen.goal) <= task.threshold
        steps[type(policy)] = count
    assert steps[DirectPolicy] < steps[CoordinateWalk]


def test_touch_comes_before_place(touch: FetchTouchAndPlace) -> None:
    policy = DirectPolicy(3, 0.05)
    seen = touch.reset(0)
    assert seen.values[:3].any() and not touch.touched
    np.testing.assert_allclose(seen.values[3:], seen.position - seen.goal)
    left = math.inf
    while not touch.touched:
        assert not seen.terminated
        seen = touch.step(policy.act(seen.values))
        assert -seen.reward < left
        left = -seen.reward
    assert not seen.values[:3].any()
    while not seen.terminated:
        seen = touch.step(policy.act(seen.values))
        assert not seen.values[:3].any() and touch.touched
        assert -seen.reward == pytest.approx(np.linalg.norm(seen.values[3:]))
    assert touch.reset(0).values[:3].any()


def test_being_at_the_goal_without_the_object_is_not_the_end(touch: FetchTouchAndPlace) -> None:
    seen = touch.reset(0)
    to_goal = DirectPolicy(3, 0.05)
    for _ in range(30):
        seen = touch.step(to_goal.act(seen.values[3:]))
    assert np.linalg.norm(seen.values[3:]) <= touch.threshold
    assert not touch.touched and not seen.terminated


def test_joints_have_names_and_move(task: Task) -> None:
    task.reset(0)
    before = task.arm.joint_positions()
    assert len(task.arm.joint_names) == len(before) == 15
    assert "robot0:elbow_flex_joint" in task.arm.joint_names
    task.step(np.array([0.0, 0.05, 0.0]))
    assert not np.array_equal(before, task.arm.joint_positions())


def test_bad_use_says_what_is_wrong(reach: FetchReach) -> None:
    reach.reset(0)
    with pytest.raises(UserError, match="3 finite entries"):
        reach.step(np.zeros(2))
    with pytest.raises(UserError, match="3 finite entries"):
        reach.step(np.array([0.0, np.nan, 0.0]))
    fresh = FetchReach(**LIMITS)
    with pytest.raises(UserError, match="reset"):
        fresh.step(np.zeros(3))
    fresh.close()


def test_images_change_with_the_scene_but_not_the_movement(reach: FetchReach) -> None:
    try:
        seeing = FetchReach(**LIMITS, picture_size=32)
    except UserError as error:
        pytest.skip(str(error))
    actions = np.full((5, 3), 0.02)
    seen = record(seeing, 2, actions)
    assert agree(seen, record(reach, 2, actions))
    images = [entry.image for entry in seen]
    assert all(image is not None and image.shape == (32, 32, 3) and image.dtype == np.uint8 for image in images)
    assert images[0].std() > 5 and not np.array_equal(images[0], images[-1])
    seeing.close()
    seeing.close()


def test_two_views_stand_side_by_side_and_the_first_is_the_single_one(reach: FetchReach) -> None:
    try:
        one, two = FetchReach(**LIMITS, picture_size=32), FetchReach(**LIMITS, picture_size=32, cameras=2)
    except UserError as error:
        pytest.skip(str(error))
    single, both = one.reset(2).image, two.reset(2).image
    assert single is not None and both is not None
    assert str(two.limits.picture) == "64×32 rgb8" and both.shape == (32, 64, 3)
    assert np.array_equal(both[:, :32], single) and not np.array_equal(both[:, 32:], single)
    assert np.array_equal(two.reset(2).image, both)
    one.close()
    two.close()


def test_every_goal_is_in_sight_of_every_camera() -> None:
    """Corners of the box of goals, as a camera with MuJoCo's angle of 45 degrees sees them."""
    offsets = np.array(np.meshgrid(*[[-GOAL_RANGE, GOAL_RANGE]] * 3)).reshape(3, -1).T
    corners = np.array(HOME) + offsets
    corners[:, 2] = np.maximum(corners[:, 2], TABLE_HEIGHT)
    for view in VIEWS.values():
        azimuth, elevation = np.deg2rad([view["azimuth"], view["elevation"]])
        forward = np.array(
            [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
        )
        right = np.cross(forward, [0, 0, 1]) / np.cos(elevation)
        ways = corners - (np.array(view["lookat"]) - view["distance"] * forward)
        depths = ways @ forward
        places = np.stack([ways @ right, ways @ np.cross(right, forward)], -1) / depths[:, None] / np.tan(np.pi / 8)
        assert (depths > 0).all() and np.abs(places).max() < 0.97
        assert (0.02 * 32 / np.tan(np.pi / 8) / depths).min() > 1, "θ is less than a pixel of 64"


def test_a_wrong_backend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "vulkan")
    with pytest.raises(UserError, match=r"MUJOCO_GL is 'vulkan'.*egl"):
        FetchReach(**LIMITS, picture_size=32)


def test_without_gl_library_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(offscreen, "_BACKENDS", {"egl": "no_such_module_a", "osmesa": "no_such_module_b"})
    with pytest.raises(UserError, match=r"libegl1.*no_such_module_a.*no_such_module_b"):
        FetchReach(**LIMITS, picture_size=32)
