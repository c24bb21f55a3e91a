"""A plant alone: what it executes, repeats, drops and refuses, and when it holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lone_node import Kept, lone_node
from std_srvs.srv import SetBool, Trigger

import lift_ros.msg as msg
from lift_ros.collection.exchange import Hold, Move, Refusal, Reset
from lift_ros.errors import UserError
from lift_ros.graph.parameters import PLANT_PARAMETERS
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.loopback_hardware_node import LoopbackHardware
from lift_ros.nodes.plant import PlantNode
from lift_ros.nodes.positioning_simulator_node import PositioningSimulator
from lift_ros.positioning.problem import Limits, Observed

ACTION = np.array([0.1, 0.0])


class Rig(PlantNode):
    """A plant that notes what it is told to do."""

    executable = "loopback_hardware"
    summary = "for tests"

    def make_limits(self) -> Limits:
        self.deeds: list[str] = []
        self.busy = False
        self.broken = ""  # which deed raises
        self.where = np.zeros(2)
        return Limits(2, 2, 0.3, 100, (np.full(2, -1.0), np.full(2, 1.0)))

    def break_down(self, deed: str) -> None:
        if self.broken == deed:
            raise OSError("the cable is out")

    def begin(self, seed: int) -> None:
        self.break_down("begin")
        self.deeds.append(f"begin {seed}")
        self.where = np.zeros(2)

    def move(self, action: Any) -> None:
        self.break_down("move")
        self.deeds.append("move")
        self.where = self.where + action

    def moving(self) -> bool:
        self.break_down("moving")
        return self.busy

    def read(self) -> Observed:
        self.break_down("read")
        return Observed(values=self.where, position=self.where, terminated=bool(self.where[0] > 0.85))

    def hold(self) -> None:
        self.deeds.append("hold")
        self.break_down("hold")

    def recover(self) -> None:
        self.deeds.append("recover")
        self.break_down("recover")


class Told:
    """A rig, and what it answers to commands."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.answers = Kept(msg.Observation)
        rig._publisher = self.answers

    def __call__(self, *commands: Reset | Move | Hold) -> list[tuple[int, int, int]]:
        for command in commands:
            self.rig._on_command(command)
        return [(answer.episode, answer.step, answer.refusal) for answer in self.answers.take()]


@pytest.fixture
def tell() -> Iterator[Told]:
    with lone_node(Rig, watchdog=3600.0) as rig:
        yield Told(rig)


def test_reset_and_moves_are_executed_and_answered_in_order(tell: Told) -> None:
    assert tell(Reset(4, 9), Move(4, 0, ACTION), Move(4, 1, ACTION)) == [(4, 0, 0), (4, 1, 0), (4, 2, 0)]
    assert tell.rig.deeds == ["begin 9", "move", "move"]
    assert tell.rig.where.tolist() == [0.2, 0.0]


def test_repeated_commands_are_answered_again_and_executed_once(tell: Told) -> None:
    assert tell(Reset(4, 9), Reset(4, 9)) == [(4, 0, 0), (4, 0, 0)]
    assert tell(Move(4, 0, ACTION), Move(4, 0, ACTION)) == [(4, 1, 0), (4, 1, 0)]
    assert tell.rig.deeds == ["begin 9", "move"]


def test_same_episode_begins_anew_when_it_had_moved(tell: Told) -> None:
    tell(Reset(4, 9), Move(4, 0, ACTION))
    assert tell(Reset(4, 9)) == [(4, 0, 0)]
    assert tell.rig.deeds == ["begin 9", "move", "begin 9"]


@pytest.mark.parametrize("command", [Move(5, 1, ACTION), Move(3, 1, ACTION), Move(4, 1, ACTION, "another run")])
def test_a_command_of_an_episode_that_was_not_begun_is_refused_at_once(tell: Told, command: Move) -> None:
    tell(Reset(4, 9), Move(4, 0, ACTION))
    assert tell(command) == [(command.episode, 1, int(Refusal.UNKNOWN_EPISODE))]
    assert tell.rig.deeds == ["begin 9", "move"]
    assert tell(Move(4, 1, ACTION)) == [(4, 2, 0)]


