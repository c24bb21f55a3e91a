"""docs/first-hour.md leads from a scenario file to a learned policy; every command of it is run as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from isolation import isolated
from page import DOCS, blocks, write_files
from sources import clean_environment

from lift_ros.bags.reader import read_run
from lift_ros.collection.records import Mode, Outcome, Source

pytest.importorskip("pymmcore", reason="pip install 'lift_ros[micromanager]'")
pytest.importorskip("mm_test_adapters", reason="pip install 'lift_ros[micromanager]'")

PAGE = DOCS / "first-hour.md"
WAIT_S = 800
pytestmark = pytest.mark.timeout(WAIT_S + 60)
# Fewer episodes and shorter trainings: what a policy is worth that learned for long is measured in docs/results.md.
FEWER = {"--episodes 40": "--episodes 8", "--episodes 20": "--episodes 2", "--episodes 10": "--episodes 2"}
SHORT = "--updates 50 --option lessons=50"


def smaller(script: str) -> str:
    """Return the page's commands for less time; nothing else is changed."""
    for printed, fewer in FEWER.items():
        assert script.count(printed) == 1
        script = script.replace(printed, fewer)
    return re.sub(r"^lift train .*$", rf"\g<0> {SHORT}", script, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home in which the page was followed in one terminal, and what was said there."""
    home = tmp_path_factory.mktemp("home")
    (home / "lift_ros").mkdir()
    (home / "lift_ros/.venv").symlink_to(sys.prefix)
    write_files(PAGE, home / "bench")
    script = "".join(block.text for block in blocks(PAGE) if block.language == "bash")
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if sys.prefix not in part)
    with isolated():
        environment = clean_environment() | {"HOME": str(home), "PATH": path, "PYTHONUNBUFFERED": "1"}
        environment |= {name: os.environ[name] for name in os.environ if name.startswith(("ROS_", "LIFT_"))}
        done = subprocess.run(
            ["bash", "-exc", smaller(script)],
            cwd=home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WAIT_S,
        )
    assert done.returncode == 0, done.stdout
    return home / "bench", done.stdout


def test_the_check_shows_a_picture_and_what_the_camera_sees(said: tuple[Path, str]) -> None:
    folder, words = said
    assert (folder / "view.png").stat().st_size > 0
    assert "was not measured" in words and "picture: 128×128 mono8" in words
    assert "in the picture" in words and "fit what was measured" in words
    assert "does not see" not in words


def test_what_lies_beyond_the_limits_is_refused(said: tuple[Path, str]) -> None:
    _, words = said
    assert "the target of axis z is 50 um; allowed: -2 um to 30 um" in " ".join(words.split())
    assert "refused" in words.splitlines()


def test_recorded_augmented_and_assisted_episodes_all_arrive(said: tuple[Path, str]) -> None:
    folder, _ = said
    walk, lift, assist = (read_run(folder / "runs" / name) for name in ("walk", "lift", "assist"))
    assert (len(walk), len(lift), len(assist)) == (8, 2, 2)
    assert {episode.outcome for episode in [*walk, *lift, *assist]} == {Outcome.REACHED}
    assert {episode.mode for episode in assist} == {Mode.ASSIST}
    assert any(step.source is Source.AUGMENTOR for episode in assist for step in episode.steps)
    assert all(step.image is not None for episode in walk for step in episode.steps)


def test_plots_and_report_are_written(said: tuple[Path, str]) -> None:
    folder, _ = said
    assert list((folder / "plots").glob("*.png"))
    assert "assist" in (folder / "report.html").read_text()
