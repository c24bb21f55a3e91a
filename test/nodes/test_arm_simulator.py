"""The simulated arm without a graph: what it takes, what it drops, and where its joints go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from lone_node import Kept, lone_node

pytest.importorskip("pinocchio", reason="pip install 'lift_ros[arm]'")
trajectory_msgs = pytest.importorskip("trajectory_msgs.msg", reason="pip install ros-trajectory-msgs")

from lift_ros.nodes.arm_simulator_node import ArmSimulator  # noqa: E402

ENOUGH = 60.0


@pytest.fixture(params=["ur5", "panda"])
def node(request: pytest.FixtureRequest) -> Iterator[ArmSimulator]:
    with lone_node(ArmSimulator, robot=request.param) as node:
        yield node


def trajectory(joints: tuple[str, ...], positions: Any, seconds: int = 1) -> Any:
    point = trajectory_msgs.JointTrajectoryPoint(positions=list(positions), velocities=[0.0] * len(positions))
    point.time_from_start.sec = seconds
    return trajectory_msgs.JointTrajectory(joint_names=list(joints), points=[point])


def twist(x: float, frame: str = "") -> TwistStamped:
    message = TwistStamped()
    message.header.frame_id, message.twist.linear.x = frame, x
    return message


def advance_until(node: ArmSimulator, there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ENOUGH
    while not there():
        assert time.monotonic() < deadline
        node.advance()


def test_arm_goes_where_a_trajectory_ends(node: ArmSimulator) -> None:
    target = node.arm.position + 0.1
    node.follow(trajectory(node.arm.joints, target))
    advance_until(node, lambda: np.allclose(node.arm.position, target, atol=1e-3))
    assert not node.diagnostics.drops


def test_trajectory_with_joints_missing_is_dropped_and_the_arm_stays(node: ArmSimulator) -> None:
    before = node.arm.position
    node.follow(trajectory(node.arm.joints[:-1], before[:-1] + 1.0))
    assert node.diagnostics.drops["refused trajectory"] == 1
    for _ in range(20):
        time.sleep(0.01)
        node.advance()
    assert np.allclose(node.arm.position, before, atol=1e-3)


def test_tool_follows_twists_and_stays_when_they_cease(node: ArmSimulator) -> None:
    begin = node.arm.tool_pose()[0]

    def driven() -> bool:
        node.drive(twist(0.1, node.arm.base))
        return bool(node.arm.tool_pose()[0][0] > begin[0] + 0.01)

    advance_until(node, driven)
    advance_until(node, lambda: bool(np.abs(node.arm.velocity).max() < 1e-3))
    there = node.arm.tool_pose()[0]
    assert np.allclose(there[1:], begin[1:], atol=2e-3)
    for _ in range(20):
        time.sleep(0.01)
        node.advance()
    assert np.allclose(node.arm.tool_pose()[0], there, atol=1e-3)


@pytest.mark.parametrize("message", [twist(float("nan")), twist(0.1, "camera")])
def test_twist_that_makes_no_sense_is_dropped(node: ArmSimulator, message: TwistStamped) -> None:
    node.drive(message)
    assert node.diagnostics.drops["refused twist"] == 1
    before = node.arm.position
    time.sleep(0.05)
    node.advance()
    assert np.allclose(node.arm.position, before, atol=1e-3)


@pytest.fixture
def seeing() -> Iterator[tuple[ArmSimulator, Kept]]:
    """A UR5 with a camera that somebody looks through."""
    with lone_node(ArmSimulator, camera_rate=20.0, camera_size=48) as node:
        kept = Kept()
        node._view.publisher = kept
        yield node, kept


def test_camera_at_the_tool_sees_where_the_arm_is(seeing: tuple[ArmSimulator, Kept]) -> None:
    node, kept = seeing
    begin = node.arm.position
    node.look()
    turned = begin + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.5])
    for target in (turned, begin):
        node.follow(trajectory(node.arm.joints, target))
        advance_until(node, lambda target=target: np.allclose(node.arm.position, target, atol=1e-4))  # type: ignore[misc]
        node.look()
    pictures = [np.array(message.data, dtype=float).reshape(48, 48, 3) for message in kept.take()]
    assert len(pictures) == 3 and pictures[0].std() > 20
    away, back = (np.abs(picture - pictures[0]).mean() for picture in pictures[1:])
    assert back < 1 < 10 < away


def test_picture_is_stamped_with_the_time_of_what_it_shows(seeing: tuple[ArmSimulator, Kept]) -> None:
    node, kept = seeing
    node.advance()
    shown = node.get_clock().now().nanoseconds
    time.sleep(0.05)
    node.look()
    (message,) = kept.take()
    assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec <= shown
    assert (message.header.frame_id, message.encoding) == ("tool_camera", "rgb8")
