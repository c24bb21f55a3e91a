"""Recordings of Rerun, checked and listed by Rerun's own command."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from sample_run import drive, write_run

from lift_ros.bags.exporting.rerun import export_rerun
from lift_ros.cli import main
from lift_ros.errors import UserError

pytest.importorskip("rerun", reason="pip install 'lift_ros[rerun]'")


def ask(*words: object) -> str:
    """Return what Rerun's command says of a recording; in a home of its own, where it tells nobody that it was used."""
    command = [sys.executable, "-m", "rerun", "rrd", *map(str, words)]
    with tempfile.TemporaryDirectory() as home:
        places = {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **places})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_rerun_finds_what_was_recorded(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "first", [drive(0, 4, augmented=2, pictures=True), drive(1, 0), drive(2, 3)]),
        write_run(tmp_path / "second", [drive(0, 2, rewarded=False)]),
    ]
    report = export_rerun(runs, tmp_path / "both.rrd")
    assert (report.episodes, report.steps, report.without_steps) == (3, 9, 1)
    ask("verify", tmp_path / "both.rrd")
    said = ask("print", "-v", tmp_path / "both.rrd")
    for entity in ("observation", "action", "position", "path", "switch/p"):
        for run in ("first", "second"):
            assert f"/{run}/{entity}" in said
    assert "/first/image" in said and "/second/image" not in said
    assert "/first/reward" in said and "/second/reward" not in said
    assert [path.name for path in tmp_path.glob("*.rrd")] == ["both.rrd"]


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / folder / "run", [drive(0, 2)]) for folder in ("a", "b")]
    export_rerun(runs, tmp_path / "t.rrd")
    said = ask("print", "-v", tmp_path / "t.rrd")
    assert "/run_0/action" in said and "/run_1/action" in said


def test_what_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [drive(0, 2)])
    with pytest.raises(UserError, match=r"does not end with \.rrd"):
        export_rerun([run], tmp_path / "set")
    assert main(["export", str(run), "--to", "rerun", "--out", str(tmp_path / "t.rrd")]) == 0
    assert f"open it with: rerun {tmp_path / 't.rrd'}" in capsys.readouterr().out
    with pytest.raises(UserError, match="exists already"):
        export_rerun([run], tmp_path / "t.rrd")
