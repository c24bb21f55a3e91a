"""Joints behind the action `follow_joint_trajectory`, which tells why a trajectory was refused or given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import DriverFault
from lift_ros.drivers.ros_link import Link
from lift_ros.drivers.topic_joints import TrajectoryAxes

_REMEDY = "it is not on PyPI: source a ROS installation that has it, or set interface: joint_trajectory"


class ActionAxes(TrajectoryAxes):
    """Like the topic, but a goal has an answer; a stop cancels it and holds."""

    _goal: Any = None  # the one that was sent last: answers to older ones are not heeded
    _handle: Any = None
    _failure: DriverFault | None = None

    def connect(self) -> None:
        """Refuse at once where the action's type is not installed."""
        with needed_by("topics", _REMEDY):
            from control_msgs.action import FollowJointTrajectory
        self._kind = FollowJointTrajectory
        self._goal = self._handle = self._failure = None
        super().connect()

    def _open(self, link: Link) -> None:
        from rclpy.action.client import ActionClient

        seconds, name = self._settings["connection_seconds"], self._settings["command"]
        self._publisher = ActionClient(link.node, self._kind, name)
        if not self._publisher.wait_for_server(timeout_sec=seconds):
            raise DriverFault(
                f"action {name} has no server after {seconds:g} s; start and activate its controller, check the name "
                "and ROS_DOMAIN_ID"
            )

    def busy(self) -> bool:
        """As the joints tell; DriverFault where the controller gave up."""
        if self._failure is not None:
            raise self._failure
        return super().busy()

    def _send(self, positions: Sequence[float], seconds: float) -> None:
        handle, self._handle, self._failure = self._handle, None, None
        if self._publisher is None:
            return
        if handle is not None and self._plan is None:
            handle.cancel_goal_async()
        if len(positions):  # the action knows no empty trajectory
            goal = self._kind.Goal(trajectory=self._trajectory(positions, seconds))
            self._goal = goal
            sent = self._publisher.send_goal_async(goal)
            sent.add_done_callback(lambda future: self._answered(goal, future.result()))

    def _answered(self, goal: Any, handle: Any) -> None:
        if goal is not self._goal:
            handle.cancel_goal_async()  # it was given up before it was accepted
        elif not handle.accepted:
            self._fail("refused the trajectory; look into the controller's log")
        else:
            self._handle = handle
            handle.get_result_async().add_done_callback(lambda future: self._ended(goal, future.result().result))

    def _ended(self, goal: Any, result: Any) -> None:
        if goal is self._goal and self._plan is not None and result.error_code != 0:
            self._fail(f"ended with error {result.error_code} ({result.error_string}); see the controller's log")

    def _fail(self, what: str) -> None:
        self._failure = DriverFault(f"action {self._settings['command']} {what}")