def test_future_commands_are_dropped_and_counted(tell: Told) -> None:
    tell(Reset(4, 9), Move(4, 0, ACTION))
    assert tell(Move(4, 7, ACTION)) == []
    assert tell.rig.deeds == ["begin 9", "move"]
    assert tell.rig.diagnostics.drops["command of another step"] == 1


def test_answers_carry_the_token_of_the_run_and_what_was_executed(tell: Told) -> None:
    for command in (Reset(4, 9, "a run"), Move(4, 0, ACTION, "a run"), Move(4, 1, np.array([0.4, 0.0]), "a run")):
        tell.rig._on_command(command)
    assert [answer.run for answer in tell.answers.messages] == ["a run"] * 3
    assert [list(answer.executed) for answer in tell.answers.messages] == [[], ACTION.tolist(), []]


def test_the_same_episode_of_another_arbiter_begins_anew(tell: Told) -> None:
    tell(Reset(4, 9, "a run"), Reset(4, 9, "a run"))
    assert tell.rig.deeds == ["begin 9"]
    tell(Reset(4, 9, "another run"))
    assert tell.rig.deeds == ["begin 9", "begin 9"]


def test_stale_commands_are_dropped_and_counted(tell: Told) -> None:
    tell(Reset(4, 9), Move(4, 0, ACTION), Move(4, 1, ACTION), Move(4, 2, ACTION))
    assert tell(Move(4, 0, ACTION)) == []
    assert tell.rig.diagnostics.drops["command of another step"] == 1


def test_nothing_moves_before_the_first_reset(tell: Told) -> None:
    assert tell(Move(0, 0, ACTION)) == [(0, 0, int(Refusal.UNKNOWN_EPISODE))]
    assert tell.rig.deeds == []


@pytest.mark.parametrize(
    ("action", "refusal"),
    [
        ([0.4, 0.0], Refusal.TOO_LONG),
        ([np.nan, 0.0], Refusal.NOT_FINITE),
        ([0.1], Refusal.WRONG_SIZE),
    ],
)
def test_unsafe_commands_are_refused_and_the_step_can_still_be_made(
    tell: Told, action: list[float], refusal: Refusal
) -> None:
    assert tell(Reset(4, 9), Move(4, 0, np.array(action))) == [(4, 0, 0), (4, 0, int(refusal))]
    assert tell.rig.deeds == ["begin 9"]
    assert tell(Move(4, 0, ACTION)) == [(4, 1, 0)]


def test_leaving_the_workspace_is_refused(tell: Told) -> None:
    up = np.array([0.0, 0.3])
    tell(Reset(4, 9), *(Move(4, step, up) for step in range(3)))
    assert tell(Move(4, 3, up)) == [(4, 3, int(Refusal.OUTSIDE_WORKSPACE))]
    assert tell.rig.diagnostics.counts["refused: outside workspace"] == 1


def test_nothing_moves_after_the_goal_is_reached(tell: Told) -> None:
    right = np.array([0.29, 0.0])
    tell(Reset(4, 9), *(Move(4, step, right) for step in range(3)))
    assert tell.rig.diagnostics.status is Status.READY
    assert tell(Move(4, 3, right)) == []


def test_a_move_that_takes_time_is_answered_when_it_is_done(tell: Told) -> None:
    tell(Reset(4, 9))
    tell.rig.busy = True
    assert tell(Move(4, 0, ACTION), Move(4, 0, ACTION)) == []
    tell.rig.busy = False
    tell.rig._check_motion()
    assert tell() == [(4, 1, 0)]
    assert tell.rig.deeds == ["begin 9", "move"]


def test_emergency_stop_latches_until_released(tell: Told) -> None:
    tell(Reset(4, 9), Move(4, 0, ACTION))
    answer = tell.rig._on_emergency_stop(SetBool.Request(data=True), SetBool.Response())
    assert answer.success
    assert tell.rig.deeds[-1] == "hold"
    assert tell(Move(4, 1, ACTION), Reset(5, 9)) == [(4, 1, 5), (5, 0, 5)]
    assert tell.rig.diagnostics.status is Status.EMERGENCY_STOP
    tell(Hold(4, 1))
    assert tell.rig.diagnostics.status is Status.EMERGENCY_STOP
    tell.rig._on_emergency_stop(SetBool.Request(data=False), SetBool.Response())
    assert tell.rig.diagnostics.status is Status.READY
    assert tell(Reset(5, 9), Move(5, 0, ACTION)) == [(5, 0, 0), (5, 1, 0)]


