from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.positioning.distortions import make_distortion
from lift_ros.positioning.dynamics import Beginning
from lift_ros.positioning.light_tunnel import LightDynamics, MalusLight, TunnelRenderer, angles
from lift_ros.positioning.plants import PLANTS
from lift_ros.positioning.problem import Problem

needs_chamber = pytest.mark.skipif(
    importlib.util.find_spec("causalchamber") is None, reason="causalchamber is not installed"
)
GOAL = np.array([0.1, 0.4])


def parameters(**changes: Any) -> dict[str, Any]:
    return {name: key.default for name, key in PLANTS["light_tunnel"].keys.items()} | changes


def build(**changes: Any) -> Problem:
    return PLANTS["light_tunnel"].build(parameters(**changes), None)


def dynamics(travel: float = math.pi / 8) -> LightDynamics:
    return LightDynamics(make_distortion("none", 2), 0.3, 0.05, 1000, "displacement", travel=travel)


def renderer(goal: np.ndarray = GOAL, travel: float = math.pi / 8) -> TunnelRenderer:
    tunnel = TunnelRenderer(MalusLight(32), 32, travel)
    tunnel.begin(0, Beginning(np.zeros(2), goal, np.empty(0)))
    return tunnel


def test_it_is_a_problem_with_signed_pictures() -> None:
    problem = build()
    assert isinstance(problem, Problem) and str(problem.limits.picture) == "32×32 32FC3"
    pictures = [problem.reset(seed).image for seed in range(20)]
    assert all(picture is not None and picture.shape == (32, 32, 3) for picture in pictures)
    assert all(picture is not None and picture.dtype == np.float32 for picture in pictures)
    assert min(picture.min() for picture in pictures) < -0.1 and max(picture.max() for picture in pictures) > 0.1
    assert all(np.abs(picture).max() <= 1 for picture in pictures)


def test_the_picture_is_zero_at_the_wanted_position_and_wherever_the_light_is_the_same() -> None:
    tunnel = renderer()
    assert not tunnel.picture(GOAL, 0).any()
    assert np.abs(tunnel.picture(GOAL + 0.3, 0)).max() < 1e-7
    assert np.abs(tunnel.picture(GOAL + np.array([0.2, 0.0]), 0)).max() > 0.01


def test_the_sign_of_the_light_tells_the_direction_everywhere_in_the_box() -> None:
    for position in np.random.default_rng(0).uniform(-1, 1, (50, 2)):
        gap = float((position - GOAL) @ np.array([-1, 1]))
        picture = renderer().picture(position, 0)
        assert np.sign(picture[16, 16]).tolist() == [-np.sign(gap)] * 3


def test_angles_stay_where_more_light_means_a_smaller_angle() -> None:
    corners = [angles(np.array([a, b]), math.pi / 8) for a in (-1, 1) for b in (-1, 1)]
    differences = [second - first for first, second in corners]
    assert min(differences) == pytest.approx(math.pi / 8) and max(differences) == pytest.approx(3 * math.pi / 8)


def test_intensity_follows_malus() -> None:
    light = MalusLight(32)
    open_, crossed, between = (light.intensity(np.array([0.0, angle]))[16, 16] for angle in (0, math.pi / 2, 1.0))
    assert ((crossed > 0) & (crossed < 0.1)).all()
    assert between - crossed == pytest.approx((open_ - crossed) * math.cos(1.0) ** 2)


def test_a_spot_stands_on_dark_ground() -> None:
    picture = MalusLight(32).intensity(np.zeros(2))
    assert picture[16, 16].min() > 0.5 and picture[0, 0].max() < 0.01
    assert np.allclose(picture, picture[::-1, ::-1])


def test_it_has_arrived_when_the_light_matches() -> None:
    problem = build(distortion="none", threshold=0.01, action_radius=2.0)
    seen = problem.reset(0)
    assert not seen.terminated
    missing = seen.goal - seen.position
    seen = problem.step(missing / 2)
    assert -seen.reward == pytest.approx(np.linalg.norm(missing) / 2) and not seen.terminated
    seen = problem.step(missing / 2)
    assert seen.terminated and -seen.reward == pytest.approx(0, abs=1e-9)
    assert np.linalg.norm(seen.values) > 0.1  # the routine's own goal lies elsewhere


