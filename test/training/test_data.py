"""Training data from memory and from runs are the same, and rewards can be found in hindsight."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from training_samples import make_episodes

from lift_ros.bags import RunWriter, hindsight
from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.collection.records import Episode, Outcome
from lift_ros.errors import UserError
from lift_ros.scenario import load_scenario
from lift_ros.training.data import TrainingData, held_out, make_data
from lift_ros.training.runs import load_runs


def without_rewards(episodes: list[Episode]) -> list[Episode]:
    for episode in episodes:
        for step in episode.steps:
            step.reward = float("nan")
    return episodes


def from_episodes(episodes: list[Episode], reward: str = "recorded") -> TrainingData:
    return make_data(episodes_to_arrays(episodes), reward)


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
    assert (data.facts()["episodes"], data.facts()["steps"]) == (3, 12)


def test_leaves_out_episodes_without_a_step() -> None:
    episodes = make_episodes(count=3, steps=4)
    episodes[1].steps = []
    episodes[1].final_observation = np.empty(0)
    assert from_episodes(episodes).offsets.tolist() == [0, 4, 8]


def two_goals(numbers: list[int], seed: int = 0) -> Episode:
    """Return an episode of 2-dimensional actions whose steps approach the goals of these numbers."""
    (episode,) = make_episodes(1, len(numbers), seed=seed)
    for step, number in zip(episode.steps, numbers, strict=True):
        step.observation = np.concatenate([step.observation * (number == 0), step.observation])
    episode.final_observation = np.concatenate([np.zeros(2), episode.final_observation])
    return episode


def test_no_piece_leads_past_a_goal_that_was_reached_on_the_way() -> None:
    data = from_episodes([two_goals([0, 0, 1, 1, 1]), two_goals([0, 1])])
    assert data.offsets.tolist() == [0, 2, 5, 6, 7]
    assert data.terminated.tolist() == [False, True, False, True]
    assert np.array_equal(data.final_observations[0], data.observations[2])
    assert np.array_equal(data.final_observations[2], data.observations[6])
    assert data.facts()["episodes"] == 2


def test_zeros_that_come_and_go_are_no_goals() -> None:
    data = from_episodes([two_goals([0, 1, 0, 1]), two_goals([1, 1, 0]), two_goals([0, 1])])
    assert data.offsets.tolist() == [0, 4, 7, 8, 9]


def test_the_digest_tells_data_apart() -> None:
    assert from_episodes(make_episodes()).facts() == from_episodes(make_episodes()).facts()
    assert from_episodes(make_episodes()).facts()["digest"] != from_episodes(make_episodes(seed=1)).facts()["digest"]


def test_hindsight_labels_like_the_one_for_episodes() -> None:
    episodes = without_rewards(make_episodes(count=7, steps=5))
    episodes[0].steps = make_episodes(count=1, steps=5)[0].steps  # this one has rewards and keeps them
    wanted, counts = hindsight(episodes)
    data = from_episodes(episodes, "hindsight")
    expected = from_episodes(wanted)
    assert np.array_equal(data.rewards, expected.rewards)
    assert np.array_equal(data.observations, expected.observations)
    assert data.offsets.tolist() == expected.offsets.tolist()
    assert (data.labelled, data.left_out) == (len(wanted) - 1, counts)


def test_hindsight_prefers_the_recorded_goal_of_a_run(tmp_path: Path) -> None:
    episodes = without_rewards(make_episodes(count=3, steps=5))
    goals = [np.array([0.1, 0.2]), np.empty(0), np.array([-0.1, 0.0])]
    for episode, goal in zip(episodes, goals, strict=True):
        episode.goal = goal
    write_run(tmp_path / "run", episodes)
    arrays = load_runs([tmp_path / "run"]).arrays
    assert np.array_equal(arrays.goals, [[0.1, 0.2], [np.nan, np.nan], [-0.1, 0.0]], equal_nan=True)
    rewards = make_data(arrays, "hindsight").rewards
    last = [episode.final_position for episode in episodes]
    assert rewards[4] == pytest.approx(-np.linalg.norm(last[0] - goals[0]))
    assert rewards[9] == 0.0  # nobody knows better than the last position
    assert episodes[2].outcome == Outcome.STEP_LIMIT
    assert rewards[14] == pytest.approx(-np.linalg.norm(last[2] - goals[2]))


def test_says_why_nothing_can_be_labelled() -> None:
    episodes = without_rewards(make_episodes(count=3)[2:])
    with pytest.raises(UserError, match="1 did not reach their goal"):
        from_episodes(episodes, "hindsight")


def test_recorded_rewards_are_insisted_on() -> None:
    episodes = make_episodes(count=3)
    without_rewards(episodes[1:2])
    with pytest.raises(UserError, match="1 of 3 episodes have steps without reward, the first is episode 1"):
        from_episodes(episodes, "recorded")


def test_runs_give_what_memory_gives(tmp_path: Path) -> None:
    episodes = make_episodes()
    write_run(tmp_path / "a", episodes[:4])
    write_run(tmp_path / "b", episodes[4:])
    recorded = load_runs([tmp_path / "a", tmp_path / "b"])
    assert make_data(recorded.arrays, "recorded").facts() == from_episodes(episodes).facts()
    assert recorded.action_radius == 0.3 and recorded.scenario is not None
    assert [source["episodes"] for source in recorded.sources] == [4, 2]
    assert recorded.sources[0]["sha256"] != recorded.sources[1]["sha256"]


def test_the_first_episodes_of_a_growing_run_are_always_the_same(tmp_path: Path) -> None:
    episodes = make_episodes(count=4)
    with RunWriter(tmp_path / "run", {}) as writer:
        for episode in episodes[:2]:
            writer.write_episode(episode)
        writer.write_step(replace(episodes[2].steps[0]))
        early = load_runs([tmp_path / "run"], episodes=2)
        with pytest.raises(UserError, match="episode 2"):
            load_runs([tmp_path / "run"], episodes=3)
        for step in episodes[2].steps[1:]:
            writer.write_step(step)
        writer.finish_episode(episodes[2])
        writer.write_episode(episodes[3])
    late = load_runs([tmp_path / "run"], episodes=2)
    assert early.sources == late.sources and late.sources[0]["episodes"] == 2
    assert make_data(early.arrays, "recorded").facts() == make_data(late.arrays, "recorded").facts()
    assert load_runs([tmp_path / "run"]).sources[0]["sha256"] != late.sources[0]["sha256"]


def test_a_file_that_is_still_written_has_no_hash(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", {}, episodes_per_file=3) as writer:
        for number, episode in enumerate(make_episodes(count=4), start=1):
            writer.write_episode(episode)
            source = load_runs([tmp_path / "run"], episodes=1).sources[0]
            assert source["episodes"] == 1 and (source["sha256"] is None) == (number < 3)
        assert load_runs([tmp_path / "run"], episodes=4).sources[0]["sha256"] is None


def test_refuses_to_mix_plants(tmp_path: Path) -> None:
    write_run(tmp_path / "a", make_episodes())
    write_run(tmp_path / "b", make_episodes(), "po-blend-d5")
    with pytest.raises(UserError, match="different action radii"):
        load_runs([tmp_path / "a", tmp_path / "b"])


@pytest.mark.parametrize(
    ("episodes", "share", "count"), [(100, 0.1, 10), (10, 0.01, 1), (9, 0.5, 0), (50, 0.0, 0), (0, 0.1, 0)]
)
def test_a_share_of_the_episodes_is_held_out(episodes: int, share: float, count: int) -> None:
    assert held_out(episodes, share, seed=0).sum() == count


def test_the_seed_says_which_episodes_are_held_out() -> None:
    assert (held_out(100, 0.2, 3) == held_out(100, 0.2, 3)).all()
    assert (held_out(100, 0.2, 3) != held_out(100, 0.2, 4)).any()


def with_goals(episodes: list[Episode], offset: np.ndarray) -> list[Episode]:
    return [replace(episode, goal=episode.final_position + offset) for episode in episodes]


def test_what_is_missing_to_recorded_goals_is_told_as_an_action() -> None:
    offset = np.array([0.01, -0.02])
    data = from_episodes(with_goals(make_episodes(count=3), offset))
    assert data.rests is not None
    assert data.rests[:2] == pytest.approx(np.tile(offset, (2, 1)))
    assert not data.rests[2].any()  # it was cut off: what is missing there is no rest


def test_a_plant_that_moves_half_as_far_needs_twice_the_action() -> None:
    offset = np.array([0.01, -0.02])
    episodes = with_goals(make_episodes(count=3), offset)
    for episode in episodes:
        episode.steps = [replace(step, action=2 * step.action) for step in episode.steps]
    data = from_episodes(episodes)
    assert data.rests is not None and data.rests[0] == pytest.approx(2 * offset)


def test_without_recorded_goals_or_positions_nothing_is_missing() -> None:
    unknown = from_episodes(make_episodes(count=3)).rests
    nowhere = [
        replace(episode, steps=[replace(step, position=np.empty(0)) for step in episode.steps],
                final_position=np.empty(0), goal=np.empty(0))
        for episode in make_episodes(count=3)
    ]  # fmt: skip
    found = from_episodes(nowhere).rests
    assert unknown is not None and found is not None and not unknown.any() and not found.any()


def test_what_is_missing_to_a_goal_in_passing_is_what_was_observed_of_it() -> None:
    offset = np.array([0.03, 0.0])
    first, second = two_goals([0, 0, 1, 1, 1]), two_goals([0, 1], seed=1)
    data = from_episodes(with_goals([first, second], offset))
    assert data.rests is not None and data.offsets.tolist() == [0, 2, 5, 6, 7]
    assert data.rests[0] == pytest.approx(-first.steps[2].position)  # both goals lie at zero
    assert not data.rests[2].any()  # a single step does not tell whether it is observed
    assert data.rests[1::2] == pytest.approx(np.tile(offset, (2, 1)))


def test_nothing_is_missing_to_a_goal_in_passing_that_was_not_observed() -> None:
    episodes = [two_goals([0, 0, 1, 1, 1], seed) for seed in range(2)]
    for step in episodes[0].steps:
        step.observation = np.concatenate([3.0 * step.observation[:2], step.observation[2:]])
    data = from_episodes(with_goals(episodes, np.array([0.03, 0.0])))
    assert data.rests is not None and not data.rests[0].any() and data.rests[1:].all(axis=0)[0]
