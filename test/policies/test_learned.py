"""The learned policy answers like the network it was written from."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_samples import RADIUS, model_content, write_model

from lift_ros.errors import UserError
from lift_ros.policies.learned import LearnedPolicy, check_folder, load_fitting_model, load_model
from lift_ros.policies.model_file import write_tensor_file
from lift_ros.policies.protocol import Policy
from lift_ros.positioning.problem import Limits


def reference(tensors: dict[str, Any], prefix: str, values: Any) -> Any:
    """Return the network's output in float64, written down anew."""
    for index in range(3):
        values = tensors[f"{prefix}.{index}.weight"].astype(float) @ values + tensors[f"{prefix}.{index}.bias"]
        values = np.maximum(values, 0) if index < 2 else values
    return values


@pytest.fixture
def policy() -> LearnedPolicy:
    tensors, description = model_content()
    return LearnedPolicy(tensors, description, "hash", "test")


def test_acts_like_the_network(policy: LearnedPolicy) -> None:
    tensors, _ = model_content()
    rng = np.random.default_rng(5)
    for _ in range(20):
        observation = rng.normal(size=3)
        scaled = (observation - tensors["observation.mean"]) / tensors["observation.deviation"]
        unit = np.tanh(reference(tensors, "actor", scaled))
        wanted = RADIUS * unit / max(1.0, np.linalg.norm(unit))
        assert policy.act(observation) == pytest.approx(wanted, abs=1e-5)


def test_stays_inside_the_ball(policy: LearnedPolicy) -> None:
    actions = policy.act_batch(np.random.default_rng(0).normal(scale=50, size=(2000, 3)))
    norms = np.linalg.norm(actions, axis=1)
    assert norms.max() <= RADIUS and norms.max() > 0.9 * RADIUS


def test_answers_batches_like_single_questions(policy: LearnedPolicy) -> None:
    observations = np.random.default_rng(1).normal(size=(10, 3))
    assert policy.act_batch(observations) == pytest.approx(
        np.stack([policy.act(row) for row in observations]), abs=1e-6
    )


def test_q_values_are_the_critics_mean(policy: LearnedPolicy) -> None:
    tensors, _ = model_content()
    observation, action = np.array([0.1, -0.4, 2.0]), np.array([0.2, -0.1])
    scaled = (observation - tensors["observation.mean"]) / tensors["observation.deviation"]
    inputs = np.concatenate([scaled, action / RADIUS])
    wanted = np.mean([reference(tensors, f"critics.{index}", inputs)[0] for index in range(2)])
    assert policy.q_value(observation, action) == pytest.approx(wanted, rel=1e-4)


def test_without_critics_asking_for_q_is_an_error() -> None:
    tensors, description = model_content()
    actor = {name: tensor for name, tensor in tensors.items() if not name.startswith("critics")}
    policy = LearnedPolicy(actor, {**description, "critics": 0}, "", "m")
    with pytest.raises(UserError, match="has no critic"):
        policy.q_value(np.zeros(3), np.zeros(2))


def test_is_a_policy_without_state(policy: LearnedPolicy) -> None:
    assert isinstance(policy, Policy)
    first = policy.act(np.ones(3))
    policy.act(np.zeros(3))
    policy.reset()
    assert np.array_equal(policy.act(np.ones(3)), first)


@pytest.mark.parametrize("observation", [np.zeros(2), np.zeros((1, 3)), np.zeros(4)])
def test_refuses_observations_of_another_size(policy: LearnedPolicy, observation: Any) -> None:
    with pytest.raises(UserError, match="observations of size 3"):
        policy.act(observation)


