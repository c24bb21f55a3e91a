"""The node `rig` around axes that do what a test needs: what it moves, reads, refuses, and how it comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from lone_node import Kept, lone_node, spin
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

import lift_ros.msg as msg
from lift_ros.array_types import FloatArray, Picture
from lift_ros.collection.exchange import Hold, Move, Refusal, Reset
from lift_ros.drivers import table
from lift_ros.drivers.protocol import Axis
from lift_ros.errors import UserError
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.rig_node import RigNode
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.positioning.problem import Observed

ENOUGH = 30.0


class Stage:
    """Two axes that move at once unless told otherwise; tests reach it as `Stage.last`."""

    last: Stage

    def __init__(self, layout: tuple[Axis, ...], *_: Any) -> None:
        Stage.last = self
        self.layout = layout
        self.where, self.target = np.zeros(2), np.zeros(2)
        self.slow = self.deaf = self.gone = False
        self.connections = self.homings = 0

    def _answer(self) -> None:
        if self.gone:
            raise OSError("cable pulled")

    def connect(self) -> None:
        self._answer()
        self.connections += 1

    def home(self) -> None:
        self._answer()
        self.homings += 1
        self.where = self.target = np.zeros(2)

    def position(self) -> FloatArray:
        self._answer()
        return self.where.copy()

    def start(self, target: FloatArray) -> None:
        self._answer()
        self.target = self.where if self.deaf else np.array(target)
        if not self.slow:
            self.where = self.target

    def busy(self) -> bool:
        if self.slow and (self.where != self.target).any():
            self.where = self.where + np.clip(self.target - self.where, -0.01, 0.01)
        return bool((self.where != self.target).any())

    def stop(self) -> None:
        self.target = self.where

    def close(self) -> None:
        pass


class Eye:
    """A camera that sees the first axis as brightness; `dark` delivers nothing."""

    dark = False

    def __init__(self, _keys: Any) -> None:
        self.format = PictureFormat(8, 8, "mono8")

    def connect(self) -> None:
        pass

    def frame(self, exposed_after: float, timeout: float) -> Picture:
        if Eye.dark:
            raise OSError("no picture")
        return np.full((8, 8), int(100 + 10 * Stage.last.where[0]), np.uint8)

    def close(self) -> None:
        pass


class Brightness:
    """A reading that compares with the reference picture."""

    def __init__(self, arrived: float = 0.5) -> None:
        self.arrived, self.reference = arrived, None

    def set_reference(self, picture: Picture) -> None:
        self.reference = float(picture.mean())

    def __call__(self, position: FloatArray, picture: Picture) -> Observed:
        assert self.reference is not None
        off = float(picture.mean()) - self.reference
        return Observed(np.array([off]), terminated=abs(off) < self.arrived)


def twice(position: FloatArray, picture: Picture | None) -> FloatArray:
    return 2 * position


AXES = [{"name": name, "unit": "mm", "low": -5, "high": 5, "tolerance": 0.001} for name in "xy"]
RIG = {
    "axes": {
        "driver": "stage",
        "axes": AXES,
        "motion": {"poll_seconds": 0.001, "settle_seconds": 0.002, "home_required": False},
    },
}
PLANT = {"kind": "hardware", "observation_size": 2, "action_size": 2, "action_radius": 0.5, "threshold": 0.01}


def written(folder: Path, rig: dict[str, Any] | None = None, **plant: Any) -> str:
    content = {
        "plant": {**PLANT, **plant},
        "rig": {**RIG, **(rig or {})},
        "logging_policy": {"name": "coordinate_walk", "arguments": {"step": 0.1}},
    }
    path = folder / "stage.yaml"
    path.write_text(yaml.safe_dump(content))
    return str(path)


class Told:
    """A rig, and what it answers to commands."""

    def __init__(self, rig: RigNode) -> None:
        self.rig, self.stage = rig, Stage.last
        self.answers = Kept(msg.Observation)
        rig._publisher = self.answers

    def __call__(self, command: Reset | Move | Hold, *, wait: bool = True) -> Any:
        self.rig._on_command(command)
        return self.answer() if wait else None

    def answer(self) -> Any:
        """Return what is answered next, the rig's timers running."""
        end = time.monotonic() + ENOUGH
        while time.monotonic() < end:
            if taken := self.answers.take():
                return taken[-1]
            spin(self.rig, 0.01)
        raise AssertionError("no answer")

    def until(self, condition: Any) -> None:
        end = time.monotonic() + ENOUGH
        while not condition():
            assert time.monotonic() < end
            spin(self.rig, 0.01)


