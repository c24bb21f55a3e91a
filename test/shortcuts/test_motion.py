"""κ is found where movement follows a power of the action's length, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.shortcuts.motion import Motion, Track, choose_motion, estimate_motion

Gain = Callable[[FloatArray, FloatArray], float]  # of a position and an action


def walk(gain: Gain, episodes: int = 30, size: int = 2, noise: float = 0.0, seed: int = 0) -> Track:
    """Walk to the origin axis by axis with steps of falling length; each episode has a matrix of its own."""
    rng = np.random.default_rng(seed)
    positions, finals, actions, counts = [], [], [], []
    for _ in range(episodes):
        matrix = np.eye(size) + rng.normal(0, 0.2, (size, size))
        position = rng.uniform(-1, 1, size)
        before = len(actions)
        for length in (0.1, 0.05, 0.025):
            for axis in range(size):
                gap = np.inf
                while length / 2 < abs(position[axis]) < gap:
                    gap = abs(position[axis])
                    action = np.zeros(size)
                    action[axis] = -np.sign(position[axis]) * length
                    positions.append(position)
                    actions.append(action)
                    position = position + gain(position, action) * matrix @ action
        finals.append(position)
        counts.append(len(actions) - before)
    measured, ends = (np.array(exact) + rng.normal(0, noise, (len(exact), size)) for exact in (positions, finals))
    return Track(measured, ends, np.array(actions), np.concatenate(([0], np.cumsum(counts))), "walk")


def power(kappa: float) -> Gain:
    return lambda position, action: float(np.linalg.norm(action) ** kappa)


def near_slower(position: FloatArray, action: FloatArray) -> float:
    """Like the distortion scale: steps are short where movement is slow, yet not for that reason."""
    return float(np.clip(np.linalg.norm(position), 0.3, 1))


@pytest.mark.parametrize("kappa", [-0.3, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_power_is_found(kappa: float, size: int) -> None:
    motion = estimate_motion(walk(power(kappa), size=size))
    assert motion.kappa == pytest.approx(kappa, abs=0.02)
    assert motion.evidence is not None and motion.evidence.error < 0.7 * motion.evidence.linear_error
    assert "below 0.7" in motion.reason and motion.source == "walk" and motion.episodes == 30


@pytest.mark.parametrize("gain", [power(0), near_slower, lambda position, _: 1 + 0.3 * float(np.sin(3 * position[0]))])
@pytest.mark.parametrize("noise", [0.0, 0.005])
def test_a_linear_motion_stays_linear(gain: Gain, noise: float) -> None:
    motion = estimate_motion(walk(gain, noise=noise))
    assert motion.kappa == 0 and motion.evidence is not None and motion.evidence.best_kappa != 0


def test_without_its_rivals_a_gain_of_the_distance_would_be_taken_for_a_power() -> None:
    evidence = estimate_motion(walk(near_slower)).evidence
    assert evidence is not None and evidence.best_kappa > 0.3
    linear = dict(evidence.candidates)[0.0]
    assert evidence.error < 0.9 * linear and evidence.linear_error < evidence.error


@pytest.mark.parametrize("noise", [0.001, 0.002])
def test_noise_hides_a_power_less_than_it_hides_single_steps(noise: float) -> None:
    motion = estimate_motion(walk(power(0.5), noise=noise))
    assert motion.kappa == pytest.approx(0.5, abs=0.1)
    assert motion.evidence is not None and motion.evidence.noise > 0


def test_noise_beyond_recognition_keeps_the_motion_linear() -> None:
    assert estimate_motion(walk(power(0.5), noise=0.1)).kappa == 0


def test_one_odd_episode_is_not_enough() -> None:
    straight, odd = walk(power(0)), walk(power(0.5), seed=1)
    first = int(odd.offsets[1])
    mixed = Track(
        np.concatenate((straight.positions, odd.positions[:first])),
        np.concatenate((straight.finals, odd.finals[:1])),
        np.concatenate((straight.actions, odd.actions[:first])),
        np.append(straight.offsets, straight.offsets[-1] + first),
        "walk",
    )
    assert estimate_motion(mixed).kappa == 0


def test_many_episodes_are_sampled_evenly_and_always_alike() -> None:
    track = walk(power(0.5), episodes=1500)
    motion = estimate_motion(track)
    assert motion.episodes < 1500 and motion.steps < 60_000 < len(track.actions)
    assert motion == estimate_motion(track) and motion.kappa == pytest.approx(0.5, abs=0.02)


def test_nothing_is_estimated_from_too_little() -> None:
    track = walk(power(0.5))
    equal = track._replace(actions=np.where(track.actions, np.sign(track.actions), 0.0))
    still = track._replace(positions=np.zeros_like(track.positions), finals=np.zeros_like(track.finals))
    idle = track._replace(actions=np.zeros_like(track.actions))
    cases = [
        (None, "no positions"),
        (walk(power(0.5), episodes=4), "fewer than 5 episodes"),
        (equal, "equally long"),
        (still, "nothing moved"),
        (idle, "equally long"),
    ]
    for given, named in cases:
        motion = estimate_motion(given)
        assert (motion.kappa, motion.evidence) == (0, None) and named in motion.reason
        with pytest.raises(UserError, match=f"κ cannot be estimated: .*{named}"):
            choose_motion("power", given)


def test_steps_without_action_and_episodes_without_steps_change_nothing() -> None:
    track = walk(power(0.5))
    motion = estimate_motion(track)
    empty = track._replace(
        offsets=np.insert(track.offsets, 3, track.offsets[3]), finals=np.insert(track.finals, 3, 0.0, axis=0)
    )
    assert estimate_motion(empty) == motion
    paused = track._replace(
        positions=np.insert(track.positions, 1, track.positions[1], axis=0),
        actions=np.insert(track.actions, 1, 0.0, axis=0),
        offsets=np.where(track.offsets > 0, track.offsets + 1, 0),
    )
    assert estimate_motion(paused).kappa == pytest.approx(motion.kappa, abs=0.01)


def test_the_option_decides() -> None:
    curved, straight = walk(power(0.5)), walk(near_slower)
    assert choose_motion("linear", curved).kappa == 0
    assert choose_motion("auto", curved) == estimate_motion(curved)
    estimate = estimate_motion(straight)
    assert estimate.evidence is not None
    forced = choose_motion("power", straight)
    assert forced == replace(estimate, kappa=estimate.evidence.best_kappa, reason=forced.reason)
    assert isinstance(forced, Motion) and "as told" in forced.reason
