from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from study_samples import small_study

from lift_ros.errors import UserError
from lift_ros.studies.cell import Result
from lift_ros.studies.claims import Claim, Verdict
from lift_ros.studies.metrics import METRICS, Row, summarise
from lift_ros.studies.page import to_html, write_page, write_section
from lift_ros.studies.study import AXES
from lift_ros.studies.tables import page_text


def result(distances: list[float], threshold: float = 0.02) -> dict[str, Any]:
    arrived = [30 if value <= threshold else None for value in distances]
    curve = [[0.5 + shift, 0.1 + shift] for shift in (0.0, 0.1, 0.2)]
    steps = {str(step): distances for step in (5, 10, 30)}
    return {"threshold": threshold, "arrivals": arrived, "distances": steps, "curve": curve}


def rows(method: str, *distances: list[float], **labels: Any) -> list[Row]:
    return [({"method": method, **labels, "data": seed}, result(each)) for seed, each in enumerate(distances)]


def claim(**parts: Any) -> Claim:
    data = {"says": "A is better.", "better": {"method": "A"}, "than": {"method": "B"}, **parts}
    return Claim.parse(data, "claims[0]", AXES)


def test_a_metric_is_over_all_contexts_of_all_seeds() -> None:
    found = summarise(rows("A", [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]), METRICS["distance_30"])
    assert found is not None
    assert (found.middle, found.cells) == (0.4, 2)
    assert found.interval[0] <= found.middle <= found.interval[1]


def test_below_the_threshold_nobody_is_told_apart() -> None:
    found = summarise(rows("A", [0.001, 0.015, 0.3]), METRICS["distance_30"])
    assert found is not None and found.middle == 0.02


def test_who_does_not_arrive_takes_forever() -> None:
    found = summarise(rows("A", [0.01, 0.01, 0.5, 0.5, 0.5]), METRICS["steps"])
    assert found is not None and math.isinf(found.middle) and found.low == 30


def test_the_interval_knows_few_data_sets_from_many() -> None:
    spread = [[0.1 + 0.1 * seed] * 5 for seed in range(8)]
    few = summarise(rows("A", *spread[::7]), METRICS["distance_30"])
    many = summarise(rows("A", *(2 * spread[::7] * 4)), METRICS["distance_30"])
    assert few is not None and many is not None
    assert few.interval == (0.1, 0.8)
    same = summarise(rows("A", [0.3] * 5, [0.3] * 5), METRICS["distance_30"])
    assert same is not None and same.interval == (0.3, 0.3)


def test_a_result_under_several_labels_counts_once() -> None:
    shared = result([0.1, 0.2, 0.3])
    found = summarise([({"data": seed}, shared) for seed in range(5)], METRICS["distance_30"])
    assert found is not None and found.cells == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "changes", "verdict"),
    [
        ([0.1], [0.2], {}, Verdict.AGREES),
        ([0.3], [0.2], {}, Verdict.DIFFERS),
        ([0.01], [0.02], {}, Verdict.TIE),
        ([0.01], [0.02], {"equal": True}, Verdict.AGREES),
        ([0.01], [0.2], {"by": "success"}, Verdict.AGREES),
        ([0.3], [0.2], {"only": []}, Verdict.AGREES),
        ([0.1], [0.2], {"only": [{"l": 0.5}]}, Verdict.DIFFERS),
        ([0.1], [0.2], {"only": [{"l": [0.5, 1.0]}]}, Verdict.AGREES),
        ([0.1], [0.2], {"in": {"l": 0.5}}, Verdict.NOT_RUN),
        ([0.1], [0.2], {"better": {}, "than": {}}, Verdict.NOT_COMPARABLE),
    ],
)
def test_claims_are_judged(ours: list[float], theirs: list[float], changes: dict[str, Any], verdict: Verdict) -> None:
    cells = [*rows("A", ours, l=1.0), *rows("B", theirs, l=1.0)]
    assert claim(**changes).examine(cells).verdict is verdict


def test_only_the_same_experiment_is_compared() -> None:
    cells = [*rows("A", [0.1], l=1.0), *rows("B", [0.2], l=1.0), *rows("A", [0.9], l=2.0), *rows("B", [0.2], l=3.0)]
    finding = claim().examine(cells)
    assert [each.labels for each in finding.comparisons] == [{"l": 1.0}]
    assert finding.text == "agrees (1 agrees)"


def test_a_table_lists_medians_quartiles_seeds_and_intervals(tmp_path: Path) -> None:
    study = small_study(
        tmp_path, claims=[{"says": "It helps.", "better": {"method": "CQL-SC"}, "than": {"method": "CQL"}}]
    )
    found = [
        (cell, Result(cell.settings, result([0.1 if cell.labels["method"] == "CQL-SC" else 0.4] * 3), {"seconds": 60}))
        for cell in study.cells[:8]
    ]
    text = page_text(study, found)
    assert "8 of 16 cells are computed with data seeds 0, 1 and training seeds 0 (8:00 of workers in all" in text
    assert "| 0.1 | CQL-SC | 2 | 0 [0, 0], 0 to 0 | ∞ [∞, ∞], ∞ to ∞ | 0.1 [0.1, 0.1], 0.1 to 0.1 |" in text
    assert "| It helps. | – | agrees (2 agrees) | – |" in text


def test_one_axis_can_be_columns(tmp_path: Path) -> None:
    study = small_study(tmp_path, tables=[{"title": "T", "rows": ["l"], "columns": "method"}])
    found = [(cell, Result(cell.settings, result([0.1, 0.2, 0.3]))) for cell in study.cells]
    text = page_text(study, found)
    assert "| l | CQL | CQL-SC | seeds |" in text
    assert "| 0.1 | 0.2 [0.1, 0.3] | 0.2 [0.1, 0.3] | 4 |" in text


def test_nothing_is_told_of_what_was_not_run(tmp_path: Path) -> None:
    text = page_text(small_study(tmp_path), [])
    assert text == "A small study. 0 of 16 cells are computed."


def test_the_page_holds_tables_and_plots(tmp_path: Path) -> None:
    plots = [{"kind": "curves", "panels": ["l"]}, {"kind": "metric", "x": "l"}, {"kind": "paths"}]
    study = small_study(tmp_path, plots=plots)
    found = [(cell, Result(cell.settings, result([0.1, 0.2, 0.3]))) for cell in study.cells]
    page = write_page(study, found, tmp_path / "out").read_text()
    assert page.count("<table>") == 1 and page.count("<img ") == 2
    assert (tmp_path / "out" / "small-1.png").stat().st_size > 1000
    assert (tmp_path / "out" / "small.md").read_text().startswith("A small study.")


def test_markdown_becomes_html() -> None:
    assert to_html("**a** < b\n\n| x |\n| --- |\n| 1 |") == (
        "<p><b>a</b> &lt; b</p><table><thead><tr><th>x</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>"
    )


def test_tables_go_between_their_marks(tmp_path: Path) -> None:
    path = tmp_path / "results.md"
    path.write_text("a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n")
    write_section(path, "x", "new")
    assert path.read_text() == "a\n<!-- begin x -->\nnew\n<!-- end x -->\nb\n"
    with pytest.raises(UserError, match="must hold the line '<!-- begin y -->' once"):
        write_section(path, "y", "new")
