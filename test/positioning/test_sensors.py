from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.positioning.plants import PLANTS
from lift_ros.positioning.problem import Problem
from lift_ros.positioning.sensors import DetectorRig


def parameters(**changes: Any) -> dict[str, Any]:
    return {name: key.default for name, key in PLANTS["sensors"].keys.items()} | changes


def build(**changes: Any) -> Problem:
    return PLANTS["sensors"].build(parameters(**changes), None)


def test_it_observes_the_displacement_and_then_the_readings() -> None:
    problem = build()
    assert isinstance(problem, Problem)
    assert (problem.limits.observation_size, problem.limits.action_size) == (15, 3)
    seen = problem.reset(2)
    assert seen.values.shape == (15,)
    assert np.array_equal(seen.values[:3], seen.position - seen.goal)
    exact = build(noise=0.0, gain_error=0.0).reset(2)
    assert np.array_equal(exact.values[3:], DetectorRig(3, 12, 0).readings(exact.values[:3]))
    assert 0 < np.abs(seen.values[3:] - exact.values[3:]).max() < 0.2


def test_the_same_seed_gives_the_same_readings_bit_for_bit() -> None:
    first, second = build(), build()
    second.reset(1)
    for a, b in [(first.reset(3), second.reset(3))] + [(first.step(np.ones(3)), second.step(np.ones(3)))] * 3:
        assert np.array_equal(a.values, b.values)


def test_the_gain_stays_for_an_episode_and_noise_does_not() -> None:
    still = build(noise=0.0, distortion="none")
    first = still.reset(1).values
    assert np.array_equal(still.step(np.zeros(3)).values, first)
    noisy = build(gain_error=0.0, distortion="none")
    assert not np.array_equal(noisy.reset(1).values, noisy.step(np.zeros(3)).values)


def test_another_rig_reads_otherwise() -> None:
    assert not np.array_equal(build(rig_seed=1).reset(0).values[3:], build().reset(0).values[3:])
    assert np.array_equal(build(rig_seed=1).reset(0).values[:3], build().reset(0).values[:3])


def test_some_detectors_saturate_early_and_some_late() -> None:
    rig = DetectorRig(3, 12, 0)
    line = np.linspace(-2, 2, 401)[:, None] * np.ones(3) / np.sqrt(3)
    slopes = np.abs(np.diff(rig.readings(line), axis=0))
    widths = (slopes > 0.2 * slopes.max(axis=0)).mean(axis=0)
    assert widths.min() < 0.35 and widths.max() > 0.7


def test_rows_read_like_single_displacements() -> None:
    rig, rows = DetectorRig(4, 20, 3), np.random.default_rng(0).uniform(-2, 2, (7, 4))
    assert np.array_equal(rig.readings(rows), np.array([rig.readings(row) for row in rows]))


def test_the_displacement_can_be_told_from_the_readings() -> None:
    """A cubic regression on readings alone, of other episodes, tells each axis near the optimum within θ."""
    rng, rig = np.random.default_rng(0), DetectorRig(3, 12, 0)
    places = rng.uniform(-0.3, 0.3, (900, 3))
    readings = rig.readings(places) * rng.normal(1, 0.03, (900, 12)) + rng.normal(0, 0.01, (900, 12))
    features = np.concatenate([np.ones((900, 1)), readings, readings**2, readings**3], axis=1)
    weights = np.linalg.lstsq(features[:700], places[:700], rcond=1e-4)[0]
    assert (np.sqrt(((features[700:] @ weights - places[700:]) ** 2).mean(axis=0)) < 0.05).all()


def test_too_many_entries_are_refused() -> None:
    with pytest.raises(UserError, match=r"dim is 10 and detectors is 60; allowed: together at most 64"):
        PLANTS["sensors"].limits(parameters(dim=10, detectors=60))


def test_it_has_no_camera() -> None:
    with pytest.raises(UserError, match="no camera"):
        PLANTS["sensors"].build(parameters(), 32)
