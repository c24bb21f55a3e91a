from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from study_samples import SMALL, here, results_of, small_study, write_study

from lift_ros.bags import RunWriter
from lift_ros.collection.loop import collect
from lift_ros.errors import UserError
from lift_ros.scenario import load_scenario
from lift_ros.studies.running import run_study
from lift_ros.studies.store import Store
from lift_ros.studies.study import Study, load_study
from lift_ros.studies.work import work


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's own run."""
    path = tmp_path_factory.mktemp("own") / "run"
    scenario = load_scenario("po-blend-d2")
    with RunWriter(path, {"scenario": scenario.name, "parameters": scenario.as_dict()}, sync=False) as writer:
        collect(scenario, episodes=6, seed=3, on_episode=writer.write_episode, progress=False)
    return path


def run_here(study: Study, folder: Path) -> dict[str, str]:
    ran = run_study(study, Store(folder), here, progress=False)
    assert ran.failed == {}
    return results_of(folder)


def test_a_result_is_a_function_of_the_settings(tmp_path: Path) -> None:
    grids = [{"scenario": "easy", "method": ["LIFT-SC", "CQL", "clone-SC", "logging policy"], "data": 5}]
    study = small_study(tmp_path, grids=grids)
    first = run_here(study, tmp_path / "a")
    backwards = Study("x", "", "", study.cells[::-1], (), (), ())
    assert run_here(backwards, tmp_path / "b") == first
    assert len(set(first.values())) == 4


def test_a_cell_is_stored_with_all_that_made_it(tmp_path: Path) -> None:
    cell = small_study(tmp_path).cells[0]
    work(cell, tmp_path / "out")
    content = json.loads((tmp_path / "out" / "cells" / f"{cell.fingerprint}.json").read_text())
    assert content["settings"] == cell.settings
    assert {"torch", "numpy", "lift_ros", "python"} == content["made"]["versions"].keys()
    assert len(content["result"]["curve"]) == 3 and len(content["result"]["arrivals"]) == 3
    assert len(content["result"]["model"]) == 64


def test_what_is_stored_is_not_computed_again(tmp_path: Path) -> None:
    study = small_study(tmp_path, grids=[{**SMALL["grids"][0], "l": 0.1, "training": 0}])
    store = Store(tmp_path / "out")
    assert run_study(study, store, here, progress=False).computed == 4
    store.path(study.cells[1]).unlink()
    ran = run_study(study, store, here, progress=False)
    assert (ran.stored, ran.computed) == (3, 1)


def test_cells_share_recordings(tmp_path: Path) -> None:
    grids = [{"scenario": "easy", "method": ["CQL", "CQL-SC", "clone-SC", "LIFT"], "training": [0, 1]}]
    run_here(small_study(tmp_path, grids=grids), tmp_path / "out")
    runs = [path for path in (tmp_path / "out" / "recordings").iterdir() if path.is_dir()]
    assert len(runs) == 3  # the first episodes, plain ones after them, augmented ones after them


def test_the_same_recording_has_the_same_bytes(tmp_path: Path) -> None:
    cell = small_study(tmp_path).cells[0]
    for name in "ab":
        work(cell, tmp_path / name)
    bags = [sorted((tmp_path / name / "recordings").rglob("*.mcap")) for name in "ab"]
    assert [path.read_bytes() for path in bags[0]] == [path.read_bytes() for path in bags[1]]


