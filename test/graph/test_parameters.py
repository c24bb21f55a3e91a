from __future__ import annotations

import math
from typing import Any

import pytest

from lift_ros.errors import UserError
from lift_ros.graph.parameters import PARAMETERS, Parameter, describe, find

ALL = [(executable, parameter) for executable, table in PARAMETERS.items() for parameter in table]


@pytest.mark.parametrize(("executable", "parameter"), ALL, ids=[f"{name}-{entry.name}" for name, entry in ALL])
def test_every_parameter_has_a_unit_a_description_and_a_valid_default(executable: str, parameter: Parameter) -> None:
    parameter.check(parameter.default)
    assert parameter.unit
    assert len(parameter.description) > 10
    assert find(PARAMETERS[executable], parameter.name) is parameter
    if parameter.kind == "double":
        assert parameter.low is not None
        assert parameter.high is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p", 1),
        ("p", 1.0001),
        ("p", -0.1),
        ("p", math.nan),
        ("p", "0.5"),
        ("budget", -1),
        ("budget", 2.0),
        ("budget", True),
        ("mode", "collecting"),
        ("mode", 0),
        ("autostart", 1),
        ("plant_deadline", math.inf),
    ],
)
def test_wrong_values_are_refused_by_name_with_what_is_allowed(name: str, value: Any) -> None:
    parameter = find(PARAMETERS["arbiter"], name)
    assert parameter is not None
    with pytest.raises(UserError, match=f"parameter {name} is .*allowed: "):
        parameter.check(value)


def test_whole_number_for_a_double_says_how_to_write_it() -> None:
    parameter = find(PARAMETERS["arbiter"], "p")
    assert parameter is not None
    with pytest.raises(UserError, match=r"write 1\.0"):
        parameter.check(1)


def test_limits_belong_to_the_range() -> None:
    parameter = find(PARAMETERS["arbiter"], "p")
    assert parameter is not None
    parameter.check(0.0)
    parameter.check(1.0)


@pytest.mark.parametrize("executable", PARAMETERS)
def test_help_names_every_parameter_with_its_unit_and_default(executable: str) -> None:
    text = describe(executable, "what it does", PARAMETERS[executable])
    assert text.startswith(f"{executable}: what it does")
    for parameter in PARAMETERS[executable]:
        line = next(line for line in text.splitlines() if line.startswith(f"  {parameter.name}  ("))
        assert f"[{parameter.unit}]" in line
        assert "default" in line
        assert parameter.kind in line or parameter.choices


def test_names_are_unique_in_a_table() -> None:
    for executable, table in PARAMETERS.items():
        names = [parameter.name for parameter in table]
        assert len(names) == len(set(names)), executable
