"""Training data from memory and from runs are the same, and rewards can be found in hindsight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from training_samples import make_episodes

from lift_ros.bags import RunWriter, hindsight
from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.scenario import load_scenario
from lift_ros.training.data import from_arrays, from_episodes
from lift_ros.training.runs import load_runs


def without_rewards(episodes: list[Episode]) -> list[Episode]:
    for episode in episodes:
        for step in episode.steps:
            step.reward = float("nan")
    return episodes


def write_run(path: Path, episodes: list[Episode], scenario: str = "po-blend-d2") -> None:
    loaded = load_scenario(scenario)
    with RunWriter(path, {"scenario": loaded.name, "parameters": loaded.as_dict()}) as writer:
        for index, episode in enumerate(episodes):
            episode.index = index
            for step in episode.steps:
                step.episode = index
            writer.write_episode(episode)


def test_lays_episodes_end_to_end() -> None:
    episodes = make_episodes(count=3, steps=4)
    data = from_episodes(episodes)
    assert data.offsets.tolist() == [0, 4, 8, 12] and data.terminated.tolist() == [True, True, False]
    assert data.actions[5] == pytest.approx(episodes[1].steps[1].action)
    assert data.rewards[11] == episodes[2].steps[3].reward
    assert data.final_observations[1] == pytest.approx(episodes[1].final_observation)
    assert (data.episodes, data.steps) == (3, 12)


def test_leaves_out_episodes_without_a_step() -> None:
    episodes = make_episodes(count=3, steps=4)
    episodes[1].steps = []
    episodes[1].final_observation = np.empty(0)
    assert from_episodes(episodes).offsets.tolist() == [0, 4, 8]


def test_the_digest_tells_data_apart() -> None:
    assert from_episodes(make_episodes()).digest() == from_episodes(make_episodes()).digest()
    assert from_episodes(make_episodes()).digest() != from_episodes(make_episodes(seed=1)).digest()


def test_hindsight_labels_like_the_one_for_episodes() -> None:
    episodes = without_rewards(make_episodes(count=7, steps=5))
    episodes[0].steps = make_episodes(count=1, steps=5)[0].steps  # this one has rewards and keeps them
    wanted, counts = hindsight(episodes)
    data, left_out = from_arrays(episodes_to_arrays(episodes), "hindsight")
    expected = from_episodes(wanted)
    assert np.allclose(data.rewards, expected.rewards, atol=1e-12)
    assert np.array_equal(data.observations, expected.observations)
    assert data.offsets.tolist() == expected.offsets.tolist()
    assert left_out == counts


def test_says_why_nothing_can_be_labelled() -> None:
    episodes = without_rewards(make_episodes(count=3)[2:])
    with pytest.raises(UserError, match="1 did not reach their goal"):
        from_arrays(episodes_to_arrays(episodes), "hindsight")


def test_runs_give_what_memory_gives(tmp_path: Path) -> None:
    episodes = make_episodes()
    write_run(tmp_path / "a", episodes[:4])
    write_run(tmp_path / "b", episodes[4:])
    recorded = load_runs([tmp_path / "a", tmp_path / "b"])
    assert recorded.data.digest() == from_episodes(episodes).digest()
    assert recorded.action_radius == 0.3 and recorded.scenario is not None
    assert [source["episodes"] for source in recorded.sources] == [4, 2]
    assert recorded.sources[0]["sha256"] != recorded.sources[1]["sha256"]


def test_refuses_to_mix_plants(tmp_path: Path) -> None:
    write_run(tmp_path / "a", make_episodes())
    write_run(tmp_path / "b", make_episodes(), "po-blend-d5")
    with pytest.raises(UserError, match="different action radii"):
        load_runs([tmp_path / "a", tmp_path / "b"])
