from __future__ import annotations

from pathlib import Path

import pytest

from benchmark.__main__ import find_benchmarks, main
from benchmark.timing import RESULTS, interleaved, markdown_table, medians, ratio_table, replace_section
from benchmark.walk import FETCH_STEPS, STEPS
from lift_ros.scenario import load_scenario


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


def test_the_page_on_who_needs_this_has_the_numbers_of_the_walk() -> None:
    walk = RESULTS.read_text(encoding="utf-8").split("<!-- begin walk -->")[1].split("<!-- end walk -->")[0]
    measured = {row[0]: row[1:] for row in reversed(rows_of(walk))}  # the first table of a scenario counts
    told = rows_of(RESULTS.with_name("do-you-need-this.md").read_text(encoding="utf-8"))[2:]
    assert len(told) >= 8
    for label, routine, *others in told:
        name = label[label.index("(") + 1 : label.index(")")]
        steps = FETCH_STEPS if name.startswith("fetch") else STEPS
        step = load_scenario(name).logging_policy.arguments["step"]
        assert routine == measured[name][steps.index(step)]
        assert [value for value in others if value != "–"] == measured[name][len(steps) :]


def rows_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