def test_what_was_under_way_does_not_go_on_after_an_emergency_stop(tell: Told) -> None:
    tell(Reset(4, 9), Move(4, 0, ACTION))
    tell.rig._on_emergency_stop(SetBool.Request(data=True), SetBool.Response())
    tell.rig._on_emergency_stop(SetBool.Request(data=False), SetBool.Response())
    assert tell(Move(4, 1, ACTION)) == [(4, 1, int(Refusal.INTERRUPTED))]


def test_a_stop_during_a_move_is_told_as_such_until_it_is_released(tell: Told) -> None:
    tell(Reset(4, 9))
    tell.rig.busy = True
    tell(Move(4, 0, ACTION))
    tell.rig._on_emergency_stop(SetBool.Request(data=True), SetBool.Response())
    assert tell(Move(4, 0, ACTION)) == [(4, 0, int(Refusal.EMERGENCY_STOP))]


def test_the_workspace_cannot_be_left_by_interrupted_moves(tell: Told) -> None:
    tell(Reset(4, 9), Move(4, 0, np.array([0.3, 0.0])))
    for _ in range(8):
        tell.rig.busy = True
        tell(Move(4, 1, np.array([0.3, 0.0])), Hold(4, 1))
        tell.rig.busy = False
    assert tell.rig.deeds.count("move") == 2
    assert np.abs(tell.rig.where).max() <= 1.0
    assert tell(Move(4, 1, ACTION)) == [(4, 1, int(Refusal.INTERRUPTED))]
    assert tell(Reset(5, 9), Move(5, 0, ACTION)) == [(5, 0, 0), (5, 1, 0)]


@pytest.mark.parametrize("held", [True, False])
def test_a_reset_repeated_after_an_interrupted_move_is_a_real_one(tell: Told, held: bool) -> None:
    tell(Reset(4, 9))
    tell.rig.busy = True
    tell(Move(4, 0, ACTION), *([Hold(4, 0)] if held else []))
    tell.rig.busy = False
    assert tell(Reset(4, 9)) == [(4, 0, 0)]
    assert tell.rig.deeds == ["begin 9", "move", "hold", "begin 9"]
    assert tell.rig.where.tolist() == [0.0, 0.0]


def test_a_reset_that_was_held_is_made_anew(tell: Told) -> None:
    tell.rig.busy = True
    tell(Reset(4, 9), Reset(4, 9), Hold(4, 0))
    tell.rig.busy = False
    assert tell(Reset(4, 9)) == [(4, 0, 0)]
    assert tell.rig.deeds == ["begin 9", "hold", "begin 9"]


FAULT = int(Refusal.HARDWARE_FAULT)


def reset_fault(rig: Rig) -> Trigger.Response:
    answer: Trigger.Response = rig._on_reset_fault(Trigger.Request(), Trigger.Response())
    return answer


@pytest.mark.parametrize("deed", ["move", "moving", "read"])
def test_an_exception_of_the_hardware_is_a_fault_that_latches(tell: Told, deed: str) -> None:
    tell(Reset(4, 9))
    tell.rig.broken = deed
    assert tell(Move(4, 0, ACTION)) == [(4, 0, FAULT)]
    assert (tell.rig.diagnostics.status, tell.rig.diagnostics.detail) == (Status.FAULT, f"{deed}: the cable is out")
    assert tell.rig.deeds[-1] == "hold"
    tell.rig.broken, moved = "", tell.rig.deeds.count("move")
    assert tell(Move(4, 0, ACTION), Reset(4, 9), Reset(5, 9)) == [(4, 0, FAULT), (4, 0, FAULT), (5, 0, FAULT)]
    assert tell.rig.deeds.count("move") == moved and tell.rig.deeds.count("hold") == 1


