"""What is told before training: steps and λ, shortcuts, arrivals, scale, and whether observations tell the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from training_samples import make_episodes

from benchmark.coupling import RADIUS, FibreRig, couple
from lift_ros.bags.arrays import EpisodeArrays, episodes_to_arrays
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode, Outcome, Source
from lift_ros.console import for_programs
from lift_ros.errors import UserError
from lift_ros.policies.routines import GeneratorPolicy
from lift_ros.scenario import load_scenario
from lift_ros.shortcuts.sampler import ShortcutSampler
from lift_ros.training.data import make_data
from lift_ros.training.options import TrainingOptions
from lift_ros.training.preflight import Preflight, check_runs


def fibre(encoders: str, episodes: int = 20) -> EpisodeArrays:
    routine = GeneratorPolicy(couple, {}, "couple")
    return episodes_to_arrays(collect(FibreRig(encoders), routine, episodes=episodes, seed=1, progress=False))


def checked(episodes: list[Episode] | EpisodeArrays, radius: float | None = 0.3, **options: Any) -> Preflight:
    arrays = episodes if isinstance(episodes, EpisodeArrays) else episodes_to_arrays(episodes)
    limit = options.pop("limit", None)
    return check_runs(arrays, TrainingOptions(**options), action_radius=radius, limit=limit)


def stretched(episodes: list[Episode], factor: float) -> list[Episode]:
    for episode in episodes:
        for step in episode.steps:
            step.action = factor * step.action
    return episodes


@pytest.mark.parametrize("name", ["po-blend-d2", "po-regrot-d5", "fetch-reach"])
def test_shipped_scenarios_tell_the_direction(name: str) -> None:
    scenario = load_scenario(name)
    arrays = episodes_to_arrays(collect(scenario, episodes=12, seed=0, progress=False))
    preflight = checked(arrays, scenario.action_radius, limit=scenario.action_radius)
    assert preflight.direction is not None and preflight.direction.score > 0.7
    assert preflight.direction.constant < 0.5
    assert not preflight.refusals() and not preflight.warnings()
    assert any(line.startswith("direction: observations tell it: mean cosine 0.") for line in preflight.lines())


def test_encoders_that_count_from_anywhere_do_not_tell_the_direction() -> None:
    preflight = checked(fibre("arbitrary"), RADIUS)
    direction = preflight.direction
    assert direction is not None and direction.score < 0.2 and direction.is_told is False
    assert preflight.arrivals == preflight.episodes == 20
    (warning,) = preflight.warnings()
    assert "observations do not tell the direction to the goal" in warning and "without memory" in warning
    assert preflight.as_dict()["tells_direction"] is False


def test_a_path_that_gives_the_goal_away_later_does_not_help_to_set_out() -> None:
    direction = checked(fibre("start"), RADIUS).direction
    assert direction is not None
    assert direction.at_beginning < 0.4 and direction.is_told is False


def test_the_same_rig_is_fine_where_encoders_tell_the_place() -> None:
    direction = checked(fibre("absolute"), RADIUS).direction
    assert direction is not None and direction.score > 0.9


def test_a_direction_that_is_always_the_same_needs_no_observation() -> None:
    rng = np.random.default_rng(0)
    episodes = make_episodes(count=10)
    for episode in episodes:
        for step in episode.steps:
            step.action = np.array([0.1, 0.0])
            step.observation = rng.normal(size=2)
    direction = checked(episodes).direction
    assert direction is not None and direction.constant > 0.9 and direction.is_told


def test_the_same_runs_give_the_same_numbers() -> None:
    arrays = fibre("arbitrary", 8)
    assert checked(arrays, RADIUS) == checked(arrays, RADIUS)


def test_few_episodes_are_not_judged() -> None:
    preflight = checked(make_episodes(count=3))
    assert preflight.direction is not None and preflight.direction.is_told is None
    assert "5 are needed" in preflight.lines()[-1] and not preflight.warnings()
    assert for_programs(preflight.as_dict())["direction"]["cosine"] is None


def test_lengths_are_the_routines_own() -> None:
    episodes = make_episodes()
    lengths = [float(np.linalg.norm(step.action)) for episode in episodes for step in episode.steps]
    for episode in episodes:
        episode.steps[3].source = Source.AUGMENTOR
        episode.steps[3].action = np.array([5.0, 0.0])
    steps = checked(episodes, 10.0).steps
    assert steps.count == 42 and steps.longest <= max(lengths)


@pytest.mark.parametrize(
    ("limit", "suggested", "words"),
    [
        (None, 2.5, "5 times or more, from 2.5 on"),
        (4.0, 2.5, "from 2.5 on"),
        (2.0, 2.0, "all that the scenario allows"),
    ],
)
def test_the_suggested_radius_is_five_times_the_usual_step_as_far_as_the_plant_allows(
    limit: float | None, suggested: float, words: str
) -> None:
    episodes = make_episodes()
    for episode in episodes:
        for step in episode.steps:
            step.action = np.array([0.0, 0.5])
    preflight = checked(episodes, None, limit=limit)
    assert preflight.radius.suggested == pytest.approx(suggested)
    assert words in preflight.lines()[1]


def test_a_radius_below_the_recorded_steps_is_refused_with_the_remedy() -> None:
    episodes = stretched(make_episodes(), 10.0)
    (refusal,) = checked(episodes).refusals()
    assert "λ is 0.3" in refusal and "give --action-radius" in refusal
    (limited,) = checked(episodes, limit=0.3).refusals()
    assert "raise plant.action_radius" in limited and "--action-radius" not in limited


def test_little_room_is_a_warning() -> None:
    preflight = checked(make_episodes(), 0.3)
    assert not preflight.refusals()
    assert any("little room for shortcuts" in warning for warning in preflight.warnings())
    assert not any("little room" in warning for warning in checked(make_episodes(), 1.0).warnings())


def test_shortcuts_are_those_of_the_sampler() -> None:
    arrays = episodes_to_arrays(make_episodes())
    data = make_data(arrays, "hindsight")
    columns = (data.observations, data.actions, data.rewards, data.offsets, data.terminated, data.final_observations)
    sampler = ShortcutSampler(*columns, action_radius=0.3)
    found = checked(arrays).shortcuts
    assert found is not None and found.count == sampler.pairs - sampler.transitions > 0
    assert 0 < found.share < 1 and 0 < found.starts < 1


def test_runs_without_arrivals_are_refused() -> None:
    episodes = make_episodes()
    assert checked(episodes).arrivals == 4
    for episode in episodes:
        episode.outcome = Outcome.STEP_LIMIT
    (refusal,) = checked(episodes).refusals()
    assert "none of 6 episodes reached its goal" in refusal


def test_unknown_rewards_leave_shortcuts_and_direction_unknown() -> None:
    episodes = make_episodes()
    for episode in episodes:
        episode.outcome = Outcome.STEP_LIMIT
        for step in episode.steps:
            step.reward = float("nan")
    preflight = checked(episodes)
    assert preflight.shortcuts is None and preflight.direction is None
    assert sum("unknown: no episode has rewards" in line for line in preflight.lines()) == 2


def test_entries_that_stand_still_or_are_switched_are_named() -> None:
    episodes = make_episodes(count=10)
    for episode in episodes:
        for step in episode.steps:
            switched = 0.0 if step.index > 4 else 2.0 + step.observation[0]
            step.observation = np.append(step.observation, [7.0, switched])
        episode.final_observation = np.append(episode.final_observation, [7.0, 0.0])
    preflight = checked(episodes)
    assert [entry.kind for entry in preflight.entries] == ["varies", "varies", "constant", "switch"]
    assert preflight.entries[3].zeros == pytest.approx(3 / 8)
    assert "entry 2 never changes; entry 3 is switched to exactly zero" in preflight.lines()[4]
    assert "constant" in preflight.entry_table()


def test_unscaled_observations_of_a_far_scale_are_a_warning() -> None:
    episodes = make_episodes()
    for episode in episodes:
        for step in episode.steps:
            step.observation = 1000 * step.observation
    assert any(
        "scale_observations=true" in warning for warning in checked(episodes, scale_observations=False).warnings()
    )
    assert not any("scale_observations" in warning for warning in checked(episodes).warnings())


def test_nothing_recorded_is_said() -> None:
    with pytest.raises(UserError, match="no episode with a step"):
        checked([])
