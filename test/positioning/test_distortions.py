from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning import DISTORTIONS
from lift_ros.positioning.distortions import REGION_MEANS, Distortion, make_distortion

NAMES = sorted(DISTORTIONS)
LINEAR = ("none", "blend", "rot")
BOUNDED = ("scale", "regrot", "sin")

quick = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
dims = st.integers(1, 6)


def rotation(angle: float, dim: int) -> FloatArray:
    matrix = np.eye(dim)
    for k in range(0, dim - 1, 2):
        matrix[k : k + 2, k : k + 2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    return matrix


def textbook(f: Distortion, s: FloatArray, a: FloatArray, W: FloatArray) -> FloatArray:  # noqa: N803
    """The formulas of the paper's appendix, word by word."""
    identity = np.eye(f.dim)
    if f.name == "none":
        return s + a
    if f.name == "blend":
        return s + (identity + W) @ a
    if f.name == "sqrt":
        return s + (identity + W) @ (math.sqrt(np.linalg.norm(a)) * a)
    if f.name == "rot":
        return s + rotation(float(W), f.dim) @ a
    if f.name == "scale":
        return s + np.clip(np.linalg.norm(s - W), 0.3, 1.0) * a
    if f.name == "sin":
        return s + a + W * np.sin(s) * np.cos(s) * np.linalg.norm(a)
    x, y = s[0], s[1] if f.dim > 1 else 0.0
    quadrant = {(True, True): 0, (False, True): 1, (False, False): 2, (True, False): 3}[(x >= 0, y >= 0)]
    return s + rotation(float(W[quadrant]), f.dim) @ a


@pytest.mark.parametrize("name", NAMES)
@quick
@given(seed=seeds, dim=dims)
def test_follows_the_paper(name: str, seed: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    f = DISTORTIONS[name](dim=dim)
    W = f.sample(rng, rng.uniform(-1, 1, dim))
    s, a = rng.uniform(-1, 1, dim), rng.normal(0, 0.3, dim)
    np.testing.assert_allclose(f(s, a, W), textbook(f, s, a, W), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@quick
@given(seed=seeds, dim=dims)
def test_no_action_no_movement(name: str, seed: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    f = DISTORTIONS[name](dim=dim)
    s = rng.uniform(-1, 1, (4, dim))
    W = f.sample(rng)
    assert np.array_equal(f(s, 0, W), s)
    assert np.array_equal(f(s[0], np.zeros(dim), W), s[0])


@pytest.mark.parametrize("name", NAMES)
@quick
@given(seed=seeds, dim=dims, count=st.integers(1, 19))
def test_broadcasts_with_the_same_bits(name: str, seed: int, dim: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    f = DISTORTIONS[name](dim=dim)
    contexts = np.array([f.sample(rng, rng.uniform(-1, 1, dim)) for _ in range(count)])
    s, a = rng.uniform(-1, 1, (count, dim)), rng.normal(0, 0.3, (count, dim))
    together = f(s, a, contexts)
    assert together.shape == (count, dim)
    assert all(np.array_equal(together[i], f(s[i], a[i], contexts[i])) for i in range(count))
    shared = f(s, a[0], contexts[0])
    assert all(np.array_equal(shared[i], f(s[i], a[0], contexts[0])) for i in range(count))


def run_chain(f: Distortion, seed: int, steps: int) -> tuple[float, float, float]:
    """Return the placement error of regrouping a chain, the length of the chain, and how far it went."""
    rng = np.random.default_rng(seed)
    W = f.sample(rng, rng.uniform(-1, 1, f.dim))
    start = s = rng.uniform(-1, 1, f.dim)
    actions = rng.normal(0, 0.2, (steps, f.dim))
    for action in actions:
        s = f(s, action, W)
    error = float(np.linalg.norm(f(start, actions.sum(axis=0), W) - s))
    return error, float(np.linalg.norm(actions, axis=1).sum()), float(np.linalg.norm(s - start))


@pytest.mark.parametrize("name", LINEAR)
@quick
@given(seed=seeds, dim=dims, steps=st.integers(1, 20))
def test_linear_ones_are_exact_under_regrouping(name: str, seed: int, dim: int, steps: int) -> None:
    f = DISTORTIONS[name](dim=dim)
    error, length, _ = run_chain(f, seed, steps)
    assert f.lpe() == 0.0
    assert error <= 1e-12 * (1 + length)


@pytest.mark.parametrize("name", BOUNDED)
@quick
@given(seed=seeds, dim=dims, steps=st.integers(1, 20))
def test_placement_errors_grow_at_most_linearly(name: str, seed: int, dim: int, steps: int) -> None:
    f = DISTORTIONS[name](dim=dim)
    error, length, _ = run_chain(f, seed, steps)
    assert 0 < f.lpe() < math.inf
    assert error <= f.lpe() * length + 1e-12


def test_constants_of_the_paper() -> None:
    assert DISTORTIONS["regrot"](dim=5).lpe() == 2
    assert DISTORTIONS["scale"](dim=5, high=0.7).lpe() == pytest.approx(1.4)
    assert DISTORTIONS["sin"](dim=4, sigma=0.3).lpe() == pytest.approx(0.6)
    assert DISTORTIONS["sqrt"](dim=2).lpe() == math.inf


@quick
@given(bound=st.floats(1e-3, 1e3), dim=dims)
def test_square_root_breaks_any_bound(bound: float, dim: int) -> None:
    f = DISTORTIONS["sqrt"](dim=dim)
    W = np.zeros((dim, dim))
    c = 1.1 * (bound / (math.sqrt(2) - 1)) ** 2
    a = np.zeros(dim)
    a[0] = c
    twice = f(f(np.zeros(dim), a, W), a, W)
    assert np.linalg.norm(f(np.zeros(dim), 2 * a, W) - twice) > bound * 2 * c


@pytest.mark.parametrize("dim", [1, 3, 5])
def test_rotation_leaves_the_last_of_an_odd_number_alone(dim: int) -> None:
    f = DISTORTIONS["rot"](dim=dim)
    a = np.arange(1.0, dim + 1)
    moved = f(np.zeros(dim), a, np.asarray(1.2))
    assert moved[-1] == a[-1]
    assert np.linalg.norm(moved) == pytest.approx(np.linalg.norm(a))


def test_regions_are_the_quadrants_of_the_first_two_coordinates() -> None:
    f = DISTORTIONS["regrot"](dim=3)
    W = np.array([0.1, 0.2, 0.3, 0.4])
    a = np.array([1.0, 0.0, 0.0])
    for corner, angle in zip([(1, 1), (-1, 1), (-1, -1), (1, -1)], W, strict=True):
        s = np.array([*corner, -0.5]) * 0.5
        turned = f(s, a, W) - s
        assert math.atan2(turned[1], turned[0]) == pytest.approx(angle)


def test_contexts_have_the_papers_distributions() -> None:
    rng = np.random.default_rng(0)
    regions = np.array([DISTORTIONS["regrot"](dim=2, sigma=0.1).sample(rng) for _ in range(2000)])
    np.testing.assert_allclose(regions.mean(axis=0), REGION_MEANS, atol=0.02)
    np.testing.assert_allclose(regions.std(axis=0), 0.1, atol=0.02)
    waves = np.array([DISTORTIONS["sin"](dim=2, sigma=0.4).sample(rng) for _ in range(2000)])
    assert 0 <= waves.min() < 0.01 and 0.39 < waves.max() <= 0.4
    blend = np.array([DISTORTIONS["blend"](dim=3, sigma=0.1).sample(rng) for _ in range(500)])
    assert blend.shape == (500, 3, 3)
    assert blend.std() == pytest.approx(0.1, abs=0.01)


def test_bad_arguments_say_what_is_wrong() -> None:
    with pytest.raises(UserError, match=r"unknown distortion 'bland'.*blend"):
        make_distortion("bland", 2)
    with pytest.raises(UserError, match=r"sigma.*'rot'.*-1"):
        DISTORTIONS["rot"](dim=2, sigma=-1)
    with pytest.raises(UserError, match="dim=0"):
        DISTORTIONS["rot"](dim=0)
    with pytest.raises(UserError, match="low < high"):
        make_distortion("scale", 2, low=0.5, high=0.4)
    with pytest.raises(UserError, match=r"shape \(2, 2\)"):
        DISTORTIONS["blend"](dim=2)(np.zeros(2), np.zeros(2), np.zeros((3, 3)))
