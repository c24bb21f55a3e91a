"""What networks are given for an observation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from training_samples import RADIUS, make_episodes, model_content, tiny

from lift_ros.errors import UserError
from lift_ros.policies.inputs import OFF, find_switches, fit_inputs
from lift_ros.policies.learned import LearnedPolicy, load_model
from lift_ros.policies.model_file import write_tensor_file
from lift_ros.training import train


def observed(rows: int = 400) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, 4)).astype(np.float32)


def test_scaled_inputs_have_mean_zero_and_deviation_one() -> None:
    values = observed() * np.float32([1, 20, 3e-4, 5]) + np.float32([0, 1e3, 0, -2])
    inputs = fit_inputs(values, scaled=True).of(values)
    assert inputs.mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-4)
    assert inputs.std(axis=0) == pytest.approx(np.ones(4), abs=1e-4)


def test_unscaled_inputs_are_the_observation() -> None:
    values = observed()
    inputs = fit_inputs(values, scaled=False)
    assert not inputs.is_scaled and (inputs.of(values) == values).all()


def test_an_entry_that_never_changed_is_not_blown_up_when_it_does() -> None:
    values = observed()
    values[:, 2] = 7.0
    moved = np.float32([0.0, 0.0, 7.01, 0.0])
    assert abs(fit_inputs(values, scaled=True).of(moved)[2]) < 0.02


def test_entries_that_are_switched_off_together_have_one_input() -> None:
    values = observed()
    values[:100, :2] = 0.0
    values[50:90, 3] = 0.0
    inputs = fit_inputs(values, scaled=True)
    assert inputs.switches.tolist() == [0, 3] and inputs.size == 6
    assert inputs.of(values)[:, 4].tolist() == [OFF] * 100 + [0.0] * 300
    assert inputs.of(values[60])[4:].tolist() == [OFF, OFF]


def test_a_sensor_of_few_digits_is_no_switch() -> None:
    assert not find_switches(np.round(observed(), 1)).size


def test_an_entry_that_is_always_zero_is_no_switch() -> None:
    values = observed()
    values[:, 1] = 0.0
    assert not find_switches(values).size


def test_a_single_zero_is_no_switch() -> None:
    values = observed()
    values[3, 1] = 0.0
    assert not find_switches(values).size


def test_a_trained_model_and_its_file_know_switches(tmp_path: Path) -> None:
    episodes = make_episodes()
    for episode in episodes:
        for number, step in enumerate(episode.steps):
            seen = np.full(2, 0.5 + 0.01 * number + 0.1 * episode.index) * (number < 4)
            step.observation = np.append(step.observation, seen)
        episode.final_observation = np.append(episode.final_observation, [0.0, 0.0])
    out = tmp_path / "m.safetensors"
    trained = train(episodes, tiny(), action_radius=RADIUS, out=out).policy
    policy = load_model(out)
    assert policy.inputs.switches.tolist() == [2] and policy.observation_size == 4
    on, off = np.array([0.1, 0.2, 1e-7, 1e-7]), np.array([0.1, 0.2, 0.0, 0.0])
    assert np.abs(policy.act(on) - policy.act(off)).max() > 1e-4
    assert (policy.act(on) == trained.act(on)).all()
    assert np.isfinite(policy.q_value(off, np.zeros(2)))


def test_a_model_with_a_switch_that_no_observation_has_is_refused(tmp_path: Path) -> None:
    write_tensor_file(tmp_path / "m.safetensors", *model_content(switches=(3,)))
    with pytest.raises(UserError, match=r"observation\.switches names an entry"):
        load_model(tmp_path / "m.safetensors")


def test_one_observation_and_many_give_the_same_answer() -> None:
    tensors, description = model_content(switches=(1,))
    policy = LearnedPolicy(tensors, description, "", "a model")
    rows = np.array([[0.3, 0.0, 1.0], [0.3, 0.2, 1.0]])
    assert policy.act_batch(rows) == pytest.approx(np.stack([policy.act(row) for row in rows]), abs=1e-6)
