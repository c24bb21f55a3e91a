"""The examples of axes of one's own: made from a scenario; their libraries are looked at where they are installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from lift_ros.drivers.protocol import Axes, DriverFault
from lift_ros.drivers.table import make_axes
from lift_ros.errors import UserError

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
AXIS = {"name": "x", "unit": "mm", "low": 0, "high": 10, "tolerance": 0.1}
SCENARIOS: dict[str, dict[str, Any]] = {
    "zaber": {"driver": "zaber_axes:ZaberAxes", "port": "/dev/none", "numbers": ["1.1"], "axes": [AXIS]},
    "newport": {"driver": "newport_axes:NewportAxes", "host": "127.0.0.1", "stages": ["G.P"], "axes": [AXIS]},
}
USED = {
    "zaber_motion.ascii:Connection": "open_serial_port detect_devices get_device close",
    "zaber_motion.ascii:Device": "get_axis",
    "zaber_motion.ascii:Axis": "home get_position move_absolute is_busy stop",
    "newportxps:NewportXPS": (
        "get_stage_position move_stage abort_group kill_group initialize_group home_group disconnect"
    ),
}


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.mark.parametrize("name", SCENARIOS)
def test_example_is_made_from_a_scenario_and_refuses_to_move_unconnected(name: str) -> None:
    axes, settings = make_axes(SCENARIOS[name])
    assert isinstance(axes, Axes) and axes.layout == settings.axes
    for deed in (axes.position, axes.home, axes.stop):
        with pytest.raises(DriverFault, match="not connected"):
            deed()
    axes.close()


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("zaber", {"numbers": ["1.1", "1.2"]}, "numbers has 2 entries; allowed: one for each of the 1 axes"),
        ("zaber", {"axes": [{**AXIS, "unit": "inch"}]}, "unit of axis x is 'inch'; allowed"),
        ("newport", {"stages": []}, "stages is .*; allowed: one GROUP.POSITIONER for each axis"),
        ("newport", {"hots": "a"}, "takes no key 'hots'; did you mean 'host'"),
    ],
)
def test_bad_keys_of_examples_are_refused(name: str, change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_axes({**SCENARIOS[name], **change})


@pytest.mark.parametrize("name", SCENARIOS)
def test_example_says_that_it_is_not_verified(name: str) -> None:
    assert "NOT VERIFIED" in (importlib.import_module(f"{name}_axes").__doc__ or "")


@pytest.mark.parametrize("place", USED)
def test_library_has_what_the_example_calls(place: str) -> None:
    module, _, name = place.partition(":")
    kind = getattr(pytest.importorskip(module, reason="pip install zaber-motion newportxps"), name)
    for method in USED[place].split():
        assert callable(getattr(kind, method))
