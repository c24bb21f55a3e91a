"""From episodes to a model: what is written, what is the same again, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training_samples import RADIUS, make_episodes, tiny

from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.errors import UserError
from lift_ros.policies.learned import LearnedPolicy, load_model
from lift_ros.training import preset, train
from lift_ros.training.checkpoint import checkpoint_path
from lift_ros.training.runs import RecordedRuns
from lift_ros.training.trainer import best_path

EPISODES = make_episodes()


def test_writes_a_model_that_acts_like_the_result(tmp_path: Path) -> None:
    result = train(EPISODES, tiny(), action_radius=RADIUS, out=tmp_path / "m.safetensors")
    policy = load_model(tmp_path / "m.safetensors")
    assert result.complete and result.updates == 12 and policy.hash == result.policy.hash
    assert np.array_equal(policy.act(np.array([0.3, -0.2])), result.policy.act(np.array([0.3, -0.2])))
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_what_is_held_out_is_not_trained_on_and_the_model_tells_which() -> None:
    episodes = make_episodes(count=20)
    runs = RecordedRuns(episodes_to_arrays(episodes), [{"path": "run", "sha256": None, "episodes": 20}], [], None, None)
    training = train(runs, tiny(held_out=0.25), action_radius=RADIUS).policy.description["training"]
    spared = training["bags"][0]["held_out"]
    assert len(spared) == 5 and training["data"]["episodes"] == 15
    rest = [episode for episode in episodes if episode.index not in spared]
    same = train(rest, tiny(held_out=0.0), action_radius=RADIUS).policy.description["training"]
    assert training["data"]["digest"] == same["data"]["digest"]


def test_describes_how_it_was_trained() -> None:
    sources = [{"path": "run", "sha256": "0" * 64, "episodes": 6}]
    options = tiny(seed=5)
    runs = RecordedRuns(episodes_to_arrays(EPISODES), sources, [], None, None)
    result = train(runs, options, action_radius=RADIUS)
    training = result.policy.description["training"]
    assert training["options"] == options.as_dict() and training["bags"] == [{**sources[0], "held_out": []}]
    assert training["data"]["episodes"] == 6 and training["data"]["steps"] == 48
    assert training["data"] == train(EPISODES, options, action_radius=RADIUS).policy.description["training"]["data"]
    assert training["versions"]["torch"] == str(torch.__version__)
    assert np.isfinite(list(result.losses.values())).all()


def test_the_model_knows_which_observations_its_data_cover() -> None:
    policy = train(EPISODES, tiny(), action_radius=RADIUS).policy
    assert all(policy.covers(step.observation) for episode in EPISODES for step in episode.steps)
    assert not policy.covers(np.array([5.0, 5.0]))


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    first = train(EPISODES, tiny(), action_radius=RADIUS, threads=1)
    second = train(EPISODES, tiny(), action_radius=RADIUS, threads=2)
    other = train(EPISODES, tiny(seed=1), action_radius=RADIUS)
    assert first.policy.hash == second.policy.hash != other.policy.hash


@pytest.mark.parametrize("changes", [{}, {"strategy": "weighted", "draw": "episodes"}, {"algorithm": "IQL"}])
def test_an_interrupted_training_resumes_to_the_same_file(tmp_path: Path, changes: dict[str, Any]) -> None:
    options = tiny(**changes)
    whole = train(EPISODES, options, action_radius=RADIUS, out=tmp_path / "whole.safetensors")
    calls = iter(range(100))
    cut = tmp_path / "cut.safetensors"
    stopped = train(EPISODES, options, action_radius=RADIUS, out=cut, stop=lambda: next(calls) == 4)
    assert (stopped.complete, stopped.updates) == (False, 5)
    assert load_model(cut).hash == stopped.policy.hash
    assert checkpoint_path(cut).exists()
    resumed = train(EPISODES, options, action_radius=RADIUS, out=cut, resume=True)
    assert resumed.complete and resumed.policy.hash == whole.policy.hash
    assert cut.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert not checkpoint_path(cut).exists()


def test_a_killed_training_resumes_from_its_last_checkpoint(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    def die(policy: LearnedPolicy) -> Mapping[str, float]:
        raise Killed

    out = tmp_path / "m.safetensors"
    with pytest.raises(Killed):
        train(EPISODES, tiny(), action_radius=RADIUS, out=out, checkpoint_every=4, judge=die, judge_every=10)
    assert not out.exists()
    resumed = train(EPISODES, tiny(), action_radius=RADIUS, out=out, resume=True)
    assert resumed.policy.hash == train(EPISODES, tiny(), action_radius=RADIUS).policy.hash


@pytest.mark.parametrize(
    ("changes", "message"), [({"seed": 3}, "seed was 0 and is 3"), ({"hidden": (4, 4)}, "hidden"), ({}, "digest")]
)
def test_refuses_to_resume_another_training(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    out = tmp_path / "m.safetensors"
    train(EPISODES, tiny(), action_radius=RADIUS, out=out, stop=lambda: True)
    episodes = EPISODES if changes else make_episodes(seed=1)
    with pytest.raises(UserError, match=message):
        train(episodes, tiny(**changes), action_radius=RADIUS, out=out, resume=True)


def test_refuses_a_damaged_or_missing_checkpoint(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    with pytest.raises(UserError, match="there is no checkpoint"):
        train(EPISODES, tiny(), action_radius=RADIUS, out=out, resume=True)
    with pytest.raises(UserError, match="resume needs"):
        train(EPISODES, tiny(), action_radius=RADIUS, resume=True)
    train(EPISODES, tiny(), action_radius=RADIUS, out=out, stop=lambda: True)
    path = checkpoint_path(out)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match="not a valid checkpoint"):
        train(EPISODES, tiny(), action_radius=RADIUS, out=out, resume=True)


def test_keeps_the_best_and_the_last_model(tmp_path: Path) -> None:
    scores = iter([0.1, 0.9, 0.3])
    seen: list[str] = []

    def judge(policy: LearnedPolicy) -> Mapping[str, float]:
        seen.append(policy.hash)
        return {"score": next(scores), "success": 0.5}

    out = tmp_path / "m.safetensors"
    result = train(EPISODES, tiny(), action_radius=RADIUS, out=out, judge=judge, judge_every=4)
    assert [entry["update"] for entry in result.evaluations] == [4, 8, 12]
    assert result.best_path == best_path(out) and load_model(best_path(out)).hash == seen[1]
    assert load_model(out).description["training"]["updates"] == 12
    assert load_model(out).description["training"]["evaluations"] == result.evaluations


def test_the_terminal_step_and_scaling_reach_the_model() -> None:
    result = train(EPISODES, tiny(scale_observations=True), action_radius=RADIUS)
    mean, deviation = result.policy.inputs.mean, result.policy.inputs.deviation
    values = episodes_to_arrays(EPISODES).observations.astype(np.float32)
    assert mean == pytest.approx(values.mean(axis=0), abs=1e-6)
    assert deviation == pytest.approx(values.std(axis=0), abs=1e-6)


def test_a_constant_observation_does_not_divide_by_zero() -> None:
    episodes = make_episodes()
    for episode in episodes:
        for step in episode.steps:
            step.observation = np.append(step.observation, 7.0)
        episode.final_observation = np.append(episode.final_observation, 7.0)
    result = train(episodes, tiny(scale_observations=True), action_radius=RADIUS)
    assert np.isfinite(result.policy.act(np.array([0.1, 0.2, 7.0]))).all()


def test_leaves_torchs_settings_alone() -> None:
    threads = torch.get_num_threads()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    train(EPISODES, tiny(updates=2), action_radius=RADIUS)
    assert torch.get_num_threads() == threads and torch.equal(torch.get_rng_state(), before)


def test_learns_to_walk_home() -> None:
    episodes = make_episodes(count=30, steps=15)
    options = preset("fast", updates=250, batch_size=64, hidden=(32, 32), critic_learning_rate=3e-3)
    policy = train(episodes, options.replaced({"actor_learning_rate": 3e-3}), action_radius=RADIUS).policy
    positions = np.random.default_rng(9).uniform(-0.8, 0.8, (40, 2))
    start = np.linalg.norm(positions, axis=1)
    for _ in range(6):
        positions = positions + policy.act_batch(positions)
    assert np.median(np.linalg.norm(positions, axis=1)) < 0.5 * np.median(start)


def test_refuses_unknown_rewards_and_empty_runs() -> None:
    episodes = make_episodes(count=2)
    episodes[1].steps[3].reward = float("nan")
    with pytest.raises(UserError, match="1 of 2 episodes have steps without reward, the first is episode 1"):
        train(episodes, tiny(reward="recorded"), action_radius=RADIUS)
    with pytest.raises(UserError, match="no episode with a step"):
        train([], tiny(), action_radius=RADIUS)


def test_refuses_runs_of_different_plants_and_broken_observations() -> None:
    with pytest.raises(UserError, match="different dimensions"):
        train([*make_episodes(count=1), *make_episodes(count=1, size=3)], tiny(), action_radius=RADIUS)
    episodes = make_episodes(count=1)
    episodes[0].steps[0].observation[0] = np.inf
    with pytest.raises(UserError, match="observations hold NaN"):
        train(episodes, tiny(), action_radius=RADIUS)


def test_says_when_training_diverges() -> None:
    with pytest.raises(UserError, match="training diverged"):
        train(EPISODES, tiny(critic_learning_rate=1e15, actor_learning_rate=1e15), action_radius=RADIUS)


def test_tensorboard_is_optional(tmp_path: Path) -> None:
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(UserError, match="pip install tensorboard"):
            train(EPISODES, tiny(), action_radius=RADIUS, tensorboard=tmp_path)
    else:
        train(EPISODES, tiny(), action_radius=RADIUS, tensorboard=tmp_path)
        assert any(tmp_path.iterdir())
