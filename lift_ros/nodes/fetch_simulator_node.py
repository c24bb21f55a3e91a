"""Executable `fetch_simulator`."""

from __future__ import annotations

from typing import Any

from sensor_msgs.msg import JointState

from lift_ros.graph import qos
from lift_ros.nodes.positioning_simulator_node import PositioningSimulator
from lift_ros.positioning.problem import Observed, Problem
from lift_ros.scenario import Scenario


class FetchSimulator(PositioningSimulator):
    """Simulates a Fetch arm with MuJoCo; joint states are for viewers."""

    executable = "fetch_simulator"
    summary = "a plant: simulates the Fetch arm of a scenario with MuJoCo"
    kinds = ("fetch_reach", "fetch_touch_and_place")

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._joint_publisher = self.create_publisher(JointState, qos.JOINT_STATES, qos.VIEW)

    def make_problem(self, scenario: Scenario) -> Problem:
        """Build the simulation, with a camera where one is wanted besides."""
        return scenario.make_recorded_problem(self.value("image_size") or None)

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
        return observed


main = FetchSimulator.main
