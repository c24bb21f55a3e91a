"""The rules of motion, told with times and positions alone."""

from __future__ import annotations

import numpy as np
import pytest

from lift_ros.drivers.motion import Action, MotionSettings, Move, Phase, Rest
from lift_ros.drivers.protocol import Axis, DriverFault, MoveRefused

AXES = (Axis("x", "um", -10.0, 10.0), Axis("z", "mm", 0.0, 5.0))
SETTLE, STALL, LIMIT = 1.0, 5.0, 30.0


def settings(backlash: tuple[float, float] = (0.0, 0.0), velocity: float = np.nan, **more: bool) -> MotionSettings:
    return MotionSettings(
        AXES,
        tolerance=np.array([0.1, 0.1]),
        velocity=np.array([velocity, np.nan]),
        backlash=np.array(backlash),
        settle_seconds=SETTLE,
        stall_seconds=STALL,
        time_limit=LIMIT,
        **more,
    )


def move(target: tuple[float, ...] = (4.0, 2.0), rules: MotionSettings | None = None, homed: bool = True) -> Move:
    return Move(rules or settings(), np.zeros(2), np.array(target), 0.0, homed=homed)


def at(x: float, z: float) -> np.ndarray:
    return np.array([x, z])


def test_arrival_takes_a_whole_window_at_the_target() -> None:
    under_way = move()
    assert under_way.next(0.5, True, at(2, 1)).action is Action.WAIT
    assert under_way.next(1.0, False, at(4.05, 2)).action is Action.WAIT
    assert under_way.phase is Phase.SETTLING
    assert under_way.next(1.9, False, at(4, 2)).action is Action.WAIT
    assert under_way.next(2.0, False, at(4, 2)).action is Action.FINISH
    assert under_way.phase is Phase.ARRIVED


@pytest.mark.parametrize(("busy", "x"), [(True, 4.0), (False, 4.2)])
def test_window_begins_anew_when_an_axis_leaves_it_or_moves_again(busy: bool, x: float) -> None:
    under_way = move()
    under_way.next(1.0, False, at(4, 2))
    under_way.next(1.5, busy, at(x, 2))
    assert under_way.next(2.1, False, at(4, 2)).action is Action.WAIT
    assert under_way.next(3.1, False, at(4, 2)).action is Action.FINISH


def test_device_that_says_done_before_it_began_is_survived() -> None:
    under_way = move()
    for now, x in ((0.1, 0.0), (0.9, 0.0), (1.0, 1.0), (1.9, 2.0), (2.8, 3.0), (3.7, 4.0)):
        assert under_way.next(now, False, at(x, x / 2)).action is Action.WAIT
    assert under_way.next(4.7, False, at(4, 2)).action is Action.FINISH


def test_short_move_is_a_fault_that_names_axis_value_limit_and_remedy() -> None:
    under_way = move()
    under_way.next(0.5, True, at(3, 2))
    assert under_way.next(1.0, False, at(3, 2)).action is Action.WAIT
    decision = under_way.next(2.0, False, at(3, 2))
    assert (decision.action, under_way.phase) == (Action.FAIL, Phase.FAULTED)
    said = "axis x is at 3 um, 1 um off its target 4 um \\(tolerance 0.1 um\\).*settle_seconds 1.*short or refused"
    with pytest.raises(DriverFault, match=said):
        raise decision.fault or AssertionError


def test_stall_is_a_fault_also_at_the_target() -> None:
    for position in (at(1, 1), at(4, 2)):
        under_way = move()
        assert under_way.next(1.0, True, position).action is Action.WAIT
        assert under_way.next(5.9, True, position).action is Action.WAIT
        assert "stalled" in str(under_way.next(6.0, True, position).fault)


def test_move_over_its_time_limit_is_a_fault_though_it_progresses() -> None:
    under_way = move((10.0, 5.0))
    for second in range(1, 31):
        assert under_way.next(float(second), True, at(second / 5, second / 10)).action is Action.WAIT
    assert "limit 30 s" in str(under_way.next(30.1, True, at(6.2, 3.1)).fault)


def test_time_limit_follows_distance_and_velocity() -> None:
    assert settings(velocity=2.0).seconds_for(at(-8, 100)) == LIMIT + 4
    assert settings().seconds_for(at(8, 100)) == LIMIT


@pytest.mark.parametrize("target", [(10.1, 0.0), (0.0, -0.1), (np.nan, 0.0), (np.inf, 0.0), (1.0,)])
def test_target_beyond_limits_is_refused_before_anything_moves(target: tuple[float, ...]) -> None:
    with pytest.raises(MoveRefused, match="allowed"):
        move(target)


def test_refusal_names_the_limits() -> None:
    with pytest.raises(MoveRefused, match="target of axis x is 10.1 um; allowed: -10 um to 10 um"):
        move((10.1, 0.0))


def test_homing_is_required_unless_the_scenario_says_otherwise() -> None:
    with pytest.raises(MoveRefused, match="axes x, z were not homed"):
        move(homed=False)
    assert move(rules=settings(home_required=False), homed=False).phase is Phase.MOVING


def test_backlash_is_approached_from_one_side_only() -> None:
    rules = settings(backlash=(0.5, 0.0))
    assert move((4.0, 2.0), rules).first_target.tolist() == [4.0, 2.0]
    under_way = move((-4.0, 2.0), rules)
    assert under_way.first_target.tolist() == [-4.5, 2.0]
    assert under_way.phase is Phase.APPROACHING
    assert under_way.next(1.0, True, at(-4.5, 2)).action is Action.WAIT
    turned = under_way.next(1.1, False, at(-4.5, 2))
    assert turned.action is Action.START
    assert turned.target is not None
    assert turned.target.tolist() == [-4.0, 2.0]
    assert under_way.next(1.2, False, at(-4, 2)).action is Action.WAIT
    assert under_way.next(2.2, False, at(-4, 2)).action is Action.FINISH


def test_backlash_makes_no_detour_for_an_axis_that_stays() -> None:
    assert move((-0.05, 2.0), settings(backlash=(0.5, 0.0))).phase is Phase.MOVING


def test_backlash_never_leaves_the_limits() -> None:
    with pytest.raises(MoveRefused, match="backlash approach of axis x is -10.3 um"):
        move((-9.8, 2.0), settings(backlash=(0.5, 0.0)))


@pytest.mark.parametrize("position", [at(np.nan, 0), np.zeros(3)])
def test_read_back_that_is_no_position_is_a_fault(position: np.ndarray) -> None:
    assert "reads back" in str(move().next(1.0, False, position).fault)


def test_rest_is_seen_only_when_nothing_moves_for_a_while() -> None:
    rest = Rest(settings(), 0.0, 10.0, "a stop")
    seen = [(0.0, False, 0.0), (0.9, False, 1.0), (1.8, False, 1.0), (1.85, True, 1.0), (2.5, False, 1.0)]
    assert [rest.reached(now, busy, at(x, 0)) for now, busy, x in seen] == [False] * 5
    assert rest.reached(3.5, False, at(1, 0))
    with pytest.raises(DriverFault, match=r"still move 10.5 s after a stop, limit 10 s"):
        Rest(settings(), 0.0, 10.0, "a stop").reached(10.5, True, at(0, 0))
