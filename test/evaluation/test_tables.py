from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np

from lift_ros.evaluation.tables import attribute_table, for_programs


def test_programs_get_null_for_what_is_unknown() -> None:
    value = {"a": math.nan, "b": [np.float64(1.5), np.int64(2)], "c": (np.array([math.inf, 1.0]),)}
    assert json.dumps(for_programs(value)) == '{"a": null, "b": [1.5, 2], "c": [[null, 1.0]]}'


def test_attributes_stand_under_their_headings() -> None:
    entries = [SimpleNamespace(name="a", score=SimpleNamespace(value=0.5))]
    assert attribute_table({"run": "name", "of it": "score.value"}, entries).splitlines()[::2] == [
        "run  of it",
        "a      0.5",
    ]
