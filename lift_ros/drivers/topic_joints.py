"""Joints behind a joint_trajectory_controller, which are told by a topic and read back from joint states."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import Axis, DriverFault
from lift_ros.drivers.ros_link import SOURCED, Link, stale, wait_for_listener, wait_until

_RESTING = 0.01  # a joint is at rest below this share of its axis' velocity
_HELD = 0.02  # radians or metres that a held joint may be off where it was told to stay; further, somebody moved it


def stay(told: FloatArray, present: FloatArray) -> FloatArray:
    """Return where joints without an axis stay: as told before, lest errors of control add up from move to move."""
    return np.where(np.abs(present - told) <= _HELD, told, present)


class TrajectoryAxes:
    """Joints of a joint_trajectory_controller; a trajectory that it refuses shows only in joints that stay."""

    def __init__(
        self, layout: tuple[Axis, ...], axes: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
    ) -> None:
        self.layout = layout
        self._settings = settings
        self._joints: list[str] = [axis["joint"] for axis in axes]
        self._all: list[str] = [*self._joints, *settings["held"]]
        self._velocity = np.array([axis["velocity"] for axis in axes])
        self._tolerance = np.array([axis["tolerance"] for axis in axes])
        self._states: dict[str, tuple[float, float, float]] = {}  # position, velocity and arrival of each joint
        self._plan: tuple[FloatArray, float] | None = None  # target, and when it should have been reached
        self._held = np.full(len(settings["held"]), np.nan)  # where joints without an axis were told to stay
        self._telling = threading.Lock()
        self._link: Link | None = None
        self._publisher: Any = None

    def connect(self) -> None:
        """Wait for the state of every joint and for a controller that listens."""
        with needed_by("topics", SOURCED):
            from sensor_msgs.msg import JointState
        self._states, self._plan = {}, None
        self._link = Link("lift_axes", self._settings["namespace"])
        try:
            topic = self._link.full_name(self._settings["state"])
            self._link.hear(JointState, self._settings["state"], self._receive)
            wait_until(
                lambda: all(name in self._states for name in self._all),
                self._settings["connection_seconds"],
                f"topic {topic} brought no state of all of the joints {', '.join(self._all)}: check that its publisher "
                "runs, the joints' names and ROS_DOMAIN_ID; they did not come",
            )
            self._open(self._link)
        except Exception:
            self.close()
            raise

    def _open(self, link: Link) -> None:
        with needed_by("topics", SOURCED):
            from trajectory_msgs.msg import JointTrajectory
        command = self._settings["command"]
        self._publisher = link.speaker(JointTrajectory, command)
        wait_for_listener(self._publisher, link.full_name(command), self._settings["connection_seconds"])

    def _receive(self, message: Any) -> None:
        now = time.monotonic()
        velocities = message.velocity or [0.0] * len(message.name)
        for name, position, velocity in zip(message.name, message.position, velocities, strict=False):
            if math.isfinite(position):
                self._states[name] = (position, velocity, now)

    def home(self) -> None:
        """Do nothing: what publishes joint states knows its reference."""

    def position(self) -> FloatArray:
        """Return the joints as they were last published."""
        return self._read()[: len(self._joints)]

    def _read(self) -> FloatArray:
        """Return the positions of all joints, also of those that are held."""
        states = [self._states.get(name, (0.0, 0.0, -np.inf)) for name in self._all]
        age, limit = time.monotonic() - min(state[2] for state in states), self._settings["stale_seconds"]
        if self._link is None or age > limit:
            topic = self._settings["state"] if self._link is None else self._link.full_name(self._settings["state"])
            raise stale(f"topic {topic}", f"state of all of the joints {', '.join(self._all)}", age, limit)
        return np.array([state[0] for state in states])

    def start(self, target: FloatArray) -> None:
        """Send one point for all joints, to be reached in the time that the slowest axis needs."""
        present = self._read()
        way = np.abs(target - present[: len(target)])
        seconds = max(float((way / self._velocity).max()), self._settings["minimum_seconds"])
        with self._telling:
            self._plan = (np.array(target), time.monotonic() + seconds + self._settings["grace_seconds"])
            self._held = stay(self._held, present[len(target) :])
            self._send([*target, *self._held], seconds)

    def busy(self) -> bool:
        """Whether a joint moves, or the controller still has time to reach the target."""
        position = self.position()
        speed = np.array([abs(self._states[name][1]) for name in self._joints])
        if (speed > _RESTING * self._velocity).any():
            return True
        plan = self._plan
        return (
            plan is not None
            and time.monotonic() < plan[1]
            and bool((np.abs(position - plan[0]) > self._tolerance).any())
        )

    def stop(self) -> None:
        """Hold all joints where they are; where that is not known, an empty trajectory is all that can be said."""
        with self._telling:
            self._plan = None
            try:
                present = self._read()
            except DriverFault as fault:
                self._send([], 0.0)
                raise DriverFault(
                    f"the stop may not be heeded, as controllers may refuse the empty trajectory that was sent: "
                    f"{fault}; use the arm's own stop"
                ) from fault
            self._send(present.tolist(), self._settings["minimum_seconds"])

    def _send(self, positions: Sequence[float], seconds: float) -> None:
        if self._publisher is not None:
            self._publisher.publish(self._trajectory(positions, seconds))

    def _trajectory(self, positions: Sequence[float], seconds: float) -> Any:
        from builtin_interfaces.msg import Duration
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        trajectory = JointTrajectory(joint_names=self._all)
        if len(positions):
            whole = int(seconds)
            due = Duration(sec=whole, nanosec=int((seconds - whole) * 1e9))
            values = [float(value) for value in positions]
            trajectory.points = [
                JointTrajectoryPoint(positions=values, velocities=[0.0] * len(values), time_from_start=due)
            ]
        return trajectory

    def close(self) -> None:
        """Leave the graph."""
        link, self._link, self._publisher = self._link, None, None
        if link is not None:
            link.close()
