from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_samples import SMALL, small_study, write_study

from lift_ros.errors import UserError
from lift_ros.studies.study import load_study


def grid(**changes: Any) -> list[dict[str, Any]]:
    return [{**SMALL["grids"][0], **changes}]


def test_every_combination_is_a_cell(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    assert len(study.cells) == len(study.unique) == 16
    assert study.cells[0].name == "easy, l 0.1, CQL, data 0, training 0"


def test_every_group_has_a_seed_before_any_has_two(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    seeds = [(cell.labels["training"], cell.labels["data"]) for cell in study.cells]
    assert seeds == sorted(seeds)
    assert len({cell.group for cell in study.cells[:4]}) == 4


def test_the_order_is_the_files(tmp_path: Path) -> None:
    study = small_study(tmp_path, order=["method", "data"])
    assert [cell.labels["method"] for cell in study.cells] == ["CQL"] * 8 + ["CQL-SC"] * 8


def test_a_later_grid_comes_after_the_same_seed_of_an_earlier(tmp_path: Path) -> None:
    study = small_study(tmp_path, grids=[*grid(l=0.2), *grid(l=0.1)])
    assert [cell.labels["l"] for cell in study.cells[:4]] == [0.2, 0.2, 0.1, 0.1]


def test_cells_that_do_not_depend_on_an_axis_are_one(tmp_path: Path) -> None:
    study = small_study(tmp_path, grids=grid(method=["logging policy", "CQL"], p=[0.2, 0.6]))
    kinds = [cell.labels["method"] for cell in study.unique]
    assert (kinds.count("logging policy"), kinds.count("CQL"), len(study.cells)) == (2, 8, 32)


def test_what_lifts_depends_on_p(tmp_path: Path) -> None:
    study = small_study(tmp_path, grids=grid(method=["LIFT"], p=[0.2, 0.6]))
    assert len(study.unique) == len(study.cells) == 16


@pytest.mark.parametrize(
    "changes",
    [
        {"options": {**SMALL["options"], "updates": 4}},
        {"evaluation": {"contexts": 4, "steps": 5}},
        {"scenarios": {"easy": {"of": "po-blend-d2", "plant": {"sigma": 0.2}, "episodes": 4, "train_after": 2}}},
        {"grids": grid(C=0.5)},
        {"grids": grid(preset="paper")},
        {"grids": grid(noise=1.0)},
    ],
)
def test_every_setting_makes_another_cell(tmp_path: Path, changes: dict[str, Any]) -> None:
    before = {cell.fingerprint for cell in small_study(tmp_path).cells}
    assert not before & {cell.fingerprint for cell in small_study(tmp_path, **changes).cells}


def test_names_and_descriptions_make_no_other_cell(tmp_path: Path) -> None:
    renamed = {"hard": SMALL["scenarios"]["easy"]}
    other = small_study(tmp_path, description="Other words.", scenarios=renamed, grids=grid(scenario="hard"))
    assert [cell.fingerprint for cell in other.cells] == [cell.fingerprint for cell in small_study(tmp_path).cells]


def test_quick_narrows_seeds_and_axes(tmp_path: Path) -> None:
    path = write_study(tmp_path, quick={"axes": {"l": [0.2]}, "contexts": 1})
    study = load_study(path, quick=True)
    assert [cell.labels["l"] for cell in study.cells] == [0.2, 0.2]
    settings = study.cells[0].settings
    assert (settings["training"]["updates"], settings["evaluation"]["contexts"]) == (3, 1)


def test_seeds_replace_those_of_data(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path), seeds=[7])
    assert {cell.labels["data"] for cell in study.cells} == {7}
    with pytest.raises(UserError, match="--seeds is -1; allowed: a whole number >= 0"):
        load_study(write_study(tmp_path), seeds=[-1])


def test_noise_is_a_noisy_walk_and_none_the_walk_itself(tmp_path: Path) -> None:
    study = small_study(tmp_path, grids=grid(noise=[0.0, 2.0]))
    routines = {cell.labels["noise"]: cell.settings["scenario"]["logging_policy"] for cell in study.cells}
    assert routines[0.0]["name"] == "coordinate_walk"
    assert (routines[2.0]["name"], routines[2.0]["arguments"]["noise"]) == ("noisy_coordinate_walk", 2.0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"grids": grid(methd="CQL")}, "unknown axis 'methd'; did you mean 'method'"),
        ({"grids": grid(method="CQL-SD")}, "unknown method 'CQL-SD'; did you mean 'CQL-SC'"),
        ({"grids": grid(p=1.5)}, r"grids\[0\].p is 1.5; allowed: a number >= 0 and <= 1"),
        ({"grids": grid(data=[])}, r"grids\[0\].data is \[\]; allowed: at least one value"),
        ({"grids": [{"method": "CQL"}]}, r"grids\[0\].scenario is missing"),
        ({"grids": grid(scenario="po-blend-d3")}, "unknown scenario 'po-blend-d3'"),
        ({"grids": grid(l=0.9)}, "step size 0.9 must be above 0 and at most the action radius 0.3"),
        ({"grids": grid(train_after=9)}, "train_after is 9, but there are only 4 episodes"),
        ({"grids": grid(method="LIFT", train_after=0)}, "who augments learns from the first episodes"),
        ({"order": ["seed"]}, "order: unknown axis 'seed'"),
        ({"grids": []}, "grids hold no cell"),
        ({"grids": grid(C=list(range(100)), n=list(range(100)))}, "grids hold 160000 cells; allowed: at most 100000"),
        ({"methods": {"mine": {"algorithms": "CQL"}}}, "methods.mine: unknown key 'algorithms'"),
        ({"claims": [{"says": "x", "better": {"method": "CQL"}}]}, "`better` and `than` belong together"),
        ({"tables": [{"columns": "methods"}]}, r"tables\[0\]: unknown axis 'methods'"),
        ({"scenarios": {"easy": {"of": "po-blend-d2", "plant": {"sgima": 1}}}}, "unknown key 'sgima'"),
        ({"runs": {"easy": {"paths": ["x"]}}, "grids": [{"scenario": "easy", "method": "BC"}]}, "x.* no such|x.*not"),
    ],
)
def test_mistakes_are_told_in_a_sentence(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        small_study(tmp_path, **changes)
