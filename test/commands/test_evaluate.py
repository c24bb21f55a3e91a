"""`lift evaluate` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_run import drive, write_run
from training_samples import make_episodes, tiny, write_model

from lift_ros.bags.writer import RunWriter
from lift_ros.cli import main
from lift_ros.collection.loop import collect
from lift_ros.scenario import load_scenario
from lift_ros.training import train


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "m.safetensors"
    train(make_episodes(), tiny(), action_radius=0.3, out=path)
    return path


def test_prints_a_table_and_draws(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", str(model), "--scenario", "po-blend-d2", "--contexts", "3", "--steps", "10"]
    assert main([*words, "--plot", str(tmp_path / "c.png")]) == 0
    out = capsys.readouterr().out
    for name in ("m.safetensors", "logging", "direct", "secant", "optimal", "success", "distance at"):
        assert name in out
    assert (tmp_path / "c.png").stat().st_size > 1000


def test_prints_json_alone(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", str(model), "--scenario", "po-blend-d2", "--contexts", "2", "--seeds", "1", "2", "--json"]
    assert main(words) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert captured.err == "" and data["seeds"] == [1, 2]
    assert data["results"]["m.safetensors"]["contexts"] == 4
    assert set(data["results"]["optimal"]["distance"]) == {"5", "10", "30"}


def test_refuses_a_model_whose_steps_are_too_long_for_the_plant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(make_episodes(), tiny(), action_radius=0.4, out=tmp_path / "m.safetensors")
    assert main(["evaluate", str(tmp_path / "m.safetensors"), "--scenario", "po-blend-d2"]) == 2
    assert "makes steps up to 0.4, but po-blend-d2 allows 0.3" in capsys.readouterr().err


def test_refuses_what_does_not_fit(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "other.safetensors")
    assert main(["evaluate", str(tmp_path / "other.safetensors"), "--scenario", "po-blend-d2"]) == 2
    assert "observations of size 3" in capsys.readouterr().err
    assert main(["evaluate", str(model), "--scenario", "po-blent-d2"]) == 2
    assert "po-blend-d2" in capsys.readouterr().err
    assert main(["evaluate", str(model), "--scenario", "po-blend-d2", "--contexts", "0"]) == 2
    assert main(["evaluate", str(model), "--scenario", "po-blend-d2", "--seeds", "-1"]) == 2
    assert main(["evaluate", str(tmp_path / "none.safetensors"), "--scenario", "po-blend-d2"]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the routine, as `lift collect` records it."""
    path, scenario = tmp_path_factory.mktemp("runs") / "run", load_scenario("po-blend-d2")
    with RunWriter(path, {"scenario": scenario.name, "parameters": scenario.as_dict()}, sync=False) as writer:
        for episode in collect(scenario, episodes=12, seed=0, progress=False):
            writer.write_episode(episode)
    return path


def test_judges_by_runs_alone(model: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(model), "--run", str(run), "--plot", str(tmp_path / "p.png")]) == 0
    out = capsys.readouterr().out
    for words in ("twin of 12 episodes", "12 episodes held out", "goal within λ", "predicted success", "be trusted"):
        assert words in out
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_what_runs_tell_comes_as_json(model: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(model), str(model), "--run", str(run), "--json", "--steps", "9", "--seeds", "4"]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert captured.err == "" and (data["steps"], data["seed"], data["twin"]["threshold"]) == (9, 4, 0.02)
    assert set(data["results"]) == {"m.safetensors", str(model)} == set(data["models"])
    assert set(data["results"]["m.safetensors"]["comparison"]) >= {"angle", "length_ratio", "error"}
    assert 0 <= data["results"]["m.safetensors"]["prediction"]["success"] <= 1


def test_an_imported_run_without_positions_gives_the_comparison_alone(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    episodes = make_episodes()
    for episode in episodes:
        episode.final_position = episode.final_position[:0]
        for step in episode.steps:
            step.position = step.position[:0]
    bare = write_run(tmp_path / "bare", episodes, {"imported_from": "bag"})
    assert main(["evaluate", str(model), "--run", str(bare), "--plot", str(tmp_path / "p.png")]) == 0
    out = capsys.readouterr().out
    assert "no twin can be run, for no positions are recorded" in out and "6 episodes held out" in out
    for episode in episodes:
        for step in episode.steps:
            step.reward = float("nan")
    worse = write_run(tmp_path / "worse", episodes, {"imported_from": "bag"})
    assert main(["evaluate", str(model), "--run", str(worse)]) == 0
    assert "no comparison of actions: there is no episode" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--contexts", "5"], "--contexts belongs to --scenario"),
        (["--seeds", "1", "2"], "--run takes one seed"),
        (["--seeds", "-1"], "seeds must be 0 or more"),
        (["--steps", "0"], "must be at least 1"),
    ],
)
def test_refuses_what_a_run_cannot_take(
    model: Path, run: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["evaluate", str(model), "--run", str(run), *words]) == 2
    assert message in capsys.readouterr().err


def test_refuses_runs_that_do_not_fit(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_run(tmp_path / "other", [drive(0)])
    assert main(["evaluate", str(model), "--run", str(other)]) == 2
    assert "the runs have 3 and 2" in capsys.readouterr().err
    empty = write_run(tmp_path / "empty", [])
    assert main(["evaluate", str(model), "--run", str(empty)]) == 2
    assert "no episode with a step" in capsys.readouterr().err
    assert main(["evaluate", str(model), "--run", str(tmp_path / "none")]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_runs_and_a_scenario_exclude_each_other(model: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", str(model), "--run", str(run), "--scenario", "po-blend-d2"])
    assert "not allowed with" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["evaluate", str(model)])
    assert "required" in capsys.readouterr().err