def test_a_fault_on_the_way_to_the_start_refuses_the_reset(tell: Told) -> None:
    tell.rig.broken = "begin"
    assert tell(Reset(4, 9)) == [(4, 0, FAULT)]
    assert tell.rig.diagnostics.detail == "begin: the cable is out"


def test_a_fault_is_reset_once_the_hardware_is_mended_and_only_a_new_episode_goes_on(tell: Told) -> None:
    tell(Reset(4, 9))
    tell.rig.broken = "read"
    tell(Move(4, 0, ACTION))
    tell.rig.broken = "recover"
    answer = reset_fault(tell.rig)
    assert not answer.success and answer.message == "the fault stays: the cable is out"
    assert tell.rig.diagnostics.status is Status.FAULT
    tell.rig.broken = ""
    assert reset_fault(tell.rig).success and tell.rig.diagnostics.status is Status.READY
    assert tell(Move(4, 0, ACTION)) == [(4, 0, int(Refusal.INTERRUPTED))]
    assert tell(Reset(5, 9), Move(5, 0, ACTION)) == [(5, 0, 0), (5, 1, 0)]


def test_to_reset_no_fault_does_nothing(tell: Told) -> None:
    tell(Reset(4, 9), Move(4, 0, ACTION))
    assert reset_fault(tell.rig).success and "recover" not in tell.rig.deeds
    assert tell(Move(4, 1, ACTION)) == [(4, 2, 0)]


def test_a_plant_that_cannot_even_hold_has_a_fault_and_is_asked_once(tell: Told) -> None:
    tell(Reset(4, 9))
    tell.rig.busy, tell.rig.broken = True, "hold"
    assert tell(Move(4, 0, ACTION), Hold(4, 0)) == []
    assert tell.rig.diagnostics.detail == "hold: the cable is out"
    assert tell(Move(4, 0, ACTION)) == [(4, 0, FAULT)]
    tell.rig._on_emergency_stop(SetBool.Request(data=True), SetBool.Response())
    assert tell.rig.diagnostics.status is Status.EMERGENCY_STOP
    tell.rig._on_emergency_stop(SetBool.Request(data=False), SetBool.Response())
    assert tell.rig.diagnostics.status is Status.FAULT
    tell.rig.close()  # as at the end of the process, cable in or out


def test_a_reset_does_not_begin_where_the_move_before_cannot_be_held(tell: Told) -> None:
    tell(Reset(4, 9))
    tell.rig.busy = True
    tell(Move(4, 0, ACTION))
    tell.rig.broken = "hold"
    assert (5, 0, FAULT) in tell(Reset(5, 9))
    assert "begin 9" in tell.rig.deeds and tell.rig.deeds.count("begin 9") == 1


def test_a_move_that_does_not_end_is_a_fault(tell: Told) -> None:
    tell(Reset(4, 9))
    tell.rig.busy = True
    assert tell(Move(4, 0, ACTION)) == []
    tell.rig._began_ns -= 3600 * 10**9
    tell.rig._check_motion()
    assert tell() == [(4, 0, FAULT)]
    assert tell.rig.diagnostics.detail == "move 0 of episode 4 did not end within move_limit, 60 s"
    assert tell.rig.deeds[-1] == "hold"


def test_the_way_to_a_start_may_take_long(tell: Told) -> None:
    tell.rig.busy = True
    tell(Reset(4, 9))
    tell.rig._began_ns -= 3600 * 10**9
    tell.rig._check_motion()
    tell.rig.busy = False
    tell.rig._check_motion()
    assert tell() == [(4, 0, 0)]


def test_hold_stops_a_move_under_way(tell: Told) -> None:
    tell(Reset(4, 9))
    tell.rig.busy = True
    tell(Move(4, 0, ACTION), Hold(4, 0))
    assert tell.rig.deeds == ["begin 9", "move", "hold"]
    assert tell.rig.diagnostics.status is Status.HELD


