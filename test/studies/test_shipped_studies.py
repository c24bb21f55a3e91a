"""The studies that come along: each is whole, and the quick look of each runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_samples import here

from lift_ros.cli import main
from lift_ros.studies.claims import matches
from lift_ros.studies.methods import METHODS
from lift_ros.studies.running import results, run_study
from lift_ros.studies.store import Store
from lift_ros.studies.study import load_study, study_names
from lift_ros.studies.tables import page_text


def test_all_experiments_of_the_paper_are_there() -> None:
    wanted = {"main", "main-paper", "augmentations", "n-and-p", "strategies", "constant", "noise", "touch-and-place"}
    wanted |= {"pictures", "values", "distortions", "expertness", "sac", "baselines"}
    assert set(study_names()) == wanted


@pytest.mark.parametrize("name", study_names())
def test_a_study_and_its_quick_look_can_be_read(name: str) -> None:
    study, quick = load_study(name), load_study(name, quick=True)
    assert 0 < len(quick.unique) <= 40
    assert len(quick.unique) < len(study.unique)
    methods = {cell.labels.get("method") for cell in study.cells} - {None}
    assert methods <= METHODS.keys()
    for claim in study.claims:
        for side in filter(None, (claim.better, claim.than)):
            assert any(matches(cell.labels, {**claim.inside, **side}) for cell in study.cells), claim.says


@pytest.mark.parametrize("name", study_names())
def test_a_quick_look_runs(name: str, tmp_path: Path) -> None:
    study, store = load_study(name, quick=True), Store(tmp_path)
    ran = run_study(study, store, here, progress=False)
    assert ran.failed == {}
    assert "NaN" not in page_text(study, results(study, store))


def test_the_command_runs_a_quick_look_on_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "values", "--quick"]) == 0
    assert "1 of 1 cells are computed" in capsys.readouterr().out


def test_the_command_lists_studies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "list"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in study_names())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["study", "mian"], "unknown study 'mian'; did you mean 'main'"),
        (["study", "main", "--quick", "--show"], "--quick keeps nothing"),
        (["study", "main", "--processes", "0"], "--processes is 0; allowed: a whole number >= 1"),
    ],
)
def test_mistakes_of_the_command_are_told(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert sentence in capsys.readouterr().err


def test_the_command_shows_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "results.md"
    page.write_text("<!-- begin study values -->\n<!-- end study values -->\n")
    assert main(["study", "values", "--show", "--out", str(tmp_path), "--results", str(page)]) == 0
    assert "0 of 12 cells are computed." in capsys.readouterr().out
    assert "0 of 12 cells are computed." in page.read_text()
    assert (tmp_path / "values.html").exists()
