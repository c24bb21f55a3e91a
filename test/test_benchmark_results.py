"""The benchmark of results: which cells there are, which of them are computed again, and what the page says of them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark import cells as benchmark_cells
from benchmark import results
from benchmark.cells import (
    DATA_SEEDS,
    DRAWS,
    FEWER_SEEDS,
    MAIN,
    METHODS,
    SCENARIOS,
    VARIATIONS,
    YARDSTICKS,
    Cell,
    Effort,
    all_cells,
    compute,
    default_draw,
    fingerprint,
    make_scenario,
    training_options,
)
from benchmark.results_page import draw, report

CELLS = list(all_cells())
TOUCH_AND_PLACE = "fetch-touch-and-place"


def content(cell: Cell, success: float = 1.0, steps: int = 6) -> dict[str, Any]:
    arrived = round(10 * success)
    return {
        "scenario": cell.scenario,
        "method": cell.method,
        "draw": cell.draw,
        "seed": cell.seed,
        "settings": fingerprint(cell),
        "collection": {"plain_steps_per_episode": 100.0, "augmented_steps_per_episode": 8.0},
        "success": success,
        "arrivals": [steps] * arrived + [None] * (10 - arrived),
        "median_distances": [1.0, 0.5, 0.01],
    }


def test_no_cell_is_there_twice() -> None:
    assert len({cell.name for cell in CELLS}) == len(CELLS)


def test_the_preset_and_the_clone_have_ten_seeds_on_every_scenario() -> None:
    counts = Counter((cell.scenario, cell.method) for cell in CELLS if cell.is_main and cell.method in METHODS)
    assert counts == {(scenario, method): 10 for scenario in SCENARIOS for method in MAIN}


def test_every_method_has_both_draws_with_the_same_seeds() -> None:
    for scenario in SCENARIOS:
        for method in METHODS:
            seeds = {
                cell.draw: {other.seed for other in CELLS if replace(other, seed=0) == replace(cell, seed=0)}
                for cell in CELLS
                if (cell.scenario, cell.method) == (scenario, method)
            }
            if scenario in METHODS[method].scenarios:
                assert sorted(seeds) == sorted(DRAWS) and all(found >= set(FEWER_SEEDS) for found in seeds.values())


def test_touch_and_place_is_among_all_methods_and_yardsticks_but_the_optimum() -> None:
    found = {cell.method for cell in CELLS if cell.scenario == TOUCH_AND_PLACE}
    assert found == {*METHODS, *YARDSTICKS} - {"optimal"}


def test_seeds_are_not_those_used_for_choosing() -> None:
    assert min(DATA_SEEDS) >= 100


@pytest.mark.parametrize("name", VARIATIONS)
def test_variations_can_be_built_and_keep_the_walk_and_the_radius(name: str) -> None:
    scenario = make_scenario(name)
    assert (scenario.logging_policy.arguments["step"], scenario.action_radius) == (0.025, 0.5)
    assert scenario.make_problem().limits.action_size == scenario.plant.parameters["dim"]
    assert 0 < scenario.collection.train_after < scenario.collection.episodes


def test_fewer_episodes_train_the_augmentor_earlier() -> None:
    few = make_scenario("blend, d=5, 20 episodes").collection
    assert (few.episodes, few.train_after) == (20, 10)


def test_methods_differ_from_the_preset_only_in_what_they_are_named_for() -> None:
    draw = default_draw("po-blend-d5")
    ours, clone, plain = (
        training_options(Cell("po-blend-d5", name, draw, 1000)) for name in ("CQL-SC", "clone", "CQL")
    )
    assert clone == ours.replaced({"algorithm": "clone"})
    assert plain.strategy == "none" and plain.hidden == ours.hidden


def test_other_settings_make_a_cell_outdated(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell("po-blend-d2", "CQL-SC", "transitions", 1000)
    found = {cell.name: content(cell)}
    assert results.missing([cell], found) == [] and results.current([cell], found) == [found[cell.name]]
    assert results.missing([cell], {}) == [cell]
    monkeypatch.setitem(benchmark_cells.METHODS, "CQL-SC", benchmark_cells.Method({"updates": 7}))
    assert results.missing([cell], found) == [cell] and results.current([cell], found) == []


def test_cells_that_share_episodes_are_computed_together_and_the_main_ones_first() -> None:
    portions = results.batches([cell for cell in CELLS if cell.scenario in ("po-blend-d2", "po-blend-d5")])
    assert all(len({cell.data for cell in portion}) == 1 for portion in portions)
    main = [portion[0].is_main for portion in portions]
    assert main == sorted(main, reverse=True) and len(main) == 2 + 2 * 10 + 2 * 3


def test_filters_choose_cells_and_keep_the_yardsticks_of_any_seed() -> None:
    chosen = [cell for cell in CELLS if results.is_chosen(cell, {"scenario": ["po-rot-d2"], "seed": [1003]})]
    assert {cell.method for cell in chosen} == {*MAIN, *YARDSTICKS}
    assert {cell.scenario for cell in chosen} == {"po-rot-d2"}


def test_cells_are_stored_sorted_line_by_line_and_replace_each_other(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    for name, value in (("b, σ", 1), ("a", 2), ("b, σ", 3)):
        results.store(path, {name: {"value": value}})
    assert results.stored(path) == {"a": {"value": 2}, "b, σ": {"value": 3}}
    assert [line[:4] for line in path.read_text().splitlines()] == ["{", '"a":', '"b, ', "}"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.json"]


@pytest.mark.parametrize("method", ["CQL-SC", "LIFT"])
def test_a_cell_is_collected_trained_and_evaluated(method: str, tmp_path: Path) -> None:
    effort = Effort(contexts=3, updates=3, episodes=4)
    cell = Cell("po-none-d2", method, "episodes", 1000)
    first = compute(cell, tmp_path, effort)
    assert first["settings"] == fingerprint(cell) and len(first["arrivals"]) == 3
    assert first["collection"]["episodes"] == 4
    assert (first["collection"]["augmented_steps_per_episode"] is None) == (method == "CQL-SC")
    again = compute(cell, tmp_path, effort)  # from the recorded run
    assert {**again, "training_cpu_seconds": 0} == {**first, "training_cpu_seconds": 0}


def test_a_yardstick_needs_no_episodes(tmp_path: Path) -> None:
    found = compute(Cell("po-none-d2", "secant"), tmp_path, Effort(contexts=5))
    assert found["success"] == 1.0 and list(tmp_path.iterdir()) == []


def test_the_page_tells_the_worst_seed_and_compares_with_who_learns_nothing() -> None:
    scenario = "po-blend-d5"
    mine = [Cell(scenario, "CQL-SC", default_draw(scenario), seed) for seed in (1000, 1001)]
    contents = [content(mine[0], 1.0, 6), content(mine[1], 0.8, 6)]
    contents += [content(Cell(scenario, name), 1.0, steps) for name, steps in (("direct", 4), ("secant", 3))]
    text = report(contents)
    assert f"| {scenario} | **CQL-SC** | {mine[0].draw} | 2 | 0.800 | 0.900 | 1.000 | 6 | 1.50 | 2.00 |" in text
    assert f"| {scenario} | secant |  |  |  | 1.000 |  | 3 | 0.75 | 1.00 |" in text


def test_the_page_shows_every_method_with_both_draws() -> None:
    cells = [Cell(TOUCH_AND_PLACE, name, draw, 1000) for name in METHODS for draw in DRAWS]
    text = report([content(cell, 0.5 if cell.draw == "episodes" else 0.2) for cell in cells])
    for name in METHODS:
        assert re.search(rf"\| {name} \| 0\.20 \[.*\| 0\.50 \[", text)


def test_where_most_do_not_arrive_the_steps_are_infinite() -> None:
    assert "| 0.100 | 0.100 | 0.100 | ∞ | – | – |" in report(
        [content(next(c for c in CELLS if c.method == "clone"), 0.1)]
    )


def test_the_plot_has_a_panel_per_scenario(tmp_path: Path) -> None:
    draw([content(cell) for cell in CELLS if cell.scenario in ("po-blend-d2", TOUCH_AND_PLACE)], tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_published_results_are_those_that_are_stored() -> None:
    published = results.RESULTS.read_text(encoding="utf-8")
    assert report(results.current(CELLS, results.stored(results.DATA))) in published
