"""`lift rig` on Micro-Manager's demo microscope: what a person sees in the first hour."""

from __future__ import annotations

import io
from pathlib import Path

import cv2
import numpy as np
import pytest

from lift_ros.cli import main
from lift_ros.drivers.checkup import AxisCheck, SightCheck
from lift_ros.drivers.motion import MotionSettings
from lift_ros.drivers.protocol import Axis

BEADS = "micromanager-beads"
ROOT = Path(__file__).parents[2]
needs_microscope = pytest.mark.usefixtures("microscope")


@pytest.fixture
def microscope() -> None:
    pytest.importorskip("pymmcore", reason="pip install 'lift_ros[micromanager]'")
    pytest.importorskip("mm_test_adapters", reason="pip install 'lift_ros[micromanager]'")


@needs_microscope
def test_check_shows_axes_and_picture_and_moves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "view.png"
    assert main(["rig", "check", BEADS, "--picture", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "picture: 128×128 mono8" in said and "was not measured" in said
    assert cv2.imread(str(picture), cv2.IMREAD_UNCHANGED).shape == (128, 128)


@needs_microscope
def test_check_measures_each_axis(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rig", "check", BEADS, "--move", "--repeats", "1", "--step", "2"]) == 0
    said = capsys.readouterr().out
    assert [f"moving {name}" in said for name in "xyz"] == [True] * 3
    assert "scatter" in said and "in the picture" in said and "fit what was measured" in said


@needs_microscope
def test_jog_moves_and_tells_where_the_axes_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rig", "jog", BEADS, "x", "5", "z", "-1"]) == 0
    said = capsys.readouterr().out.split()
    assert float(said[1]) == pytest.approx(5, abs=0.1)
    assert float(said[7]) == pytest.approx(-1, abs=0.1)


@needs_microscope
def test_jog_homes_where_it_is_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rig", "jog", BEADS, "home", "y", "3"]) == 0
    assert float(capsys.readouterr().out.split()[4]) == pytest.approx(3, abs=0.1)


@needs_microscope
def test_axes_beyond_their_limits_are_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "config" / f"{BEADS}.yaml").read_text()
    scenario = tmp_path / "high.yaml"
    scenario.write_text(
        text.replace("low: -60", "low: 5").replace("reference_at: [0, 0, 0]", "").split("  start_low")[0]
        + "logging_policy"
        + text.split("logging_policy", 1)[1]
    )
    assert main(["rig", "check", str(scenario), "--move"]) == 2
    assert "axis x is at 0 um; allowed: 5 um to 60 um" in " ".join(capsys.readouterr().err.split())


def test_what_changes_no_more_than_at_rest_is_not_seen() -> None:
    assert SightCheck(change=0.2, noise=0.0).visible
    assert not SightCheck(change=0.2, noise=0.1).visible
    assert not SightCheck(change=0.0, noise=0.0).visible


@needs_microscope
def test_a_slip_at_the_terminal_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("q 1\nz 900\nx oops\nwhat is this\nhome\ny 2\nwhere\nquit\nx 50\n"))
    assert main(["rig", "jog", BEADS]) == 0
    said = capsys.readouterr()
    for words in ("there is no axis 'q'", "allowed: -2 um to 30 um", "'oops'", "is not understood"):
        assert words in said.err.replace("\n", " ")
    x, y = (float(said.out.splitlines()[-1].split()[i]) for i in (1, 4))
    assert (x, y) == (pytest.approx(0, abs=0.1), pytest.approx(2, abs=0.1))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["check", "po-blend-d2"], "has no section rig"),
        (["check", BEADS, "--repeats", "0"], "--repeats is 0"),
        (["check", BEADS, "--move", "--step", "400"], "at most half of its travel"),
        (["jog", BEADS, "x"], "pairs of an axis and a way"),
    ],
)
@needs_microscope
def test_bad_words_are_refused(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rig", *words]) == 2
    assert sentence in capsys.readouterr().err.replace("\n", " ")


def test_suggestions_name_keys_of_the_scenario() -> None:
    axis = Axis("x", "mm", 0.0, 10.0)
    one = np.ones(1)
    settings = MotionSettings((axis,), 0.01 * one, np.nan * one, 0 * one, settle_seconds=0.1)
    lazy = AxisCheck(axis, 1.0, 0.5, settle_seconds=0.2, repeatability=0.001, hysteresis=0.03, error=0.01)
    assert lazy.suggestions(settings, 0) == {
        "motion.settle_seconds": pytest.approx(0.3, abs=0.011),
        "axes[0].tolerance": pytest.approx(0.03),
        "axes[0].backlash": pytest.approx(0.09),
    }
    good = AxisCheck(axis, 1.0, 0.5, settle_seconds=0.0, repeatability=0.0, hysteresis=0.0, error=0.001)
    assert good.suggestions(settings, 0) == {}