def test_watchdog_holds_once_when_commands_cease_and_the_next_command_goes_on(tell: Told) -> None:
    tell(Reset(4, 9), Move(4, 0, ACTION))
    tell.rig._check_watchdog()
    assert tell.rig.diagnostics.status is Status.MOVING
    tell.rig._heard_ns = time.monotonic_ns() - 3600 * 10**9
    tell.rig._check_watchdog()
    tell.rig._check_watchdog()
    assert tell.rig.deeds == ["begin 9", "move", "hold"]
    assert tell.rig.diagnostics.status is Status.HOLDING
    assert tell(Move(4, 1, ACTION)) == [(4, 2, 0)]
    assert tell.rig.diagnostics.status is Status.MOVING


def test_watchdog_leaves_a_plant_alone_that_has_arrived_or_not_begun(tell: Told) -> None:
    for commands in ((), (Reset(4, 9),)):
        tell(*commands)
        tell.rig._heard_ns = time.monotonic_ns() - 3600 * 10**9
        tell.rig._check_watchdog()
        assert "hold" not in tell.rig.deeds


def test_the_example_of_a_rig_arrives_where_it_is_told_to() -> None:
    with lone_node(LoopbackHardware, move_time=0.0, dimensions=3, watchdog=3600.0) as rig:
        answers = Kept(msg.Observation)
        rig._publisher = answers
        rig._on_command(Reset(0, 1))
        rig._on_command(Move(0, 0, np.array([0.1, 0.2, 0.0])))
        first, second = answers.take()
        assert list(first.position) == [0.0, 0.0, 0.0]
        assert list(second.position) == [0.1, 0.2, 0.0]
        assert np.isnan(second.reward)


def test_the_example_of_a_rig_stays_where_it_was_stopped() -> None:
    with lone_node(LoopbackHardware, move_time=60.0, watchdog=3600.0) as rig:
        rig._drive_to(np.array([0.2, 0.0]))
        rig.hold()
        assert not rig.moving()
        assert 0.0 <= rig.read().position[0] < 0.2


def test_a_simulator_refuses_nothing_that_its_problem_would_execute() -> None:
    with lone_node(PositioningSimulator, scenario="po-none-d2", watchdog=3600.0) as node:
        answers = Kept(msg.Observation)
        node._publisher = answers
        node._on_command(Reset(0, 1))
        radius = node.limits.action_radius
        for step in range(20):  # far beyond the border, where it stops by itself
            node._on_command(Move(0, step, np.array([radius, 0.0])))
        assert {answer.refusal for answer in answers.take()} == {0}


class Stage(PlantNode):
    """A rig that leaves its limits to the scenario, as its author should."""

    executable = "stage"
    summary = "for tests"
    parameters = PLANT_PARAMETERS
    known_when_switched_on = 0.0

    def switch_on(self) -> None:
        self.known_when_switched_on = self.limits.action_radius

    def begin(self, seed: int) -> None:
        pass

    def move(self, action: Any) -> None:
        pass

    def read(self) -> Observed:
        return Observed(values=np.zeros(3), position=np.zeros(2))

    def hold(self) -> None:
        pass


def test_what_a_rig_can_do_stands_in_its_scenario_alone(tmp_path: Path) -> None:
    scenario = tmp_path / "stage.yaml"
    scenario.write_text(
        "plant: {kind: hardware, observation_size: 3, action_size: 2, action_radius: 0.4, threshold: 0.02,"
        " workspace_low: [-1, -1], workspace_high: [1, 1]}\n"
        "logging_policy: {name: a_package.not_sourced:here}\n"
    )
    with lone_node(Stage, scenario=str(scenario)) as stage:
        limits = stage.limits
        assert (limits.observation_size, limits.action_size, limits.action_radius) == (3, 2, 0.4)
        assert limits.workspace is not None
        assert limits.workspace[1].tolist() == [1.0, 1.0]
        assert stage.scenario.threshold == 0.02
        assert stage.known_when_switched_on == 0.4
        answers = Kept(msg.Observation)
        stage._publisher = answers
        stage._on_command(Reset(0, 1))
        stage._on_command(Move(0, 0, np.array([0.41, 0.0])))
        assert [answer.refusal for answer in answers.take()] == [0, int(Refusal.TOO_LONG)]


def test_a_rig_without_a_scenario_is_told_to_name_it() -> None:
    with pytest.raises(UserError, match="parameter scenario is empty.*-p scenario:=FILE"), lone_node(Stage):
        pass
