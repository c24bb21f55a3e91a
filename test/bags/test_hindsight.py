"""Rewards from the goal or the last position, and how far they are from measured ones."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bag_samples import sample_episode

from lift_ros.bags import RunWriter, hindsight, read_run, seen_part
from lift_ros.bags.hindsight import NO_POSITIONS, UNFINISHED
from lift_ros.collection.loop import run_episode
from lift_ros.collection.records import Episode, Outcome, same
from lift_ros.scenario import load_scenario


def unrewarded(episode: Episode) -> Episode:
    return replace(episode, steps=[replace(step, reward=math.nan) for step in episode.steps])


@pytest.mark.parametrize("name", ["po-none-d2", "po-scale-d5"])
def test_labels_agree_with_simulated_rewards_up_to_theta(name: str) -> None:
    scenario = load_scenario(name)
    problem = scenario.make_problem()
    episodes = [
        run_episode(problem, scenario.make_logging_policy(), index=index, run_seed=1, clock=lambda: 0)
        for index in range(6)
    ]
    reached = [episode for episode in episodes if episode.outcome == Outcome.REACHED]
    assert reached
    blind = [replace(unrewarded(episode), goal=np.empty(0)) for episode in reached]
    labelled, counts = hindsight(blind)
    assert counts == {}
    differences = [
        abs(step.reward - truth.reward)
        for episode, original in zip(labelled, reached, strict=True)
        for step, truth in zip(episode.steps, original.steps, strict=True)
    ]
    assert 0 < max(differences) <= scenario.plant.parameters["threshold"]
    assert all(episode.steps[-1].reward == 0 for episode in labelled)
    with_goals, _ = hindsight([unrewarded(episode) for episode in reached])
    for episode, original in zip(with_goals, reached, strict=True):
        assert [step.reward for step in episode.steps] == pytest.approx([step.reward for step in original.steps])
        assert episode.steps[-1].reward < 0


@pytest.mark.parametrize("known", [True, False])
def test_the_formula(known: bool) -> None:
    episode = unrewarded(sample_episode(1, 3))
    episode.goal = episode.final_position + 0.25 if known else np.empty(0)
    ((labelled,), _) = hindsight([episode])
    goal = episode.goal if known else episode.final_position
    after = (episode.steps[1].position, episode.steps[2].position, episode.final_position)
    assert [step.reward for step in labelled.steps] == pytest.approx([-math.dist(p, goal) for p in after])
    assert all(math.isnan(step.reward) for step in episode.steps), "the original must not change"


def test_a_goal_of_another_size_than_positions_is_no_place_to_measure_from() -> None:
    episode = replace(unrewarded(sample_episode(1, 3)), goal=np.zeros(7))
    ((labelled,), _) = hindsight([episode])
    assert labelled.steps[-1].reward == 0


def test_measured_rewards_stay() -> None:
    episode = sample_episode(1)
    ((kept,), counts) = hindsight([episode])
    assert kept is episode
    assert counts == {}


def test_a_partly_measured_episode_is_labelled_as_a_whole() -> None:
    episode = replace(sample_episode(1), goal=np.empty(0))
    episode.steps[0].reward = math.nan
    ((labelled,), _) = hindsight([episode])
    assert labelled.steps[1].reward == pytest.approx(-math.dist(episode.steps[2].position, episode.final_position))


@pytest.mark.parametrize("outcome", [Outcome.STEP_LIMIT, Outcome.ABORTED, Outcome.RECOVERED])
def test_who_did_not_arrive_at_an_unknown_goal_is_left_out_and_counted(outcome: Outcome) -> None:
    stray = replace(unrewarded(sample_episode(0)), outcome=outcome, goal=np.empty(0))
    good = unrewarded(sample_episode(1))
    kept, counts = hindsight([stray, good, stray])
    assert [episode.index for episode in kept] == [1]
    assert counts == {UNFINISHED: 2}


def test_who_did_not_arrive_at_a_known_goal_is_labelled_too() -> None:
    goal = np.full(sample_episode(0).final_position.size, 2.0)
    stray = replace(unrewarded(sample_episode(0)), outcome=Outcome.STEP_LIMIT, goal=goal)
    ((labelled,), counts) = hindsight([stray])
    assert counts == {} and labelled.steps[-1].reward == pytest.approx(-math.dist(stray.final_position, goal))


def test_without_positions_nothing_can_be_labelled() -> None:
    blind = replace(unrewarded(sample_episode(0)), final_position=np.empty(0))
    assert hindsight([blind]) == ([], {NO_POSITIONS: 1})


def test_the_seen_part_of_a_recovered_episode_ends_with_an_observation(tmp_path: Path) -> None:
    whole = sample_episode(0, image=True)
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        for step in whole.steps[:3]:
            writer.write_step(step)
    (episode,) = read_run(tmp_path / "run")
    part = seen_part(episode)
    assert same(part.steps, whole.steps[:2])
    assert same(part.final_observation, whole.steps[2].observation)
    assert same(part.final_position, whole.steps[2].position)
    assert same(part.final_image, whole.steps[2].image)
    assert part.outcome == Outcome.RECOVERED
    assert seen_part(whole) is whole
