"""Executable `arm_simulator`: a robot arm in MuJoCo behind the topics that controllers of ROS arms listen to."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.nodes.base import LiftNode
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.picture_view import PictureView
from lift_ros.positioning.arm_camera import ArmCamera
from lift_ros.positioning.joint_controller import JointController, Point
from lift_ros.positioning.robot_arm import STEP_SECONDS, RobotArm

TRAJECTORY = "joint_trajectory"
TWIST = "delta_twist_cmds"
TOOL_POSE = "tool_pose"
TOOL_CAMERA = "tool_camera/image_raw"
TWIST_SECONDS = 0.1  # as moveit_servo's incoming_command_timeout: an older twist no longer moves the tool
_LONGEST_CATCH_UP = 0.1  # seconds of the arm's time in one go; where the machine is slower, the arm is slow too


class ArmSimulator(LiftNode):
    """Our own stand-in for ros2_control and moveit_servo, written from what they document."""

    executable = "arm_simulator"
    summary = "simulates a robot arm behind the topics of joint_trajectory_controller and moveit_servo, to try drivers"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.arm = RobotArm(self.value("robot"))
        self.controller = JointController(self.arm.joints, self.arm.position)
        self._twist, self._twist_until = np.zeros(6), -np.inf
        self._reference = self.arm.position  # of the tool's way under twists
        self._now = time.monotonic()  # of the arm
        self._stamp = self.get_clock().now().to_msg()  # when the arm was where it is
        self._states: Any = self.create_publisher(JointState, qos.JOINT_STATES, qos.VIEW)
        self._poses: Any = self.create_publisher(PoseStamped, TOOL_POSE, qos.VIEW)
        self.create_subscription(JointTrajectory, TRAJECTORY, self.follow, qos.VIEW)
        self.create_subscription(TwistStamped, TWIST, self.drive, qos.VIEW)
        self.every(1.0 / self.value("rate"), self.advance)
        self.camera = ArmCamera(self.value("camera_size")) if self.value("camera_rate") else None
        if self.camera is not None:
            self._view = PictureView(self, "tool_camera", TOOL_CAMERA)
            self.every(1.0 / self.value("camera_rate"), self.look)
        self.set_status(Status.READY)

    def follow(self, message: JointTrajectory) -> None:
        """Take a trajectory over, or refuse it and go on as before."""
        points = [
            Point(point.time_from_start.sec + point.time_from_start.nanosec * 1e-9, point.positions, point.velocities)
            for point in message.points
        ]
        try:
            self.controller.follow(message.joint_names, points, self._now, self.arm.position, self.arm.velocity)
        except UserError as error:
            self.drop("refused trajectory", str(error))
            return
        self._twist_until = -np.inf

    def drive(self, message: TwistStamped) -> None:
        """Move the tool by a twist in the directions of the base, for a moment."""
        linear, angular = message.twist.linear, message.twist.angular
        twist = np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z])
        if not np.isfinite(twist).all() or message.header.frame_id not in ("", self.arm.base):
            frame = message.header.frame_id
            self.drop("refused twist", f"{twist.tolist()} in {frame!r}; allowed: finite numbers in {self.arm.base!r}")
            return
        if self._now >= self._twist_until:
            self._reference = self.arm.position
        self._twist, self._twist_until = twist, self._now + TWIST_SECONDS

    def advance(self) -> None:
        """Let the arm catch up with the clock, and publish where it is."""
        real = time.monotonic()
        self._now = max(self._now, real - _LONGEST_CATCH_UP)
        while self._now < real:
            self.arm.step(*self._wanted())
            self._now += STEP_SECONDS
        self._stamp = self.get_clock().now().to_msg()
        self._publish()

    def look(self) -> None:
        """Publish what the camera sees from where the arm was last; it takes a while, which the stamp leaves out."""
        if self.camera is not None and self._view.wanted:
            self._view.show(self.camera.image(*self.arm.tool_pose()), self._stamp)

    def _wanted(self) -> tuple[FloatArray, FloatArray]:
        if self._now >= self._twist_until:
            return self.controller.reference(self._now)
        velocity = self.arm.joint_velocity(self._reference, self._twist)
        self._reference = self._reference + velocity * STEP_SECONDS
        self.controller.hold(self._reference)  # where the tool stays when no further twist comes
        return self._reference, velocity

    def _publish(self) -> None:
        states = JointState(name=self.arm.joints)
        states.header.stamp = self._stamp
        states.position, states.velocity = self.arm.position.tolist(), self.arm.velocity.tolist()
        self._states.publish(states)
        pose = PoseStamped()
        pose.header.stamp, pose.header.frame_id = self._stamp, self.arm.base
        place, turn = self.arm.tool_pose()
        for name, value in zip(("x", "y", "z"), place.tolist(), strict=True):
            setattr(pose.pose.position, name, value)
        for name, value in zip(("x", "y", "z", "w"), turn.tolist(), strict=True):
            setattr(pose.pose.orientation, name, value)
        self._poses.publish(pose)

    def close(self) -> None:
        """Give the camera's GL context back."""
        super().close()
        if self.camera is not None:
            self.camera.close()


main = ArmSimulator.main
