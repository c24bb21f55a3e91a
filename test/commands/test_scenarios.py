from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lift_ros.cli import main
from lift_ros.scenario import config_folder, scenario_names


def test_lists_what_comes_along_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios"]) == 0
    output = capsys.readouterr().out
    for name in scenario_names():
        assert f"{name} " in output
    assert "po-blend-d5           5 → 5, λ 0.5" in output
    assert max(map(len, output.splitlines())) <= 80


def test_names_alone_and_everything_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", "--names"]) == 0
    assert capsys.readouterr().out.splitlines() == scenario_names()
    assert main(["scenarios", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["fetch-touch-and-place"]
    assert (facts["plant"], facts["observation_size"], facts["action_size"]) == ("fetch_touch_and_place", 6, 3)


def test_a_folders_own_scenarios_are_listed_and_wrong_ones_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(config_folder() / "po-none-d2.yaml", tmp_path / "mine.yml")
    (tmp_path / "wrong.yaml").write_text("plant: {kind: positionin}\nlogging_policy: {name: direct}\n")
    (tmp_path / "parameters.yaml").write_text("rig: {travel: 2}\n")
    assert main(["scenarios", str(tmp_path), "--names"]) == 2
    printed = capsys.readouterr()
    assert [line for line in printed.out.splitlines() if str(tmp_path) in line] == [str(tmp_path / "mine.yml")]
    assert "wrong.yaml: plant.kind is 'positionin'" in printed.err
    assert "parameters.yaml" not in printed.out + printed.err


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", str(tmp_path / "nowhere")]) == 2
    assert "nowhere is no folder" in capsys.readouterr().err
