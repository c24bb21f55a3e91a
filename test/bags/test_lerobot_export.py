"""Datasets of LeRobot, read with pyarrow as its loader does; docs/page.md says what its own loader was tried with."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_run import drive, write_run

from lift_ros.bags.exporting import lerobot
from lift_ros.bags.exporting.lerobot import export_lerobot
from lift_ros.cli import main
from lift_ros.collection.records import Outcome
from lift_ros.errors import UserError

parquet = pytest.importorskip("pyarrow.parquet", reason="pip install 'lift_ros[export]'")


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Return info, all frames as columns, the list of episodes and statistics."""
    info = json.loads((folder / "meta/info.json").read_text())
    tables = [parquet.read_table(path) for path in sorted(folder.glob("data/*/*.parquet"))]
    frames: dict[str, Any] = {}
    for table in tables:
        for name in table.column_names:
            frames.setdefault(name, []).extend(table[name].to_pylist())
    episodes = parquet.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    return info, frames, episodes, json.loads((folder / "meta/stats.json").read_text())


def test_frames_are_the_steps(tmp_path: Path) -> None:
    recorded = [drive(0, 4), drive(1, 3, outcome=Outcome.STEP_LIMIT)]
    run = write_run(tmp_path / "run", recorded, {"scenario": "stage"})
    report = export_lerobot([run], tmp_path / "set", fps=5)
    assert (report.episodes, report.steps, report.left_out) == (2, 7, {})
    info, frames, episodes, statistics = read(tmp_path / "set")
    assert (info["codebase_version"], info["fps"], info["robot_type"]) == ("v3.0", 5, "stage")
    assert (info["total_episodes"], info["total_frames"], info["splits"]) == (2, 7, {"train": "0:2"})
    assert info["features"].keys() == frames.keys()
    steps = [step for episode in recorded for step in episode.steps]
    assert np.allclose(frames["observation.state"], [step.observation for step in steps])
    assert np.allclose(frames["action"], [step.action for step in steps])
    assert np.allclose(frames["next.reward"], [step.reward for step in steps])
    assert frames["index"] == list(range(7))
    assert frames["frame_index"] == [0, 1, 2, 3, 0, 1, 2]
    assert np.allclose(frames["timestamp"], np.array(frames["frame_index"]) / 5)
    assert frames["next.done"] == [False, False, False, True, False, False, True]
    assert frames["next.success"] == [False, False, False, True, False, False, False]
    assert [(each["dataset_from_index"], each["dataset_to_index"]) for each in episodes] == [(0, 4), (4, 7)]
    assert statistics["action"]["mean"] == pytest.approx(np.mean([step.action for step in steps], axis=0), rel=1e-5)
    assert statistics["action"]["std"] == pytest.approx(np.std([step.action for step in steps], axis=0), abs=1e-6)
    assert statistics["index"]["count"] == [7]


def test_the_task_is_the_index_of_its_table_as_pandas_reads_it(tmp_path: Path) -> None:
    export_lerobot([write_run(tmp_path / "run", [drive(0, 2)], {"scenario": "stage"})], tmp_path / "set")
    table = parquet.read_table(tmp_path / "set/meta/tasks.parquet")
    assert table.to_pydict() == {"task_index": [0], "task": ["position stage"]}
    assert json.loads(table.schema.metadata[b"pandas"])["index_columns"] == ["task"]


def test_pictures_are_png_of_three_channels(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    run = write_run(tmp_path / "run", [drive(0, 3, pictures=True)])
    export_lerobot([run], tmp_path / "set", kind="both")
    info, frames, _, statistics = read(tmp_path / "set")
    assert info["features"]["observation.image"]["shape"] == [4, 6, 3]
    shown = np.asarray(image.open(io.BytesIO(frames["observation.image"][2]["bytes"])))
    assert (shown == 20).all() and shown.shape == (4, 6, 3)
    assert np.shape(statistics["observation.image"]["mean"]) == (3, 1, 1)
    assert np.ravel(statistics["observation.image"]["max"]) == pytest.approx([20 / 255] * 3)


def test_large_runs_fill_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lerobot, "_FILE_BYTES", 1)
    run = write_run(tmp_path / "run", [drive(index, 2) for index in range(3)])
    export_lerobot([run], tmp_path / "set")
    _, frames, episodes, _ = read(tmp_path / "set")
    assert [each["data/file_index"] for each in episodes] == [0, 1, 2]
    assert frames["index"] == list(range(6))


def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [drive(0, 2)])
    with pytest.raises(UserError, match="without a picture"):
        export_lerobot([run], tmp_path / "set", kind="image")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    export_lerobot([run], tmp_path / "set")
    with pytest.raises(UserError, match="exists already"):
        export_lerobot([run], tmp_path / "set")


def test_the_command_says_how_to_open_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [drive(0, 2), drive(1, 0)])
    assert main(["export", str(run), "--to", "lerobot", "--out", str(tmp_path / "set")]) == 0
    output = capsys.readouterr().out
    assert "1 episodes, 2 steps" in output
    assert "left out 1 episodes without steps" in output
    assert f"LeRobotDataset('lift/set', root='{tmp_path / 'set'}')" in output
    assert main(["export", str(run), "--to", "lerobot", "--out", str(tmp_path / "other"), "--fps", "0"]) == 2
    assert "--fps is 0; allowed: from 1 to 10000" in capsys.readouterr().err
