from __future__ import annotations

from pathlib import Path

import pytest

from benchmark import results
from benchmark.__main__ import find_benchmarks, main
from benchmark.timing import interleaved, markdown_table, medians, ratio_table, replace_section


def test_jobs_take_turns() -> None:
    log: list[str] = []
    seconds = interleaved({"a": lambda: log.append("a"), "b": lambda: log.append("b")}, repeats=2, warm_up=1)
    assert log == ["a", "b"] * 3
    assert {name: len(times) for name, times in seconds.items()} == {"a": 2, "b": 2}


def test_medians_and_ratios() -> None:
    seconds = {"slow": [2.0, 4.0, 30.0], "fast": [1.0, 2.0, 3.0]}
    assert medians(seconds) == {"slow": 4.0, "fast": 2.0}
    table = ratio_table(seconds, "fast", work=100, unit="steps")
    assert "| slow | 25 | 4,000 | 2,000 | 2 |" in table
    assert "| fast | 50 | 2,000 | 1,000 | 1 |" in table


def test_tables_are_markdown() -> None:
    assert markdown_table(("a", "b"), [(1, 0.12345), ("x", 12345.6)]).splitlines() == [
        "| a | b |",
        "| --- | --- |",
        "| 1 | 0.123 |",
        "| x | 12,346 |",
    ]


def test_a_section_is_replaced_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.md"
    path.write_text("top\n<!-- begin one -->\nold\n<!-- end one -->\nmiddle\n<!-- begin two -->\n<!-- end two -->\n")
    for text in ("new", "newer"):
        replace_section(path, "one", text)
    assert path.read_text() == (
        "top\n<!-- begin one -->\nnewer\n<!-- end one -->\nmiddle\n<!-- begin two -->\n<!-- end two -->\n"
    )


@pytest.mark.parametrize(
    "content",
    ["", "<!-- begin one -->", "<!-- end one --> <!-- begin one -->", "<!-- begin one --><!-- end one -->" * 2],
)
def test_a_file_without_a_place_for_the_section_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "results.md"
    path.write_text(content)
    with pytest.raises(ValueError, match="begin one"):
        replace_section(path, "one", "text")
    assert path.read_text() == content


def test_benchmarks_are_found_by_their_main() -> None:
    found = find_benchmarks()
    assert "collection" in found
    assert not {"timing", "__main__", "__init__"} & set(found)


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "unknown benchmark 'nonsense'" in capsys.readouterr().err


def test_cells_are_stored_sorted_one_by_one_and_replace_each_other(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    for name, value in (("b", 1), ("a", 2), ("b", 3)):
        results.store(path, name, {"value": value})
    assert results.stored(path) == {"a": {"value": 2}, "b": {"value": 3}}
    assert [line[:4] for line in path.read_text().splitlines()] == ["{", '"a":', '"b":', "}"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.json"]


def test_cells_that_are_stored_are_not_computed_again(tmp_path: Path) -> None:
    cells = list(results.all_cells())
    path = tmp_path / "data.json"
    path.write_bytes(results.DATA.read_bytes())
    results.fill(cells, path, lambda: pytest.fail("a stored cell was computed again"))
    assert set(results.stored(path)) == {cell.name for cell in cells}


def test_the_published_results_are_those_that_are_stored() -> None:
    assert results.report(results.stored(results.DATA)) in results.RESULTS.read_text()
