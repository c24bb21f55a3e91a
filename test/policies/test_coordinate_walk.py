from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import context_seeds, converge
from lift_ros.policies.coordinate_walk import STEP_FLOOR, CoordinateWalk, NoisyCoordinateWalk
from lift_ros.policies.displacement import DisplacementReader, goal_numbers
from lift_ros.policies.protocol import Policy, SeededPolicy, begin_episode
from lift_ros.positioning import DISTORTIONS
from lift_ros.scenario import load_scenario, scenario_names


class WalkByState:
    """The walk with its state in attributes instead of nested loops, to compare with."""

    def __init__(self, dim: int, step: float) -> None:
        self._reader = DisplacementReader(dim)
        self._initial_step, self._floor = step, STEP_FLOOR
        self._goal_number = 0
        self.axis = 0  # along which the walk goes
        self.step_size = self._initial_step  # l
        self.direction = 0.0  # along the axis: 1, −1, or 0 before the first step on it
        self._gap = math.inf  # distance along the axis before the last step on it

    def reset(self) -> None:
        """Begin anew: first axis, initial step size, no direction."""
        self.axis = 0
        self.step_size = self._initial_step
        self._enter_axis()

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the next step of the walk."""
        goal_number, displacement = self._reader.read(observation)
        if goal_number != self._goal_number:
            self._goal_number = goal_number
            self.reset()
        skipped = 0
        while self._is_done(float(displacement[self.axis])) and not self._stands_still(skipped):
            self._next_axis()
            skipped += 1
        here = float(displacement[self.axis])
        if self.direction == 0.0:
            self.direction = -1.0 if here > 0 else 1.0
        self._gap = abs(here)
        action = np.zeros(self._reader.dim)
        action[self.axis] = self.direction * self.step_size
        return action

    def _is_done(self, here: float) -> bool:
        return abs(here) <= self.step_size / 2 or abs(here) >= self._gap

    def _stands_still(self, skipped: int) -> bool:
        """Whether a whole round at the smallest step size found nothing to do; then any step is as good."""
        return self.step_size == self._floor and skipped > self._reader.dim

    def _next_axis(self) -> None:
        self.axis += 1
        if self.axis == self._reader.dim:
            self.axis = 0
            self.step_size = max(self.step_size / 2, self._floor)
        self._enter_axis()

    def _enter_axis(self) -> None:
        self._gap = math.inf
        self.direction = 0.0


def test_walks_one_axis_after_the_other_and_halves_the_step() -> None:
    walk = CoordinateWalk(dim=2, step=0.1)
    position = np.array([0.25, -0.12])
    actions = []
    for _ in range(6):
        action = walk.act(position)
        actions.append(action.tolist())
        position = position + action
    assert actions == [
        [-0.1, 0.0],
        [-0.1, 0.0],
        # 0.05 is within half a step: the next axis
        [0.0, 0.1],
        # -0.02 is within half a step: the next round with half the step
        [-0.05, 0.0],
        # 0 along the first axis: the second, within half a step down to l = 0.025
        [0.0, 0.025],
        [0.0, -0.0125 / 2],
    ]


def test_leaves_an_axis_when_a_step_did_not_help() -> None:
    walk = CoordinateWalk(dim=2, step=0.1)
    assert walk.act(np.array([0.5, 0.5])).tolist() == [-0.1, 0.0]
    assert walk.act(np.array([0.5, 0.5])).tolist() == [0.0, -0.1]


def test_forgets_everything_on_reset() -> None:
    walk, fresh = CoordinateWalk(dim=3, step=0.2), CoordinateWalk(dim=3, step=0.2)
    position = np.array([0.5, -0.3, 0.1])
    for _ in range(8):
        action = walk.act(position)
        position = position + action
    assert np.abs(action).max() < 0.2
    walk.reset()
    for _ in range(8):
        action = walk.act(position)
        assert np.array_equal(action, fresh.act(position))
        position = position + action


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 5),
    goals=st.integers(1, 2),
    name=st.sampled_from(sorted(DISTORTIONS)),
    step=st.sampled_from([0.001, 0.0125, 0.05, 0.3]),
    noise=st.sampled_from([0.0, 0.02]),
)
def test_walks_by_its_rules(seed: int, dim: int, goals: int, name: str, step: float, noise: float) -> None:
    """Loops and state walk the same way under any movement, with hand-offs in between and goals that are ticked off."""
    rng = np.random.default_rng(seed)
    f = DISTORTIONS[name](dim)
    W = f.sample(rng)
    walk = CoordinateWalk(dim, step)
    rules = WalkByState(dim, step)
    position = rng.uniform(-0.3, 0.3, dim)
    away = rng.uniform(-0.3, 0.3, (goals, dim))
    reached = 0
    for _ in range(60):
        blocks = position - away
        blocks[:reached] = 0.0
        observation = blocks.ravel()
        action = walk.act(observation)
        assert np.array_equal(action, rules.act(observation))
        position = f(position, action, W) + rng.normal(0, noise, dim)
        if reached < goals - 1 and np.linalg.norm(position - away[reached]) < 0.1:
            reached += 1
        if rng.random() < 0.05:
            position = position + rng.normal(0, 0.1, dim)
            walk.reset()
            rules.reset()


def test_at_the_goal_it_still_answers() -> None:
    walk = CoordinateWalk(dim=2)
    assert [np.abs(walk.act(np.zeros(2))).max() for _ in range(3)] == [1e-3] * 3


@pytest.mark.parametrize("name", [name for name in scenario_names() if name.startswith("po-")])
def test_arrives_in_every_scenario(name: str) -> None:
    scenario = load_scenario(name)
    problem, walk = scenario.make_problem(), scenario.make_policy("coordinate_walk", {"step": 0.1})
    for seed in range(3):
        seen = problem.reset(seed)
        walk.reset()
        count = 0
        while not seen.terminated and count < problem.limits.step_limit:
            seen = problem.step(walk.act(seen.values))
            count += 1
        assert seen.terminated, f"{name}, seed {seed}"


def test_noise_is_seeded_and_as_wide_as_asked() -> None:
    walk = NoisyCoordinateWalk(dim=5, action_radius=10.0, step=0.05, noise=2.0)
    assert isinstance(walk, SeededPolicy)
    here = np.full(5, 0.5)
    begin_episode(walk, 3)
    first = [walk.act(here) for _ in range(200)]
    begin_episode(walk, 3)
    assert all(np.array_equal(walk.act(here), action) for action in first)
    begin_episode(walk, 4)
    assert not np.array_equal(walk.act(here), first[0])
    quiet = CoordinateWalk(dim=5, step=0.05)
    begin_episode(walk, 3)
    rest = np.array([walk.act(here * 0.9**k) - quiet.act(here * 0.9**k) for k in range(5)])
    assert rest.std() == pytest.approx(0.1, rel=0.5)


def test_noise_stays_in_the_ball_and_none_is_the_plain_walk() -> None:
    noisy = NoisyCoordinateWalk(dim=3, action_radius=0.06, step=0.05, noise=2.0)
    begin_episode(noisy, 0)
    assert all(np.linalg.norm(noisy.act(np.full(3, 0.5))) <= 0.06 for _ in range(50))
    plain, walk = NoisyCoordinateWalk(dim=3, action_radius=1.0, noise=0.0), CoordinateWalk(dim=3)
    begin_episode(plain, 0)
    assert np.array_equal(plain.act(np.full(3, 0.5)), walk.act(np.full(3, 0.5)))


@pytest.mark.parametrize(("noise", "share"), [(0.5, 1.0), (1.0, 1.0), (2.0, 0.5)])
def test_noise_slows_the_walk_down_but_does_not_stop_it(noise: float, share: float) -> None:
    scenario = load_scenario("po-blend-d5")
    walk = scenario.make_policy("noisy_coordinate_walk", {"step": 0.05, "noise": noise})
    result = converge(scenario, walk, context_seeds(0, 12), patience=1000)
    assert result.success >= share


def test_little_of_the_walk_is_seen_in_noise_of_level_2() -> None:
    noisy, radius = NoisyCoordinateWalk(dim=5, action_radius=10.0, step=0.05, noise=2.0), 0.05
    begin_episode(noisy, 0)
    actions = np.array([noisy.act(np.full(5, 0.9)) for _ in range(10)])
    assert np.mean(np.linalg.norm(actions - [-radius, 0, 0, 0, 0], axis=1)) > 3 * radius


def test_judging_progress_over_more_steps_ends_at_the_goal_all_the_same() -> None:
    walk, position = CoordinateWalk(dim=3, step=0.1, patience=9), np.array([0.55, -0.31, 0.12])
    for _ in range(40):
        position = position + walk.act(position)
    assert np.abs(position).max() <= 0.01


def test_hand_offs_do_not_repeat_the_noise() -> None:
    walk = NoisyCoordinateWalk(dim=2, action_radius=1.0)
    begin_episode(walk, 0)
    first = walk.act(np.ones(2))
    walk.reset()
    assert not np.array_equal(walk.act(np.ones(2)), first)


def test_reads_displacements() -> None:
    assert DisplacementReader(2, [0.5, 0.5]).read(np.array([1.0, 0.0]))[1].tolist() == [0.5, -0.5]
    reader = DisplacementReader(2)
    assert reader.read(np.array([1.0, 2.0, 3.0, 4.0]))[0] == 0
    number, displacement = reader.read(np.array([0.0, 0.0, 3.0, 4.0]))
    assert (number, displacement.tolist()) == (1, [3.0, 4.0])
    assert reader.read(np.zeros(4))[0] == 1


def test_goals_are_numbered_alike_in_rows_and_one_by_one() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (200, 6)).astype(float)
    for dim in (1, 2, 3, 6):
        assert goal_numbers(rows, dim).tolist() == [DisplacementReader(dim).read(row)[0] for row in rows]
    assert goal_numbers(rows, 4).tolist() == [0] * 200


def test_bad_use_says_what_is_wrong() -> None:
    assert isinstance(CoordinateWalk(2), Policy)
    with pytest.raises(UserError, match=r"step=-1"):
        CoordinateWalk(2, step=-1)
    with pytest.raises(UserError, match=r"0 < floor <= step"):
        CoordinateWalk(2, step=1e-4)
    with pytest.raises(UserError, match=r"goal must have 2 entries, not 3"):
        CoordinateWalk(2, goal=[0, 0, 0])
    with pytest.raises(UserError, match=r"3 entries.*2 entries each"):
        CoordinateWalk(2).act(np.zeros(3))
    with pytest.raises(UserError, match="noise"):
        NoisyCoordinateWalk(2, 1.0, noise=-1)
    with pytest.raises(UserError, match="from 0 to 100"):
        NoisyCoordinateWalk(2, 1.0, noise=1e6)
    with pytest.raises(UserError, match="begin_episode"):
        NoisyCoordinateWalk(2, 1.0).act(np.zeros(2))
