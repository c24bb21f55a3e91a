"""`lift demo` tells the whole story through the real graph, and never empties a folder it did not make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lift_ros.bags.reader import read_run
from lift_ros.collection.records import Mode, Outcome, Source


def demo(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    sizes = ["--walk", 25, "--lift", 5, "--evaluation", 3, "--updates", 1000]
    command = [
        sys.executable,
        "-m",
        "lift_ros.cli",
        "demo",
        "--scenario",
        "po-blend-d2",
        "--out",
        folder,
        *sizes,
        *words,
    ]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=380)


def test_the_story_from_routine_to_report(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = demo(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    collected, evaluated = read_run(folder / "run"), read_run(folder / "evaluation")
    assert len(collected) == 30
    assert not any(step.model_hash for episode in collected[:25] for step in episode.steps)
    assert any(step.source == Source.AUGMENTOR for episode in collected[25:] for step in episode.steps)
    assert [episode.mode for episode in evaluated] == [Mode.EVALUATE] * 3
    for phase in ("logging policy", "LIFT collection", "learned policy"):
        assert phase in done.stdout
    page = (folder / "report.html").read_text()
    assert "lift demo --scenario po-blend-d2 --seed 0 --walk 25" in page


def test_on_a_rig_the_policy_drives_with_the_routine_behind_it_and_alone(tmp_path: Path) -> None:
    pytest.importorskip("pymmcore", reason="pip install 'lift_ros[micromanager]'")
    pytest.importorskip("mm_test_adapters", reason="pip install 'lift_ros[micromanager]'")
    sizes = ["--walk", 3, "--lift", 1, "--evaluation", 1, "--updates", 2]
    done = demo(tmp_path / "demo", "--scenario", "micromanager-beads", *sizes)
    modes = [read_run(tmp_path / "demo" / name)[0].mode for name in ("run", "assist", "evaluation")]
    assert modes == [Mode.COLLECT, Mode.ASSIST, Mode.EVALUATE]
    assert read_run(tmp_path / "demo" / "assist")[0].outcome is Outcome.REACHED
    alone = read_run(tmp_path / "demo" / "evaluation")[0].outcome
    assert done.returncode == (0 if alone is Outcome.REACHED else 1), done.stdout + done.stderr
    assert ("the learned policy arrived in none of 1 episodes" in done.stdout) == (done.returncode == 1)


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    done = demo(tmp_path)
    assert done.returncode == 2
    assert "holds files that no demo made" in done.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
