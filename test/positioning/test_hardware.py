"""A scenario may describe a real rig: its limits are known, and nobody pretends to simulate it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lift_ros.errors import UserError
from lift_ros.scenario import Scenario, parse_scenario


def scenario(**plant: Any) -> Scenario:
    rig = {
        "kind": "hardware",
        "observation_size": 4,
        "action_size": 2,
        "action_radius": 0.5,
        "threshold": 0.01,
        **plant,
    }
    return parse_scenario({"plant": rig, "logging_policy": {"name": "my_rig.routine:spiral"}}, "my-rig", "my-rig.yaml")


def test_sizes_and_limits_are_known() -> None:
    limits = scenario(workspace_low=[-1, -2], workspace_high=[1, 2], step_limit=7).limits
    assert (limits.observation_size, limits.action_size, limits.action_radius, limits.step_limit) == (4, 2, 0.5, 7)
    assert limits.workspace is not None
    assert np.array_equal(limits.workspace, [[-1, -2], [1, 2]])


def test_a_rig_may_have_no_box_of_positions() -> None:
    assert scenario().limits.workspace is None


def test_hardware_is_not_simulated() -> None:
    with pytest.raises(UserError, match="lift run --plant hardware"):
        scenario().make_problem()


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        ({"workspace_low": [-1, -1]}, "give both"),
        ({"workspace_low": [-1], "workspace_high": [1, 1]}, "one number per axis"),
        ({"workspace_low": [2, 2], "workspace_high": [1, 3]}, "must lie below"),
        ({"action_size": 65}, "action_size"),
        ({"speed": 3}, "speed"),
    ],
)
def test_bad_descriptions_are_refused(plant: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        scenario(**plant)
