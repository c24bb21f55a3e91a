"""Devices are made of what a scenario says; bad input is refused with value, limit and remedy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from fake_axes import FakeAxes

from lift_ros import drivers
from lift_ros.drivers.protocol import Axes, Axis, DriverFault
from lift_ros.drivers.table import DRIVERS, check_camera, make_axes, make_camera, read_axes
from lift_ros.errors import UserError

X = {"name": "x", "letter": "X", "unit": "mm", "low": 0, "high": 10, "tolerance": 0.1}
Z = {"name": "z", "device": "Z", "unit": "um", "low": 0, "high": 1, "tolerance": 0.1}
GRBL = {"driver": "grbl", "port": "/dev/none", "axes": [X]}
RULES_OF_ALL = {"motion.py", "worker.py"}  # no drivers: what all of them share
LONGEST_DRIVER = 200  # lines, so that a lab can read what moves its stage


def test_every_driver_is_short_enough_to_be_read() -> None:
    lengths = {
        path.name: len(path.read_text().splitlines())
        for path in Path(drivers.__file__).parent.glob("*.py")
        if path.name not in RULES_OF_ALL
    }
    assert len(lengths) > len(DRIVERS)
    assert {name: length for name, length in lengths.items() if length > LONGEST_DRIVER} == {}


def test_axes_are_known_without_connecting() -> None:
    axes, settings = make_axes({**GRBL, "motion": {"settle_seconds": 0.5}})
    assert isinstance(axes, Axes)
    assert [(axis.name, axis.unit, axis.low, axis.high) for axis in axes.layout] == [("x", "mm", 0.0, 10.0)]
    assert (settings.settle_seconds, settings.home_required) == (0.5, True)


def test_camera_is_made_without_connecting() -> None:
    camera = make_camera({"driver": "genicam", "producer": "demo"})
    with pytest.raises(DriverFault, match="camera demo is not connected"):
        camera.format  # noqa: B018


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "axes.driver is missing; allowed: one of micromanager, epics, grbl"),
        ({"driver": "grbll"}, "axes.driver is 'grbll'.*did you mean 'grbl'"),
        ({"driver": "opencv"}, "axes.driver is 'opencv'; allowed"),
        ({"driver": ["grbl"]}, "axes.driver is"),
        ({**GRBL, "prot": 1}, "unknown key 'prot'; did you mean 'port'"),
        ({**GRBL, "axes": []}, "axes.axes is \\[\\]; allowed: a list of 1 to 32"),
        ({**GRBL, "axes": [{**X, "low": 20}]}, "low is 20; allowed: less than high, which is 10"),
        ({**GRBL, "axes": [{**X, "tolerance": 0}]}, "tolerance is 0; allowed: a number > 0"),
        ({**GRBL, "axes": [{**X, "backlash": -10}]}, "backlash is -10; allowed: less than the travel of 10"),
        ({**GRBL, "axes": [{**X, "unit": "um"}]}, "unit of axis x is 'um'; allowed: mm"),
        ({**GRBL, "axes": [X, X]}, "each name once"),
        ({**GRBL, "axes": [X, {**X, "name": "y"}]}, "each letter once"),
        ({**GRBL, "motion": {"poll_seconds": 0}}, "axes.motion.poll_seconds is 0; allowed"),
        (
            {"driver": "micromanager", "configuration": "demo", "axes": [{**Z, "direction": "x"}]},
            "stage 'Z' has the directions x; allowed: x and y",
        ),
    ],
)
def test_bad_axes_are_refused(data: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_axes(data)


def test_camera_of_a_driver_without_one_is_refused() -> None:
    with pytest.raises(UserError, match="camera.driver is 'grbl'; allowed: one of micromanager, genicam, opencv"):
        make_camera({"driver": "grbl"})


@pytest.mark.parametrize(
    ("library", "driver", "data"),
    [
        ("serial", "grbl", GRBL),
        ("pymmcore", "micromanager", {"driver": "micromanager", "configuration": "none.cfg", "axes": [Z]}),
    ],
)
def test_missing_library_is_one_sentence_with_the_remedy(
    library: str, driver: str, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    axes, _ = make_axes(data)
    with pytest.raises(UserError, match=f"driver {driver} needs {library}.*pip install 'lift_ros\\[{driver}\\]'"):
        axes.connect()


class OwnStage(FakeAxes):
    """As a user writes it: what a scenario says beside axes and motion are its arguments."""

    def __init__(self, layout: tuple[Axis, ...], port: str, speed: float = 1.0) -> None:
        super().__init__()
        self.layout = layout
        self.port, self.speed = port, speed


class OwnCamera:
    def __init__(self, shutter: float = 1.0) -> None:
        self.shutter = shutter

    def connect(self) -> None: ...

    def frame(self, exposed_after: float, timeout: float) -> None: ...

    def close(self) -> None: ...


class Unlike(OwnStage):
    def __init__(self, layout: tuple[Axis, ...]) -> None:
        super().__init__(layout, "")
        self.layout = ()


class Unfinished:
    def connect(self) -> None: ...


OWN = {
    "driver": f"{__name__}:OwnStage",
    "port": "/dev/stage",
    "axes": [{name: value for name, value in Z.items() if name != "device"}],
}


def test_axes_and_cameras_of_ones_own_classes() -> None:
    axes, motion = make_axes({**OWN, "speed": 2.5, "motion": {"settle_seconds": 0.5}})
    assert isinstance(axes, OwnStage) and isinstance(axes, Axes)
    assert (axes.port, axes.speed, axes.layout) == ("/dev/stage", 2.5, motion.axes)
    assert (motion.axes[0].high, motion.settle_seconds) == (1.0, 0.5)
    camera: Any = make_camera({"driver": f"{__name__}:OwnCamera", "shutter": 0.5})
    assert camera.shutter == 0.5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"driver": "nowhere.at_all:Stage"}, "axes.driver nowhere.at_all:Stage: there is no module 'nowhere'"),
        ({"driver": f"{__name__}:OwnStag"}, "has no 'OwnStag'; did you mean 'OwnStage'"),
        ({"driver": f"{__name__}:make_axes"}, "make_axes is no class; write one with the methods connect, home"),
        ({"driver": f"{__name__}:Unfinished"}, "Unfinished has no method home; lift_ros/drivers/protocol.py"),
        ({"driver": f"{__name__}:Unlike", "port": None}, "Unlike takes no key 'port'"),
        ({"prot": 1}, "OwnStage takes no key 'prot'; did you mean 'port'"),
        ({"axes": []}, "axes.axes is \\[\\]; allowed"),
        ({"motion": {"poll": 1}}, "unknown key 'poll'"),
    ],
)
def test_bad_own_axes_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_axes({**OWN, **change})


def test_own_axes_without_an_argument_or_with_another_layout_are_refused() -> None:
    without = {name: value for name, value in OWN.items() if name != "port"}
    with pytest.raises(UserError, match="OwnStage cannot be made of the keys .none.: missing a required .* 'port'"):
        make_axes(without)
    with pytest.raises(UserError, match="Unlike has another layout than it was made with"):
        make_axes({**without, "driver": f"{__name__}:Unlike"})


def test_own_classes_are_not_imported_to_read_a_scenario() -> None:
    assert read_axes({**OWN, "driver": "nowhere.at_all:Stage"}).axes[0].name == "z"
    check_camera({"driver": "nowhere.at_all:Camera"})


def test_every_key_says_what_it_means() -> None:
    for driver in DRIVERS.values():
        for key in (*driver.keys.values(), *driver.axis_keys.values(), *driver.camera_keys.values()):
            assert key.meaning
