"""Trajectories as a joint_trajectory_controller takes or refuses them."""

from __future__ import annotations

import numpy as np
import pytest

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.positioning.joint_controller import JointController, Point

JOINTS = ("a", "b")
REST = np.zeros(2)


def followed(*points: Point, names: tuple[str, ...] = JOINTS, velocity: FloatArray = REST) -> JointController:
    controller = JointController(JOINTS, REST)
    controller.follow(names, points, 10.0, REST, velocity)
    return controller


@pytest.mark.parametrize(
    ("names", "points", "said"),
    [
        (("a",), [Point(1.0, [1.0])], "names the joints a; allowed: a, b"),
        (("a", "c"), [Point(1.0, [1.0, 1.0])], "names the joints a, c; allowed: a, b"),
        (("a", "b", "c"), [Point(1.0, [1.0, 1.0, 1.0])], "allowed: a, b"),
        (("a", "a"), [Point(1.0, [1.0, 1.0])], "allowed: a, b"),
        (JOINTS, [Point(1.0, [1.0])], "point 0 has positions \\[1.0\\]; allowed: 2 finite numbers"),
        (JOINTS, [Point(1.0, [1.0, np.nan])], "positions .*nan.*; allowed: 2 finite"),
        (JOINTS, [Point(1.0, [1.0, 1.0], [np.inf, 0.0])], "velocities .*inf.*; allowed: 2 finite"),
        (JOINTS, [Point(1.0, [1.0, 1.0]), Point(1.0, [2.0, 2.0])], "point 1 is due at 1 s; allowed: later than 1 s"),
        (JOINTS, [Point(0.0, [1.0, 1.0])], "point 0 is due at 0 s; allowed: later than 0 s"),
        (JOINTS, [Point(1.0, [1.0, 1.0], [0.1, 0.0])], "end at rest"),
    ],
)
def test_bad_trajectory_is_refused_and_the_old_one_goes_on(
    names: tuple[str, ...], points: list[Point], said: str
) -> None:
    controller = followed(Point(2.0, [2.0, -2.0]))
    before = controller.reference(11.0)
    with pytest.raises(UserError, match=said):
        controller.follow(names, points, 11.0, REST, REST)
    assert np.array_equal(controller.reference(11.0), before)


def test_without_velocities_the_way_is_straight_and_ends_at_the_last_point() -> None:
    controller = followed(Point(1.0, [1.0, 0.0]), Point(2.0, [1.0, 4.0]))
    assert np.allclose(controller.reference(10.5), [[0.5, 0.0], [1.0, 0.0]])
    assert np.allclose(controller.reference(11.25), [[1.0, 1.0], [0.0, 4.0]])
    assert np.allclose(controller.reference(99.0), [[1.0, 4.0], [0.0, 0.0]])


def test_with_velocities_position_and_velocity_are_continuous() -> None:
    controller = followed(Point(2.0, [1.0, -1.0], [0.0, 0.0]), velocity=np.array([0.3, 0.0]))
    assert np.allclose(controller.reference(10.0), [[0.0, 0.0], [0.3, 0.0]])
    assert np.allclose(controller.reference(12.0 - 1e-9), [[1.0, -1.0], [0.0, 0.0]], atol=1e-6)
    assert controller.reference(11.0)[0][1] == pytest.approx(-0.5)


def test_joints_may_come_in_another_order() -> None:
    controller = followed(Point(1.0, [1.0, 2.0]), names=("b", "a"))
    assert controller.reference(20.0)[0].tolist() == [2.0, 1.0]


def test_new_trajectory_replaces_the_old_one_and_an_empty_one_holds() -> None:
    controller = followed(Point(10.0, [1.0, 1.0]))
    controller.follow(JOINTS, [Point(1.0, [-1.0, -1.0])], 11.0, np.array([0.1, 0.1]), REST)
    assert controller.reference(12.5)[0].tolist() == [-1.0, -1.0]
    controller.follow(JOINTS, [], 13.0, np.array([-0.5, -0.4]), REST)
    assert controller.reference(20.0)[0].tolist() == [-0.5, -0.4]
