"""The report's content comes from the runs themselves."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from report_samples import make_episode
from sample_run import drive, write_run
from training_samples import make_episodes, tiny

from lift_ros.bags.writer import RunWriter
from lift_ros.cli import main
from lift_ros.collection.loop import run_episode
from lift_ros.collection.records import Mode, Outcome, Source
from lift_ros.errors import UserError
from lift_ros.evaluation.paths import distances
from lift_ros.evaluation.phases import Phase
from lift_ros.evaluation.report import collect_content, tell_story
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


def page_of(*words: object) -> str:
    """Return the report as text, without its pictures."""
    *_, out = words
    assert main(["report", *map(str, words[:-1]), "--out", str(out)]) == 0
    return re.sub(r"base64,[^\"]*", "", Path(str(out)).read_text())


def hardware_facts() -> dict[str, object]:
    plant = {"kind": "hardware", "observation_size": 3, "action_size": 2, "action_radius": 2.0, "threshold": 0.1}
    walk = {"name": "lift_ros.policies.coordinate_walk:CoordinateWalk", "arguments": {"step": 0.1}}
    parameters = {"plant": plant, "logging_policy": walk, "units": {"length": "mm", "observations": []}}
    return {"scenario": "lens", "parameters": parameters, "seed": 0}


def test_a_run_without_measured_rewards_is_labelled_in_hindsight(tmp_path: Path) -> None:
    episodes = [drive(0, 8, rewarded=False), drive(1, 4, rewarded=False, augmented=2)]
    lost = drive(2, 5, rewarded=False, outcome=Outcome.STEP_LIMIT)
    run = write_run(tmp_path / "run", [*episodes, lost], hardware_facts())
    content = collect_content([run])
    measured = [drive(0, 8), drive(1, 4, augmented=2)]
    assert [episode.episode_return for episode in content.episodes[:2]] == [item.episode_return for item in measured]
    assert np.allclose(distances(content.episodes[0]), distances(measured[0]))  # that of the start is known, too
    page = page_of(run, tmp_path / "page.html")
    assert "nan" not in page
    assert "Rewards of 2 episodes were not measured: their steps are judged in hindsight" in page
    assert "1 episodes have no return" in page
    assert "<th>return [mm]</th>" in page and "axis 1 [mm]" in page
    for title in ("Convergence", "Trajectories"):
        assert f"<h2>{title}</h2><figure>" in page
    assert page.count("Left out: 1 episodes") == 2


def test_an_imported_run_gets_a_report(tmp_path: Path) -> None:
    facts = {"imported_from": "bag", "mapping": {"goal": {"within": 0.25}}}
    run = write_run(tmp_path / "imported", [drive(0, 8, rewarded=False), drive(1, 6, rewarded=False)], facts)
    content = collect_content([run])
    assert (content.title, content.threshold) == ("LIFT on imported", 0.25)
    page = page_of(run, tmp_path / "page.html")
    assert "A routine&#x27;s episodes were imported: 2 episodes.</p>" in page
    assert "nan" not in page and "<h2>Convergence</h2><figure>" in page
    assert "lift import bag --mapping mapping.yaml" in page


def test_an_imported_run_without_positions_says_what_cannot_be_shown(tmp_path: Path) -> None:
    episode = drive(0, 8, rewarded=False)
    episode.final_position = episode.final_position[:0]
    for step in episode.steps:
        step.position = step.position[:0]
    page = page_of(write_run(tmp_path / "run", [episode], {"imported_from": "bag"}), tmp_path / "page.html")
    assert "nan" not in page and "Not shown: no episode tells its distance to the goal." in page
    assert "The observation of up to 12 episodes each in entry 1 and entry 2, the first two of 3." in page


def test_the_lead_tells_what_happened_and_no_more(runs: list[Path]) -> None:
    routine = "A scripted routine was recorded: 2 episodes."
    assert collect_content(runs[:1]).lead == routine
    assert collect_content(runs).lead == f"{routine} In 2 episodes a policy that was not trained acted alone."
    with_model = drive(0, 4, augmented=1)
    assert "an untrained augmentor acted now and then" in tell_story([with_model])
    with_model.steps[0].model_hash = "ab"
    assert tell_story([with_model]).startswith("1 episodes were collected with LIFT: a trained augmentor acted")


def test_the_story_of_assist_tells_how_often_the_routine_had_to_finish() -> None:
    alone, helped = (make_episode(3, Mode.ASSIST, source) for source in (Source.AUGMENTOR, Source.LOGGING_POLICY))
    told = tell_story([alone, helped])
    assert told.startswith("In 2 episodes ") and told.endswith("with the routine behind it, which finished 1.")


@pytest.mark.parametrize("place", ["file/page.html", "folder", "/proc/page.html"])
def test_a_place_that_cannot_be_written_is_told_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert main(["report", str(tmp_path / "no run"), "--out", str(tmp_path / place)]) == 2
    error = capsys.readouterr().err
    assert "cannot write" in error and Path(place).name in error and "Traceback" not in error


@pytest.mark.parametrize("warns", [True, False])
def test_that_the_guard_had_to_act_is_told_at_the_top(tmp_path: Path, warns: bool) -> None:
    scenario = load_scenario("po-blend-d2").as_dict()
    scenario["guard"] |= {"plain": 1, "allowance": 1.01 if warns else 100.0}
    (tmp_path / "rig.yaml").write_text(yaml.safe_dump(scenario))
    words = ["--augmentation", "uniform", "--episodes", "9", "--seed", "1", "--out", str(tmp_path / "run")]
    assert main(["collect", "--scenario", str(tmp_path / "rig.yaml"), *words]) == 0
    content = collect_content([tmp_path / "run"])
    assert content.guard[-1].warns is warns
    assert content.notes == ([str(content.guard[-1])] if warns else [])