@pytest.fixture(autouse=True)
def drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Eye, "dark", False)
    drivers: Any = table.DRIVERS
    monkeypatch.setitem(drivers, "stage", table.Driver(axes=Stage, camera=Eye))


@pytest.fixture
def tell(tmp_path: Path) -> Iterator[Told]:
    with lone_node(RigNode, scenario=written(tmp_path), watchdog=3600.0) as rig:
        yield Told(rig)


def test_moves_are_relative_to_where_the_axes_are_and_read_back(tell: Told) -> None:
    assert list(tell(Reset(0, 1)).position) == [0, 0]
    assert np.allclose(tell(Move(0, 0, np.array([0.3, -0.1]))).position, [0.3, -0.1])
    assert np.allclose(tell(Move(0, 1, np.array([0.1, 0.0]))).values, [0.4, -0.1])


def test_scale_turns_actions_into_units_of_axes(tmp_path: Path) -> None:
    with lone_node(RigNode, scenario=written(tmp_path, {"scale": [1.0, 10.0]}), watchdog=3600.0) as rig:
        tell = Told(rig)
        tell(Reset(0, 1))
        answer = tell(Move(0, 0, np.array([0.2, 0.2])))
        assert np.allclose(Stage.last.where, [0.2, 2.0])
        assert np.allclose(answer.position, [0.2, 0.2])
        assert np.allclose(rig.limits.workspace[1], [5.0, 0.5])


def test_episodes_start_where_their_seed_says(tmp_path: Path) -> None:
    given = written(tmp_path, {"start_low": [1.0, -2.0], "start_high": [2.0, -1.0]})
    with lone_node(RigNode, scenario=given, watchdog=3600.0) as rig:
        tell = Told(rig)
        starts = [tuple(tell(Reset(episode, seed)).position) for episode, seed in enumerate((7, 8, 7))]
    assert starts[0] == starts[2] != starts[1]
    assert all(1 <= x <= 2 and -2 <= y <= -1 for x, y in starts)


def test_reading_compares_with_a_picture_taken_at_the_reference_once(tmp_path: Path) -> None:
    rig = {
        "camera": {"driver": "stage"},
        "reading": {"name": f"{__name__}:Brightness", "arguments": {"arrived": 1.5}},
        "reference_at": [2.0, 0.0],
        "start_low": [-1.0, 0.0],
        "start_high": [-1.0, 0.0],
    }
    size = {"observation_size": 1, "picture_height": 8, "picture_width": 8, "picture_encoding": "mono8"}
    with lone_node(RigNode, scenario=written(tmp_path, rig, action_radius=4.0, **size), watchdog=3600.0) as node:
        tell = Told(node)
        assert list(tell(Reset(0, 1)).values) == [-30.0]
        answer = tell(Move(0, 0, np.array([2.9, 0.0])))
        assert (list(answer.values), answer.terminated) == ([-1.0], True)
        assert list(tell(Reset(1, 1)).values) == [-30.0]


def test_a_function_is_a_reading_too(tmp_path: Path) -> None:
    given = written(tmp_path, {"reading": {"name": f"{__name__}:twice"}})
    with lone_node(RigNode, scenario=given, watchdog=3600.0) as rig:
        tell = Told(rig)
        tell(Reset(0, 1))
        assert np.allclose(tell(Move(0, 0, np.array([0.3, 0.0]))).values, [0.6, 0.0])


