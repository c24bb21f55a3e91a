from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from sample_run import drive, write_run

from lift_ros.cli import main


def test_minari(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [drive(0, 3), drive(1, 2, rewarded=False)])
    assert main(["export", str(run), "--to", "minari", "--out", str(tmp_path / "sets" / "drives")]) == 0
    output = capsys.readouterr().out
    assert "drives-v0: 2 episodes, 5 steps" in output
    assert f"MINARI_DATASETS_PATH={tmp_path / 'sets'} and minari.load_dataset('drives-v0')" in output
    assert (tmp_path / "sets" / "drives-v0" / "data" / "main_data.hdf5").exists()


def test_onnx_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[tuple[Path, Path]] = []
    fake = types.ModuleType("lift_ros.training.onnx_export")
    fake.export_onnx = lambda model, out: calls.append((model, out))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lift_ros.training.onnx_export", fake)
    assert main(["export", "a.model", "--to", "onnx", "--out", "b.onnx"]) == 0
    assert calls == [(Path("a.model"), Path("b.onnx"))]
    assert "b.onnx written" in capsys.readouterr().out
    assert main(["export", "a.model", "b.model", "--to", "onnx", "--out", "b.onnx"]) == 2
    assert "takes one model file, not 2" in capsys.readouterr().err


def test_unknown_run_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "absent"), "--to", "minari", "--out", str(tmp_path / "set")]) == 2
    assert "does not exist" in capsys.readouterr().err
