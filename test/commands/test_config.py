from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lift_ros.cli import main
from lift_ros.training.options import TrainingOptions


def in_force(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert main(["config", *map(str, words), "--json"]) == 0
    return {name: (entry["value"], entry["from"]) for name, entry in json.loads(capsys.readouterr().out).items()}


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "plant: {kind: positioning, distortion: none, dim: 2, action_radius: 0.3, threshold: 0.02}\n"
        "logging_policy: {name: noisy_coordinate_walk, arguments: {step: 0.05}}\n"
        "collection: {p: 0.4, episodes: 7}\n"
        "training: {updates: 20, draw: episodes}\n"
    )
    return path


def test_without_a_scenario_everything_is_a_default(capsys: pytest.CaptureFixture[str]) -> None:
    found = in_force(capsys)
    assert {origin for _, origin in found.values()} == {"default"}
    assert found["training.updates"] == (TrainingOptions().updates, "default")
    assert found["collection.p"] == (0.6, "default")


def test_each_value_comes_with_where_it_comes_from(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--preset", "paper", "--option", "tau=0.01", "--option", "hidden=8x8", "--episodes", 9, "--budget", 3)
    found = in_force(capsys, scenario, *words)
    assert found["plant.dim"] == (2, "scenario")
    assert found["plant.step_limit"] == (1000, "default")
    assert found["logging_policy.arguments.step"] == (0.05, "scenario")
    assert found["logging_policy.arguments.action_radius"] == (0.3, "plant")
    assert found["logging_policy.arguments.noise"] == (1.0, "default")
    assert found["collection.p"] == (0.4, "scenario")
    assert found["collection.episodes"] == (9, "command line")
    assert found["collection.augmentation_budget"] == (3, "command line")
    assert found["assist.window"] == (8, "default")
    assert found["training.updates"] == (20, "scenario")
    assert found["training.draw"] == ("episodes", "scenario")
    assert found["training.batch_size"] == (500, "preset paper")
    assert found["training.tau"] == (0.01, "command line")
    assert found["training.hidden"] == ([8, 8], "command line")
    assert found["training.gamma"] == (0.99, "default")


def test_a_run_tells_how_it_was_made(tmp_path: Path, scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    words = ["--augmentation", "uniform", "--p", "0.25", "--budget", "4", "--episodes", "1", "--quiet"]
    assert main(["collect", "--scenario", str(scenario), "--out", str(run), *words]) == 0
    capsys.readouterr()
    found = in_force(capsys, run)
    assert found["collection.p"] == (0.25, "run")
    assert found["collection.augmentation_budget"] == (4, "run")
    assert found["collection.augmentation"] == ("uniform", "run")
    assert found["training.updates"] == (20, "run")
    assert found["training.batch_size"] == (256, "default")


def test_people_get_a_table_and_only_changes_where_they_want(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", str(scenario), "--changed", "--updates", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"scenario: {scenario}"
    assert "default" not in {line.split()[-1] for line in lines}
    assert ["training.updates", "5", "command", "line"] in [line.split() for line in lines]


def test_mistakes_are_named(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "po-blend-2d"]) == 2
    assert "did you mean 'po-blend-d2'?" in capsys.readouterr().err
    assert main(["config", str(scenario), "--p", "60"]) == 2
    assert "--p is 60; allowed: between 0 and 1, it is a probability; 60 % is --p 0.6" in capsys.readouterr().err
    assert main(["config", str(scenario), "--budget", "-1"]) == 2
    assert "--budget is -1" in capsys.readouterr().err
    assert main(["config", str(tmp_path)]) == 2
    assert "it is no bag" in capsys.readouterr().err


def test_the_scenario_may_be_an_option_as_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "po-blend-d2"]) == 0
    shown = capsys.readouterr().out
    assert main(["config", "--scenario", "po-blend-d2"]) == 0
    assert capsys.readouterr().out == shown
