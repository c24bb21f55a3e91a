"""Which episodes a model has not seen, and how its actions compare with their best shortcuts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sample_run import drive, write_run
from training_samples import make_episodes, tiny

from lift_ros.array_types import FloatArray
from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.evaluation.held_out import compare_actions, unseen_episodes
from lift_ros.policies.learned import LearnedPolicy, load_model
from lift_ros.training import train
from lift_ros.training.runs import load_runs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run", make_episodes(count=12))


def model_of(run: Path, out: Path, episodes: int | None = None, **options: object) -> LearnedPolicy:
    train(load_runs([run], episodes=episodes), tiny(**options), action_radius=0.5, out=out)
    return load_model(out)


def unseen(policy: LearnedPolicy, *runs: Path) -> list[int]:
    recorded = load_runs(runs)
    return recorded.arrays.episodes[unseen_episodes(policy, recorded, runs)].tolist()


def test_what_was_held_out_is_unseen(run: Path, tmp_path: Path) -> None:
    policy = model_of(run, tmp_path / "m.safetensors", held_out=0.25)
    (bag,) = policy.description["training"]["bags"]
    assert len(bag["held_out"]) == 3 and unseen(policy, run) == bag["held_out"]


def test_another_run_is_unseen_as_a_whole(run: Path, tmp_path: Path) -> None:
    policy = model_of(run, tmp_path / "m.safetensors", held_out=0.0)
    other = write_run(tmp_path / "run", make_episodes(count=3, seed=1))
    assert unseen(policy, run) == []
    assert unseen(policy, run, other) == [0, 1, 2]


def test_of_a_run_that_has_grown_since_the_new_episodes_are_unseen(run: Path, tmp_path: Path) -> None:
    policy = model_of(run, tmp_path / "m.safetensors", episodes=10, held_out=0.0)
    assert unseen(policy, run) == [10, 11]


def test_a_model_that_does_not_tell_its_bags_has_seen_none(run: Path, tmp_path: Path) -> None:
    train(make_episodes(), tiny(), action_radius=0.5, out=tmp_path / "m.safetensors")
    assert len(unseen(load_model(tmp_path / "m.safetensors"), run)) == 12


class Turned(LearnedPolicy):
    """Takes the best shortcut of a straight drive to the origin, turned and stretched."""

    def __init__(self, angle: float = 0.0, stretch: float = 1.0, radius: float = 0.5) -> None:
        self.description, self.action_radius = {}, radius
        cosine, sine = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        self._matrix = -stretch * np.array([[cosine, -sine], [sine, cosine]])

    def act_batch(self, observations: FloatArray) -> FloatArray:
        way = observations[:, :2]
        steps = np.floor(self.action_radius / (np.sqrt(2) / 4) + 1e-9) * np.sqrt(2) / 4
        length = np.linalg.norm(way, axis=1, keepdims=True)
        return np.asarray(way * np.minimum(1.0, steps / length) @ self._matrix.T)


@pytest.mark.parametrize(("angle", "stretch", "error"), [(0, 1.0, 0.0), (0, 0.5, 0.5), (90, 1.0, np.sqrt(2))])
def test_angle_length_and_error_are_measured(angle: float, stretch: float, error: float) -> None:
    radius = np.sqrt(2) / 2  # two of the four steps
    found = compare_actions(Turned(angle, stretch, radius), episodes_to_arrays([drive(0), drive(1)]))
    assert found.episodes == 2
    assert found.angle == pytest.approx(angle, abs=1e-3)
    assert found.length_ratio == pytest.approx(stretch)
    assert max(found.error) == pytest.approx(error, abs=1e-6)


def test_steps_near_the_goal_and_far_from_it_are_told_apart() -> None:
    found = compare_actions(Turned(radius=0.8), episodes_to_arrays([drive(0)]))
    assert found.near is not None and 0 < found.near.sum() < len(found.near)
    assert set(found.groups()) == {"all", "goal within λ", "goal farther"}
    assert "goal farther" in found.table() and found.as_dict()["angle"]["all"] == pytest.approx([0, 0, 0], abs=1e-3)


def blind(episode: Episode) -> Episode:
    nothing = np.empty(0)
    steps = [replace(step, position=nothing) for step in episode.steps]
    return replace(episode, steps=steps, final_position=nothing, goal=nothing)


def test_without_positions_nobody_knows_what_is_near() -> None:
    found = compare_actions(Turned(), episodes_to_arrays([blind(drive(0))]))
    assert found.near is None and list(found.groups()) == ["all"]


def test_without_rewards_there_are_no_shortcuts_to_compare_with() -> None:
    with pytest.raises(UserError, match="no episode with a step"):
        compare_actions(Turned(), episodes_to_arrays([blind(drive(0, rewarded=False))]))
