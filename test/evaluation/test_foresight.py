"""What is said of a model before anything moves."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from sample_run import drive
from sample_run import write_run as write_drives

from lift_ros.bags.writer import RunWriter
from lift_ros.collection.loop import collect
from lift_ros.console import for_programs
from lift_ros.errors import UserError
from lift_ros.evaluation.foresight import Outlook, predict, wilson_interval
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.scenario import load_scenario
from lift_ros.training import train
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import load_runs


def record(path: Path, name: str, episodes: int) -> Path:
    scenario = load_scenario(name)
    with RunWriter(path, {"scenario": name, "parameters": scenario.as_dict()}, sync=False) as writer:
        for episode in collect(scenario, episodes=episodes, seed=1, progress=False):
            writer.write_episode(episode)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("runs") / "run", "po-none-d2", 20)


@pytest.fixture(scope="module")
def policy(run: Path) -> LearnedPolicy:
    return train(load_runs([run]), TrainingOptions(updates=20), action_radius=0.3, threads=1).policy


def test_a_prediction_has_intervals_around_it(run: Path, policy: LearnedPolicy) -> None:
    twin = Outlook(load_runs([run]), [run]).twin
    assert twin is not None
    direct = load_scenario("po-none-d2").make_policy("direct")

    class Direct:
        def reset(self) -> None: ...

        act = direct.act

        def act_batch(self, observations):  # type: ignore[no-untyped-def]
            return [direct.act(row) for row in observations]

    good, poor = predict(twin, Direct()), predict(twin, policy)
    assert good.success == 1 and good.success_interval == pytest.approx((0.839, 1.0), abs=0.001)
    assert good.steps_interval[0] <= good.steps <= good.steps_interval[1] < 10
    assert poor.success < 0.5 and math.isinf(poor.steps)
    assert good.line().startswith("predicted success 1.00 [0.84, 1.00], steps ") and "can be trusted" in good.line()
    assert "more than 50 in most runs" in poor.line()


def test_everything_fits_into_json(run: Path, policy: LearnedPolicy) -> None:
    outlook = Outlook(load_runs([run]), [run])
    content = json.loads(json.dumps(for_programs({"twin": outlook.facts(), **outlook.judge(policy, "m").as_dict()})))
    assert content["twin"]["episodes"] == 20 and content["twin"]["threshold"] == 0.02
    assert content["prediction"]["trusted"] and content["prediction"]["steps"] is None
    assert content["held_out"] and content["comparison"]["episodes"] == 2


def test_the_twin_takes_all_episodes_and_the_comparison_those_held_out(run: Path, policy: LearnedPolicy) -> None:
    text = Outlook(load_runs([run]), [run]).judge(policy, "m").text()
    assert "of 2 episodes held out from training" in text


def test_where_none_was_held_out_the_text_says_so(run: Path) -> None:
    policy = train(load_runs([run]), TrainingOptions(updates=5, held_out=0.0), action_radius=0.3, threads=1).policy
    assert "of 20 episodes of the training itself" in Outlook(load_runs([run]), [run]).judge(policy, "m").text()


def test_without_a_twin_there_is_the_comparison_alone(tmp_path: Path, policy: LearnedPolicy) -> None:
    episodes = [drive(index, 5) for index in range(3)]
    for episode in episodes:
        for step in episode.steps:
            step.observation, step.position = step.observation[:2], step.position[:0]
        episode.final_observation, episode.final_position = episode.final_observation[:2], episode.final_position[:0]
        episode.goal = episode.goal[:0]
    run = write_drives(tmp_path / "run", episodes)
    foresight = Outlook(load_runs([run]), [run]).judge(policy, "m")
    assert foresight.line() == "no prediction: no twin can be run, for no positions are recorded"
    assert foresight.comparison is not None and foresight.comparison.episodes == 3


def test_a_model_of_another_plant_is_refused(tmp_path: Path, policy: LearnedPolicy) -> None:
    run = write_drives(tmp_path / "run", [drive(0)])
    with pytest.raises(UserError, match="observations of size 2 .* but the runs have 3 and 2"):
        Outlook(load_runs([run]), [run]).judge(policy, "m")


def test_a_run_without_episodes_is_refused(tmp_path: Path) -> None:
    run = write_drives(tmp_path / "run", [])
    with pytest.raises(UserError, match="no episode with a step"):
        Outlook(load_runs([run]), [run])


@pytest.mark.parametrize(("share", "count", "expected"), [(0.5, 100, (0.404, 0.596)), (0.0, 10, (0.0, 0.278))])
def test_the_interval_is_wilsons(share: float, count: int, expected: tuple[float, float]) -> None:
    assert wilson_interval(share, count) == pytest.approx(expected, abs=0.001)
