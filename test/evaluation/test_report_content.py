"""The report's content comes from the runs themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from training_samples import make_episodes, tiny

from lift_ros.bags.writer import RunWriter
from lift_ros.cli import main
from lift_ros.collection.loop import run_episode
from lift_ros.collection.records import Mode
from lift_ros.errors import UserError
from lift_ros.evaluation.phases import Phase
from lift_ros.evaluation.report import collect_content
from lift_ros.scenario import Scenario, load_scenario
from lift_ros.training import train


def record(path: Path, scenario: Scenario, mode: Mode, episodes: int = 2) -> Path:
    """Record a run; the direct policy stands in for a learned one."""
    policy, direct, problem = scenario.make_logging_policy(), scenario.make_policy("direct"), scenario.make_problem()
    with RunWriter(path, {"scenario": scenario.name, "parameters": scenario.as_dict(), "seed": 3}) as writer:
        for index in range(episodes):
            writer.write_episode(
                run_episode(problem, policy, direct, index=index, run_seed=3, mode=mode, p=0.0, budget=0)
            )
    problem.close()
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    scenario = load_scenario("po-none-d2")
    return [
        record(folder / "collected", scenario, Mode.COLLECT),
        record(folder / "evaluated", scenario, Mode.EVALUATE),
    ]


def test_all_episodes_of_all_runs_are_there(runs: list[Path]) -> None:
    content = collect_content(runs)
    assert len(content.episodes) == 4
    assert set(content.scores) == {Phase.LOGGING_POLICY, Phase.LEARNED_POLICY}


def test_facts_of_each_run_are_shown(runs: list[Path]) -> None:
    assert collect_content(runs).parameters["runs"]["collected"]["seed"] == 3


def test_scores_take_the_logging_policy_as_reference(runs: list[Path]) -> None:
    assert collect_content(runs).scores[Phase.LOGGING_POLICY].coverage == 1.0


def test_runs_of_different_scenarios_do_not_mix(runs: list[Path], tmp_path: Path) -> None:
    other = record(tmp_path / "other", load_scenario("po-blend-d2"), Mode.COLLECT, 1)
    with pytest.raises(UserError, match="po-blend-d2.*po-none-d2"):
        collect_content([runs[0], other])


def test_a_run_without_episodes_is_refused(tmp_path: Path) -> None:
    empty = record(tmp_path / "empty", load_scenario("po-none-d2"), Mode.COLLECT, 0)
    with pytest.raises(UserError, match="no episodes"):
        collect_content([empty])


def test_the_command_writes_the_page(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *map(str, runs), "--out", str(tmp_path / "page.html")]) == 0
    assert "learned policy" in capsys.readouterr().out
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_the_page_shows_what_the_bags_let_expect_of_a_model(runs: list[Path], tmp_path: Path) -> None:
    model, page = tmp_path / "m.safetensors", tmp_path / "page.html"
    train(make_episodes(), tiny(), action_radius=0.3, out=model)
    ((name, success, _, verdict, measured),) = collect_content(runs, models=[model]).predictions
    assert (name, measured) == ("m.safetensors", "–") and success.startswith("0.")
    assert "it rests on 2 episodes" in verdict  # those that were evaluated are not among them
    assert main(["report", *map(str, runs), "--model", str(model), "--out", str(page)]) == 0
    assert "Predicted from the bags alone" in page.read_text()


def test_measured_success_stands_beside_the_predicted_one(tmp_path: Path) -> None:
    scenario, model = load_scenario("po-none-d2"), tmp_path / "m.safetensors"
    policy = train(make_episodes(), tiny(), action_radius=0.3, out=model).policy
    runs = [record(tmp_path / "collected", scenario, Mode.COLLECT), tmp_path / "evaluated"]
    problem = scenario.make_problem()
    with RunWriter(runs[1], {"scenario": scenario.name, "parameters": scenario.as_dict()}) as writer:
        writer.write_episode(run_episode(problem, None, policy, index=0, run_seed=3, mode=Mode.EVALUATE))
    assert collect_content(runs, models=[model]).predictions[0][-1] == "0.00 of 1"
