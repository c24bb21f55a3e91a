from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np

from lift_ros.evaluation.tables import attribute_table, for_programs, format_table, shown


def test_programs_get_null_for_what_is_unknown() -> None:
    value = {"a": math.nan, "b": [np.float64(1.5), np.int64(2)], "c": (np.array([math.inf, 1.0]),)}
    assert json.dumps(for_programs(value)) == '{"a": null, "b": [1.5, 2], "c": [[null, 1.0]]}'


def test_tables_align_numbers_to_the_right() -> None:
    lines = format_table(("name", "n"), [("a", 5), ("longer", 100)]).splitlines()
    assert lines == ["name      n", "──────  ───", "a         5", "longer  100"]
    assert format_table(("name", "n"), []).splitlines()[0] == "name  n"


def test_numbers_stay_readable() -> None:
    assert [shown(value) for value in (0.12345, 12345.6, math.nan, 7, "x")] == ["0.123", "12346", "–", "7", "x"]


def test_numbers_in_words_count_as_numbers() -> None:
    lines = format_table(("who", "success"), [("a", "5%"), ("b", "100%")]).splitlines()
    assert lines[2:] == ["a         5%", "b       100%"]


def test_attributes_stand_under_their_headings() -> None:
    entries = [SimpleNamespace(name="a", score=SimpleNamespace(value=0.5))]
    assert attribute_table({"run": "name", "of it": "score.value"}, entries).splitlines()[::2] == [
        "run  of it",
        "a      0.5",
    ]