def test_refuses_batches_of_another_size(policy: LearnedPolicy) -> None:
    with pytest.raises(UserError, match="observations of size 3"):
        policy.act_batch(np.zeros((4, 2)))
    with pytest.raises(UserError, match="got shapes"):
        policy.q_values(np.zeros((4, 3)), np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observation_size": 4}, "observation.mean"),
        ({"action_size": 3}, "ends with 2 outputs"),
        ({"action_radius": 0}, "action_radius is 0; allowed: a number > 0"),
        ({"action_radius": 1e308}, r"action_radius is 1e\+308; allowed: a number > 0 and <= 1e\+09"),
        ({"action_radius": None}, "action_radius is None"),
        ({"action_radius": True}, "action_radius is True"),
        ({"critics": 3}, "critics.2"),
        ({"critics": 1}, "belongs to no part"),
        ({"critics": -1}, "critics is -1"),
        ({"observation_size": 0}, "observation_size is 0; allowed: a whole number >= 1"),
        ({"algorithm": 5}, "algorithm is 5; allowed: text"),
        ({"version": 3}, "model version 3"),
    ],
)
def test_refuses_descriptions_that_do_not_fit(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write_model(tmp_path / "m.safetensors", **change)
    with pytest.raises(UserError, match=message):
        load_model(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("actor.0.bias", np.zeros(5, dtype=np.float32)),
        ("actor.1.weight", np.zeros((6, 6), dtype=np.float64)),
        ("actor.1.weight", np.zeros(6, dtype=np.float32)),
        ("observation.deviation", np.zeros(3, dtype=np.float32)),
        ("observation.mean", np.zeros(2, dtype=np.float32)),
        ("stranger", np.zeros(2, dtype=np.float32)),
    ],
)
def test_refuses_tensors_that_do_not_fit(tmp_path: Path, name: str, tensor: Any) -> None:
    tensors, description = model_content()
    write_tensor_file(tmp_path / "m.safetensors", {**tensors, name: tensor}, description)
    with pytest.raises(UserError, match="not a valid model file"):
        load_model(tmp_path / "m.safetensors")


STAGE = Limits(3, 2, RADIUS, step_limit=100)


@pytest.mark.parametrize(
    "plant", [STAGE, replace(STAGE, action_radius=RADIUS * (1 - 1e-9)), replace(STAGE, action_radius=1.0)]
)
def test_fits_a_plant_of_its_sizes_that_allows_its_steps(tmp_path: Path, plant: Limits) -> None:
    digest = write_model(tmp_path / "m.safetensors")
    assert load_fitting_model(tmp_path / "m.safetensors", "stage", plant, digest).hash == digest


@pytest.mark.parametrize(
    ("plant", "announced", "message"),
    [
        (
            replace(STAGE, observation_size=4),
            None,
            "observations of size 3 to actions of size 2, but stage has 4 and 2",
        ),
        (replace(STAGE, action_size=1), None, "but stage has 3 and 1"),
        (replace(STAGE, action_radius=0.4), None, "makes steps up to 0.5, but stage allows 0.4"),
        (STAGE, "0" * 64, "announced was '000000000000'"),
        (STAGE, "", "was announced without its SHA-256"),
    ],
)
def test_refuses_a_plant_that_it_does_not_fit(
    tmp_path: Path, plant: Limits, announced: str | None, message: str
) -> None:
    write_model(tmp_path / "m.safetensors")
    with pytest.raises(UserError, match=message):
        load_fitting_model(tmp_path / "m.safetensors", "stage", plant, announced)


def test_refuses_weights_that_overflow(tmp_path: Path) -> None:
    tensors, description = model_content()
    for name in tensors:
        if name.startswith("actor"):
            tensors[name] = np.sign(tensors[name]) * np.float32(3e38)
    write_tensor_file(tmp_path / "m.safetensors", tensors, description)
    with np.errstate(all="ignore"), pytest.raises(UserError, match="trial inference"):
        load_model(tmp_path / "m.safetensors")


def test_loads_without_torch_and_d3rlpy(tmp_path: Path) -> None:
    write_model(tmp_path / "m.safetensors")
    code = (
        "import sys, numpy; from lift_ros.policies.learned import load_model; "
        f"load_model({str(tmp_path / 'm.safetensors')!r}).act(numpy.zeros(3)); "
        "sys.exit('torch' in sys.modules or 'd3rlpy' in sys.modules)"
    )
    root = Path(__file__).parent.parent.parent
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=120, check=False).returncode == 0


def test_a_model_is_taken_from_allowed_folders_wherever_links_lead(tmp_path: Path) -> None:
    allowed, other = tmp_path / "models", tmp_path / "other"
    for folder in (allowed, other):
        folder.mkdir()
        write_model(folder / "m.safetensors")
    (allowed / "link.safetensors").symlink_to(other / "m.safetensors")
    check_folder(str(allowed / "m.safetensors"), f"/nowhere:{allowed}")
    check_folder(str(other / "m.safetensors"), "")
    with pytest.raises(UserError, match="its name holds a NUL"):
        check_folder("a\0b", str(allowed))
    for path in (other / "m.safetensors", allowed / "link.safetensors", allowed / ".." / "other" / "m.safetensors"):
        with pytest.raises(UserError, match="in none of the folders .* add its folder to the parameter model_folders"):
            check_folder(str(path), str(allowed))