def test_forgotten_homing_is_a_fault_until_the_axes_are_homed(tmp_path: Path) -> None:
    motion = {"axes": {**RIG["axes"], "motion": {**RIG["axes"]["motion"], "home_required": True}}}
    with lone_node(RigNode, scenario=written(tmp_path, motion), watchdog=3600.0) as rig:
        tell = Told(rig)
        tell(Reset(0, 1))
        assert tell(Move(0, 0, np.array([0.1, 0.0]))).refusal == Refusal.HARDWARE_FAULT
        assert "home" in rig._fault and np.allclose(Stage.last.where, 0)
        assert not rig._on_home(Trigger.Request(), Trigger.Response()).success  # a fault comes first
        assert rig._on_reset_fault(Trigger.Request(), Trigger.Response()).success
        assert rig._on_home(Trigger.Request(), Trigger.Response()).success
        tell.until(lambda: rig._worker.homed)
        tell(Reset(1, 1))
        assert tell(Move(1, 0, np.array([0.1, 0.0]))).refusal == Refusal.NONE


def test_homing_that_fails_is_a_fault_at_once(tell: Told) -> None:
    tell.stage.gone = True
    assert tell.rig._on_home(Trigger.Request(), Trigger.Response()).success
    tell.until(lambda: tell.rig.diagnostics.status is Status.FAULT)
    assert "homing: a device failed while working (cable pulled)" in tell.rig._fault
    assert tell(Reset(0, 1)).refusal == Refusal.HARDWARE_FAULT


def test_homing_at_the_start_comes_before_the_first_episode(tmp_path: Path) -> None:
    motion = {"axes": {**RIG["axes"], "motion": {**RIG["axes"]["motion"], "home_required": True}}}
    with lone_node(RigNode, scenario=written(tmp_path, {**motion, "home_at_start": True}), watchdog=3600.0) as rig:
        tell = Told(rig)
        tell(Reset(0, 1))
        assert tell(Move(0, 0, np.array([0.1, 0.0]))).refusal == Refusal.NONE
        assert Stage.last.homings == 1


def test_a_move_that_ends_short_is_a_fault_and_the_episode_goes_no_further(tell: Told) -> None:
    tell(Reset(0, 1))
    tell.stage.deaf = True
    assert tell(Move(0, 0, np.array([0.3, 0.0]))).refusal == Refusal.HARDWARE_FAULT
    assert tell.rig.diagnostics.status is Status.FAULT
    assert "off its target" in tell.rig._fault
    tell.stage.deaf = False
    assert tell(Move(0, 0, np.array([0.3, 0.0]))).refusal == Refusal.HARDWARE_FAULT
    assert np.allclose(tell.stage.where, 0)


def test_a_pulled_cable_is_a_fault_and_the_device_is_connected_again(tell: Told) -> None:
    tell(Reset(0, 1))
    tell.stage.gone = True
    assert tell(Move(0, 0, np.array([0.3, 0.0]))).refusal == Refusal.HARDWARE_FAULT
    answer = tell.rig._on_reset_fault(Trigger.Request(), Trigger.Response())
    assert not answer.success and "cable pulled" in answer.message
    tell.stage.gone = False
    assert tell.rig._on_reset_fault(Trigger.Request(), Trigger.Response()).success
    tell(Reset(1, 1))
    assert tell(Move(1, 0, np.array([0.3, 0.0]))).refusal == Refusal.NONE


def test_a_camera_that_delivers_nothing_is_a_fault(tmp_path: Path) -> None:
    size = {"picture_height": 8, "picture_width": 8, "picture_encoding": "mono8"}
    given = written(tmp_path, {"camera": {"driver": "stage"}}, **size)
    with lone_node(RigNode, scenario=given, watchdog=3600.0) as rig:
        tell = Told(rig)
        tell(Reset(0, 1))
        Eye.dark = True
        assert tell(Move(0, 0, np.array([0.3, 0.0]))).refusal == Refusal.HARDWARE_FAULT
        assert "no picture" in rig._fault