def test_the_goal_stays_the_same_for_an_episode_and_shows_no_difference() -> None:
    problem = build(distortion="none")
    goals = [problem.reset(5).goal] + [problem.step(np.full(2, 0.1)).goal for _ in range(3)]
    first = problem.reset(5)
    wanted = first.position - first.values  # s_W
    assert all(np.array_equal(goal, goals[0]) for goal in goals)
    assert np.abs(renderer(wanted).picture(goals[0], 0)).max() < 1e-6


def test_arrival_by_angles_is_the_papers_letter() -> None:
    problem = build(distortion="none", arrival="angles")
    seen = problem.reset(0)
    assert np.array_equal(seen.values, seen.position - seen.goal)
    for _ in range(100):
        seen = problem.step(-seen.values)
        assert -seen.reward == pytest.approx(np.linalg.norm(seen.values))
        if seen.terminated:
            break
    assert np.linalg.norm(seen.position - seen.goal) <= 0.05


def test_no_episode_begins_with_matching_light() -> None:
    problem = dynamics()
    starts = [problem.start(seed) for seed in range(200)]
    assert all(problem.distance(start.position, start.goal) > problem.threshold for start in starts)


def test_the_nearest_goal_is_the_nearest_position_of_the_box_with_this_light() -> None:
    rng = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 401)] * 2), -1).reshape(-1, 2)
    for travel in (math.pi / 8, 2 * math.pi):
        problem = dynamics(travel)
        for position, goal in rng.uniform(-1, 1, (10, 2, 2)):
            nearest = problem.nearest_goal(position, goal)
            assert (np.abs(nearest) <= 1 + 1e-12).all()
            assert np.abs(renderer(goal, travel).picture(nearest, 0)).max() < 1e-6
            matching = grid[problem.distance(grid, goal) < 1e-3]
            found = np.sqrt(((matching - position) ** 2).sum(axis=1)).min() if len(matching) else math.inf
            assert np.linalg.norm(nearest - position) <= found + 2e-3


def test_with_a_long_travel_the_light_repeats_itself() -> None:
    assert len(dynamics().matching_differences(GOAL)) == 1
    assert len(dynamics(2 * math.pi).matching_differences(GOAL)) > 3


def test_the_same_seed_gives_the_same_pictures_bit_for_bit() -> None:
    first, second = build(), build()
    second.reset(1)
    for a, b in [(first.reset(3), second.reset(3))] + [(first.step(GOAL), second.step(GOAL)) for _ in range(3)]:
        assert np.array_equal(a.image, b.image)


@pytest.mark.skipif(importlib.util.find_spec("causalchamber") is not None, reason="causalchamber is installed")
def test_without_causalchamber_the_remedy_is_named() -> None:
    with pytest.raises(UserError, match=r"causalchamber.*lift_ros\[optics\].*renderer: malus"):
        build(renderer="causalchamber")


@needs_chamber
@pytest.mark.parametrize("model", ["F1", "F2", "F3"])
def test_models_of_the_chamber_agree_with_malus_in_sign(model: str) -> None:
    ours, theirs = build(picture_size=16), build(picture_size=16, renderer="causalchamber", model=model)
    for seed in range(5):
        first, second = ours.reset(seed), theirs.reset(seed)
        assert first.image is not None and second.image is not None
        assert second.image.shape == (16, 16, 3) and second.image.dtype == np.float32
        assert np.array_equal(np.sign(first.image[8, 8]), np.sign(second.image[8, 8]))


def test_a_picture_of_another_size_is_refused() -> None:
    with pytest.raises(UserError, match=r"light_tunnel.*picture_size"):
        PLANTS["light_tunnel"].build(parameters(), 64)
