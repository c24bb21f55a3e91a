"""Robot arms of `example-robot-data` in MuJoCo, with a tool whose place pinocchio tells; no meshes are needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError


@dataclass(frozen=True)
class _Robot:
    file: str
    tool: str
    start: tuple[float, ...]


ROBOTS = {
    "ur5": _Robot("ur_description/urdf/ur5_robot.urdf", "tool0", (0.0, -1.2, 1.5, -1.9, -1.57, 0.0)),
    "panda": _Robot(
        "panda_description/urdf/panda.urdf", "panda_hand_tcp", (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
    ),
}
STEP_SECONDS = 0.002
_STIFFNESS, _DAMPING = 400.0, 40.0  # of each joint, per unit of its inertia: critically damped at 20 rad/s
_SINGULARITY = 0.01  # damping of the inverse Jacobian: near singular poses the tool goes slower than told


class RobotArm:
    """An arm whose motors follow a reference, held against gravity and within their torques."""

    def __init__(self, robot: str) -> None:
        chosen = ROBOTS[robot]
        text = _without_shapes(_find(chosen.file))
        self._model = mujoco.MjModel.from_xml_string(text)
        self._model.opt.timestep = STEP_SECONDS
        self._data = mujoco.MjData(self._model)
        self._kinematics = pinocchio.buildModelFromXML(text)
        self._places = self._kinematics.createData()
        self._tool = self._kinematics.getFrameId(chosen.tool)
        self.base = self._kinematics.frames[1].name
        self.joints = tuple(self._model.joint(i).name for i in range(self._model.njnt))
        if self.joints != tuple(self._kinematics.names)[1:]:
            raise UserError(f"{chosen.file}: MuJoCo and pinocchio order the joints differently; choose another robot")
        self._torques = np.array(self._kinematics.upperEffortLimit)
        self._inertia = np.zeros((self._model.nv, self._model.nv))
        self._data.qpos[:] = chosen.start
        mujoco.mj_forward(self._model, self._data)

    @property
    def position(self) -> FloatArray:
        """Angles of the joints."""
        return np.array(self._data.qpos)

    @property
    def velocity(self) -> FloatArray:
        """Angular velocities of the joints."""
        return np.array(self._data.qvel)

    def step(self, position: FloatArray, velocity: FloatArray) -> None:
        """Let one step of time pass, with torques that draw the joints to a reference."""
        data = self._data
        mujoco.mj_fullM(self._model, self._inertia, data.qM)
        wanted = _STIFFNESS * (position - data.qpos) + _DAMPING * (velocity - data.qvel)
        torques = self._inertia @ wanted + data.qfrc_bias
        data.qfrc_applied[:] = np.clip(torques, -self._torques, self._torques)
        mujoco.mj_step(self._model, data)

    def tool_pose(self, position: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return where the tool is in the base, now or with the joints elsewhere, and its quaternion x, y, z, w."""
        joints = self.position if position is None else position
        pinocchio.framesForwardKinematics(self._kinematics, self._places, joints)
        place = self._places.oMf[self._tool]
        return np.array(place.translation), np.array(pinocchio.Quaternion(place.rotation).coeffs())

    def joint_velocity(self, position: FloatArray, twist: FloatArray) -> FloatArray:
        """Return how joints at a position turn so that the tool moves by a twist in the directions of the base."""
        jacobian = pinocchio.computeFrameJacobian(
            self._kinematics, self._places, position, self._tool, pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        damped = jacobian @ jacobian.T + _SINGULARITY**2 * np.eye(6)
        return np.asarray(jacobian.T @ np.linalg.solve(damped, twist))


def _find(file: str) -> Path:
    """Return a file of example-robot-data, which installs beside pinocchio and has no module of its own."""
    place = Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots" / file
    if not place.is_file():
        raise UserError(f"{place} is missing; pip install example-robot-data, in the environment that has pinocchio")
    return place


def _without_shapes(path: Path) -> str:
    """Return a robot description without shapes, which motion does not take, and with its fingers fixed."""
    root = ElementTree.parse(path).getroot()
    for link in root.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    for joint in root.iter("joint"):
        if joint.get("type") == "prismatic":
            joint.set("type", "fixed")
    return ElementTree.tostring(root, encoding="unicode")
