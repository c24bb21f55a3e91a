"""Executable `fetch_simulator`."""

from __future__ import annotations

from array import array
from typing import Any

from sensor_msgs.msg import Image, JointState

from lift_ros.array_types import ByteArray
from lift_ros.graph import qos
from lift_ros.messages.pictures import image_fields
from lift_ros.nodes.positioning_simulator_node import PositioningSimulator
from lift_ros.positioning.problem import Observed, Problem
from lift_ros.scenario import Scenario


class FetchSimulator(PositioningSimulator):
    """Simulates a Fetch arm with MuJoCo; joint states and camera images are for viewers."""

    executable = "fetch_simulator"
    summary = "a plant: simulates the Fetch arm of a scenario with MuJoCo"
    kinds = ("fetch_reach", "fetch_touch_and_place")

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._joint_publisher = self.create_publisher(JointState, qos.JOINT_STATES, qos.VIEW)
        self._image_publisher = self.create_publisher(Image, qos.IMAGE, qos.VIEW)

    def make_problem(self, scenario: Scenario) -> Problem:
        """Build the simulation, with a camera where one is wanted."""
        return scenario.make_problem(render_size=self.value("image_size") or None)

    def read(self) -> Observed:
        """Return what the simulation gave and show it to viewers."""
        observed = super().read()
        problem: Any = self.problem
        if self.value("joint_states"):
            joints = JointState()
            joints.header.stamp = self.get_clock().now().to_msg()
            joints.name = list(problem.arm.joint_names)
            joints.position = problem.arm.joint_positions().tolist()
            self._joint_publisher.publish(joints)
        if observed.image is not None and self._image_publisher.get_subscription_count():
            self._image_publisher.publish(self._view(observed.image))
        return observed

    def _view(self, image: ByteArray) -> Image:
        (height, width, encoding, row), pixels = image_fields("image", image)
        message = Image(height=height, width=width, encoding=encoding[:-1].decode(), step=row, data=array("B", pixels))
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = self.value("frame_id")
        return message


main = FetchSimulator.main