def test_a_half_written_recording_is_made_anew(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (store.recordings / "x.partial").mkdir()
    (store.recordings / "x.partial" / "rubbish").touch()

    def make(run: Path) -> None:
        run.mkdir(parents=True)
        (run / "whole").touch()

    assert [path.name for path in store.recording("x", make).iterdir()] == ["whole"]


def test_a_damaged_result_is_told(tmp_path: Path) -> None:
    store, cell = Store(tmp_path / "out"), small_study(tmp_path).cells[0]
    store.path(cell).write_text('{"settings": {}}')
    with pytest.raises(UserError, match="is no result of a study .* remove it, to have it computed again"):
        store.find(cell)


def test_a_cell_that_fails_is_told_and_does_not_stop_the_others(tmp_path: Path) -> None:
    broken = {"mine": {"algorithm": "CQLL"}}
    grids = [{"scenario": "easy", "method": ["mine", "CQL"]}]
    ran = run_study(small_study(tmp_path, methods=broken, grids=grids), Store(tmp_path), here, progress=False)
    assert ran.computed == 1
    assert ran.failed["easy, mine"].startswith("there is no algorithm 'CQLL'")


def test_a_study_begins_from_recorded_runs(tmp_path: Path, run_path: Path) -> None:
    runs = {"mine": {"paths": [str(run_path)]}, "judged": {"paths": [str(run_path)], "scenario": "po-blend-d2"}}
    grids = [{"scenario": ["mine", "judged"], "method": ["CQL-SC", "clone-SC"]}]
    found = run_here(small_study(tmp_path, runs=runs, grids=grids), tmp_path / "out")
    in_twin = [json.loads(text) for text in found.values() if "doubts" in text]
    assert (len(found), len(in_twin)) == (4, 2)
    assert all(result["collection"]["episodes"] == 6 for result in map(json.loads, found.values()))


def test_another_run_makes_another_cell(tmp_path: Path, run_path: Path) -> None:
    import shutil

    shutil.copytree(run_path, tmp_path / "copy")
    (tmp_path / "studies").mkdir()
    grids = [{"scenario": "mine", "method": "CQL-SC"}]
    cells = [
        small_study(tmp_path, runs={"mine": {"paths": [str(path)]}}, grids=grids).cells[0]
        for path in (run_path, tmp_path / "copy")
    ]
    assert cells[0].fingerprint == cells[1].fingerprint  # the same run at another place
    scenario = load_scenario("po-blend-d2")
    with RunWriter(tmp_path / "copy", {"scenario": scenario.name, "parameters": scenario.as_dict()}) as writer:
        collect(scenario, episodes=1, seed=4, first=6, on_episode=writer.write_episode, progress=False)
    from lift_ros.studies.resolving import _facts_of

    _facts_of.cache_clear()
    longer = small_study(tmp_path, runs={"mine": {"paths": [str(tmp_path / "copy")]}}, grids=grids).cells[0]
    assert longer.fingerprint != cells[0].fingerprint


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ({"method": "LIFT"}, "'LIFT' .* would move a plant, and runs are recorded"),
        ({"method": "CQL", "l": 0.1}, "the axis l says how episodes are collected, and these are recorded"),
    ],
)
def test_recorded_runs_cannot_be_added_to(
    tmp_path: Path, run_path: Path, grid: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        small_study(tmp_path, runs={"mine": {"paths": [str(run_path)]}}, grids=[{"scenario": "mine", **grid}])


def test_paths_of_runs_are_relative_to_the_file(tmp_path: Path, run_path: Path) -> None:
    path = write_study(run_path.parent, runs={"mine": {"paths": ["run"]}}, grids=[{"scenario": "mine", "method": "BC"}])
    assert load_study(path).cells[0].places == (str(run_path),)
    assert yaml.safe_load(path.read_text())["runs"]["mine"]["paths"] == ["run"]


def test_data_are_scored_beside_the_routines_own(tmp_path: Path) -> None:
    grids = [{"measure": "data", "scenario": "easy", "method": ["CQL", "uniform"], "episodes": 8}]
    found = [json.loads(text) for text in run_here(small_study(tmp_path, grids=grids), tmp_path / "out").values()]
    plain, uniform = sorted(found, key=lambda result: float(result["exploration"]))
    assert plain["exploration"] == plain["coverage"] == 1.0
    assert uniform["exploration"] > 1.0


def test_walks_need_no_training(tmp_path: Path) -> None:
    grids = [
        {"measure": "paths", "scenario": "easy", "method": ["direct", "logging policy"]},
        {"measure": "values", "scenario": "easy", "l": 0.2},
        {"measure": "C", "scenario": "easy", "l": 0.2},
    ]
    found = [json.loads(text) for text in run_here(small_study(tmp_path, grids=grids), tmp_path / "out").values()]
    paths = sorted((result["paths"] for result in found if "paths" in result), key=lambda paths: len(paths[0]))
    assert len(paths) == 2 and len(paths[0]) == 3 and len(paths[0][0][0]) == 2
    (values,) = [result["values"] for result in found if "values" in result]
    assert values[15][15] == 0.0 and max(value for row in values for value in row) == 0.0
    assert values[0][0] < values[10][10] < 0
    (heatmap,) = [result["heatmap"] for result in found if "heatmap" in result]
    assert heatmap[0][0] is None and heatmap[2][0] > 0