def test_a_picture_of_another_size_than_the_scenario_says_is_a_fault(tmp_path: Path) -> None:
    size = {"picture_height": 9, "picture_width": 8, "picture_encoding": "mono8"}
    given = written(tmp_path, {"camera": {"driver": "stage"}}, **size)
    with lone_node(RigNode, scenario=given, watchdog=3600.0) as rig:
        assert Told(rig)(Reset(0, 1)).refusal == Refusal.HARDWARE_FAULT
        assert "8×9 mono8" in rig._fault


@pytest.mark.parametrize("by_topic", [False, True])
def test_an_emergency_stop_ends_a_move_and_no_old_target_is_resumed(tmp_path: Path, by_topic: bool) -> None:
    given = written(tmp_path)
    with lone_node(RigNode, scenario=given, watchdog=3600.0, emergency_topic="button") as rig:
        tell = Told(rig)
        tell(Reset(0, 1))
        tell.stage.slow = True
        tell(Move(0, 0, np.array([0.5, 0.0])), wait=False)
        tell.until(lambda: tell.stage.where[0] > 0.02)
        if by_topic:
            rig._on_emergency_topic(Bool(data=True))
        else:
            rig._on_emergency_stop(SetBool.Request(data=True), SetBool.Response())
        stopped = tell.stage.where.copy()
        assert rig.diagnostics.status is Status.EMERGENCY_STOP
        spin(rig, 0.2)
        assert np.allclose(tell.stage.where, stopped, atol=0.011) and stopped[0] < 0.5
        rig._on_emergency_topic(Bool(data=False))  # a topic does not release
        assert tell(Reset(1, 1)).refusal == Refusal.EMERGENCY_STOP
        rig._on_emergency_stop(SetBool.Request(data=False), SetBool.Response())
        answer = tell(Reset(1, 1))
        assert answer.refusal == Refusal.NONE
        assert np.allclose(answer.position, tell.stage.where) and answer.position[0] < 0.5


def test_a_move_from_where_somebody_else_has_moved_the_axes_is_refused_and_an_episode_may_begin(tell: Told) -> None:
    tell(Reset(0, 1))
    tell.stage.where = np.array([0.2, 0.0])  # by hand, in a pause
    assert tell(Move(0, 0, np.array([0.1, 0.0]))).refusal == Refusal.INTERRUPTED
    assert list(tell.stage.where) == [0.2, 0.0]
    assert tell.rig.diagnostics.status is Status.READY
    assert list(tell(Reset(1, 1)).position) == [0.2, 0.0]
    assert np.allclose(tell(Move(1, 0, np.array([0.1, 0.0]))).position, [0.3, 0.0])


@pytest.mark.parametrize(
    ("rig", "plant", "words"),
    [
        ({}, {"action_size": 3}, "plant.action_size is 3"),
        ({}, {"observation_size": 3}, "plant.observation_size is 3"),
        ({"camera": {"driver": "stage"}}, {}, "picture_height"),
        ({"scale": [1.0]}, {}, "rig.scale"),
        ({"scale": [1.0, -1.0]}, {}, "rig.scale"),
        ({"start_low": [0.0, 0.0]}, {}, "rig.start_low"),
        ({"start_low": [0.0, 0.0], "start_high": [9.0, 0.0]}, {}, "rig.start_high"),
        ({"reference_at": [9.0, 0.0]}, {}, "rig.reference_at"),
        ({}, {"workspace_low": [-9.0, 0.0], "workspace_high": [1.0, 1.0]}, "plant.workspace_low"),
        ({"axes": {"driver": "stag", "axes": AXES}}, {}, "rig.axes.driver"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(
    tmp_path: Path, rig: dict[str, Any], plant: dict[str, Any], words: str
) -> None:
    from lift_ros.scenario import load_scenario

    with pytest.raises(UserError, match=words):
        load_scenario(written(tmp_path, rig, **plant))


def test_a_reference_needs_a_reading_that_takes_one(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="set_reference"),
        lone_node(RigNode, scenario=written(tmp_path, {"reference_at": [0.0, 0.0]})),
    ):
        pass


def test_a_scenario_without_rig_is_refused() -> None:
    with pytest.raises(UserError, match="no section rig"), lone_node(RigNode, scenario="po-blend-d2"):
        pass
