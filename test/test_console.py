"""What commands print is plain text that fits the page, and errors are one sentence on stderr."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from lift_ros.cli import main
from lift_ros.console import attribute_table, fold, for_programs, format_table, print_error, shown
from lift_ros.errors import UserError

WORDY = [(1, "reached", 0.5), (20, "aborted: the logging policy gave no answer within half a second", 0.25)]


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (0.12345, "0.123"), (12345.6, "12346"), (math.nan, "–"), (7, "7"), ("word", "word")]
)
def test_entries(value: object, text: str) -> None:
    assert shown(value) == text


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    assert format_table(("name", "n"), [("a", 5), ("longer", 100)]).splitlines() == [
        "name      n",
        "------- ---",
        "a         5",
        "longer  100",
    ]


def test_a_table_without_rows_still_names_its_columns() -> None:
    assert format_table(("name", "n"), []).splitlines()[0] == "name  n"


def test_outside_of_a_terminal_a_table_fits_80_columns() -> None:
    lines = format_table(("episode", "how it ended", "longest pause of all"), WORDY * 2).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()).count("aborted:") == 2


def test_words_are_folded_and_numbers_are_not() -> None:
    lines = format_table(("a long header", "outcome"), [(123456789.0, "x" * 50)], width=35).splitlines()
    assert any("123456789" in line for line in lines)
    assert sum(line.count("x") for line in lines) == 50
    assert max(map(len, lines)) <= 35


def test_a_table_of_few_rows_is_turned_upright_where_it_cannot_fit() -> None:
    header = ["run", *(f"number{i}" for i in range(9))]
    lines = format_table(header, [["a", *range(9)], ["b", *range(10, 19)]], width=40).splitlines()
    assert lines[0].split() == ["run", "a", "b"]
    assert lines[2].split() == ["number0", "0", "10"]
    assert len(lines) == 11


def test_a_table_of_many_rows_that_cannot_fit_goes_on_below_with_its_first_column() -> None:
    lines = format_table([f"number{i}" for i in range(9)], [range(9)] * 20, width=40).splitlines()
    headers = [line.split() for line in lines if line.startswith("number")]
    assert [header[0] for header in headers] == ["number0"] * 3
    assert [name for header in headers for name in header[1:]] == [f"number{i}" for i in range(1, 9)]
    assert max(map(len, lines)) <= 40


def test_numbers_in_words_count_as_numbers() -> None:
    lines = format_table(("who", "success"), [("a", "5%"), ("b", "100%")]).splitlines()
    assert lines[2:] == ["a         5%", "b       100%"]


def test_text_is_never_taken_for_markup() -> None:
    assert "[bold]x[/bold]" in format_table(("[red]a", "n"), [("[bold]x[/bold]", 1)])
    assert "[red]a" in format_table(("[red]a", "n"), [])


def test_long_lines_are_folded_below_their_column_and_long_words_stay_whole() -> None:
    lines = fold("ok   " + "word " * 30 + "/a/path" * 20, "     ").splitlines()
    assert all(line.startswith("     ") for line in lines[1:])
    assert all(len(line) <= 80 for line in lines[:-1])
    assert lines[-1].strip() == "/a/path" * 20


def test_errors_are_one_plain_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "bag [x] has no topic '/y'; " + "and so on, " * 20
    print_error("import", sentence)
    assert capsys.readouterr() == ("", f"lift import: {sentence}\n")


def test_a_command_that_fails_names_itself_and_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "absent.safetensors", "--scenario", "no-such-scenario"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("lift evaluate: ")
    assert printed.err.count("\n") == 1


def test_programs_get_null_for_what_is_unknown() -> None:
    value = {"a": math.nan, "b": [np.float64(1.5), np.int64(2)], "c": (np.array([math.inf, 1.0]),)}
    assert json.dumps(for_programs(value)) == '{"a": null, "b": [1.5, 2], "c": [[null, 1.0]]}'


def test_attributes_stand_under_their_headings() -> None:
    entries = [SimpleNamespace(name="a", score=SimpleNamespace(value=0.5))]
    assert attribute_table("name as run, score.value as of it, name", entries).splitlines()[::2] == [
        "run  of it  name",
        "a      0.5  a",
    ]


def test_an_error_that_quotes_a_book_keeps_its_beginning_and_its_remedy() -> None:
    told = str(UserError(f"scenario {'x' * 100_000} is unknown: give another name"))
    assert told.startswith("scenario xxx")
    assert told.endswith("is unknown: give another name")
    assert len(told) < 1500
