"""The command line with a plant whose models see pictures: record, look, train, judge, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lift_ros.cli import main

TINY = ["--updates", "3", "--option", "lessons=2", "--option", "batch_size=8", "--option", "maps=4x4", "--threads", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    run, model = str(folder / "run"), str(folder / "m.safetensors")
    assert main(["collect", "--scenario", "light-tunnel", "--episodes", "10", "--p", "0", "--out", run, "--quiet"]) == 0
    assert main(["train", run, "--out", model, *TINY]) == 0
    return folder


def test_a_model_says_what_it_sees(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(folder / "m.safetensors")]) == 0
    assert "image: 32×32 32FC3; networks see 32×32, channels: 3" in capsys.readouterr().out


def test_bags_judge_a_model_of_pictures_by_held_out_episodes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(folder / "m.safetensors"), "--run", str(folder / "run")]) == 0
    said = capsys.readouterr().out
    assert "best shortcuts of 1 episodes held out from training" in said
    assert "models see pictures, which it cannot draw" in " ".join(said.split())


def test_a_scenario_judges_it_beside_its_routine(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--scenario", "light-tunnel", "--contexts", "2", "--steps", "2"]
    assert main(["evaluate", str(folder / "m.safetensors"), *asked]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "direct and secant cannot be run: models are shown image, not the offset" in said


def test_before_training_is_said_what_only_pictures_tell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(folder / "run"), "--out", str(folder / "again.safetensors"), *TINY]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "observations: pictures" in said and "direction: is to be found in pictures" in said


def test_the_same_training_is_known_again_and_another_one_is_spared(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = ["train", str(folder / "run"), "--out", str(folder / "m.safetensors")]
    assert main([*again, *TINY]) == 0
    assert main([*again, "--updates", "4"]) == 2
    assert "not of this training" in " ".join(capsys.readouterr().err.split())


def test_a_model_lends_its_eyes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["train", str(folder / "run"), "--out", str(folder / "clone.safetensors"), "--algorithm", "clone", *TINY]
    assert main([*asked, "--eyes", str(folder / "m.safetensors")]) == 0
    assert main([*asked, "--eyes", str(folder / "m.safetensors")]) == 0  # it is known again
    assert main(asked) == 2
    assert "not of this training" in " ".join(capsys.readouterr().err.split())


def test_a_model_of_pictures_does_not_drive_a_plant_without(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(folder / "m.safetensors"), "--scenario", "po-blend-d2", "--contexts", "1"]) == 2
    assert "sees image, but po-blend-d2 shows values" in " ".join(capsys.readouterr().err.split())


def test_onnx_has_no_words_for_pictures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["export", str(folder / "m.safetensors"), "--to", "onnx", "--out", str(folder / "m.onnx")]
    assert main(asked) == 2
    assert "ONNX has no words for" in " ".join(capsys.readouterr().err.split())
