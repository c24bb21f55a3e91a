"""`lift evaluate` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from training_samples import make_episodes, tiny, write_model

from lift_ros.cli import main
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
