"""The Fetch arm of gymnasium-robotics on MuJoCo.

Only the models of gymnasium-robotics are used, with the control of its environments: the action moves the gripper's
motion-capture body, to which the gripper is welded. Its environments reset to another pose than they start from, and
importing it prints notices; here the whole state of MuJoCo is saved once and restored on every reset.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError

_SUBSTEPS = 20
_SETTLING_STEPS = 500  # until the gripper rests
_GRIPPER_TARGET = (-0.498, 0.005, -0.231)  # of the initial pose, relative to the model's
_DOWNWARDS = (1.0, 0.0, 1.0, 0.0)  # orientation of the gripper
_BASE = {"robot0:slide0": 0.405, "robot0:slide1": 0.48, "robot0:slide2": 0.0}
_FINGERS = ("robot0:r_gripper_finger_joint", "robot0:l_gripper_finger_joint")


def _import_mujoco() -> Any:
    try:
        import mujoco
    except ImportError as error:
        raise UserError("Fetch needs MuJoCo: pip install mujoco==3.1.6 gymnasium-robotics==1.3.1") from error
    return mujoco


def _model_path(name: str) -> Path:
    """Find a model of gymnasium-robotics without importing it, which is slow and prints notices."""
    spec = importlib.util.find_spec("gymnasium_robotics")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        path = Path(folder) / "envs" / "assets" / "fetch" / name
        if path.is_file():
            return path
    raise UserError(f"Fetch needs the model {name} of gymnasium-robotics: pip install gymnasium-robotics==1.3.1")


class FetchArm:
    """The simulated arm: moves its gripper by small displacements, and always comes back to the same state."""

    def __init__(self, model_name: str) -> None:
        self._mujoco = _import_mujoco()
        self.model = self._mujoco.MjModel.from_xml_path(str(_model_path(model_name)))
        self.data = self._mujoco.MjData(self.model)
        self._gripper_site = self._id("SITE", "robot0:grip")
        self._gripper_body = self._id("BODY", "robot0:gripper_link")
        self._goal_site = self._id("SITE", "target0")
        self._fingers = [int(self.model.jnt_qposadr[self._id("JOINT", name)]) for name in _FINGERS]
        self._joints = self._robot_joints()
        self.joint_names = tuple(self._joints)
        self._take_initial_pose()
        self._home = np.empty(self._mujoco.mj_stateSize(self.model, self._mujoco.mjtState.mjSTATE_INTEGRATION))
        self._mujoco.mj_getState(self.model, self.data, self._home, self._mujoco.mjtState.mjSTATE_INTEGRATION)
        self.home_position = self.position()

    def joint_positions(self) -> FloatArray:
        """Return the angle or displacement of each joint, in the order of `joint_names`."""
        return np.array([self.data.qpos[address] for address in self._joints.values()])

    def position(self) -> FloatArray:
        """Return where the gripper is."""
        return np.array(self.data.site_xpos[self._gripper_site])

    def restore(self) -> None:
        """Go back to the initial state, including what MuJoCo keeps from step to step to start its solver."""
        self._mujoco.mj_resetData(self.model, self.data)
        self._mujoco.mj_setState(self.model, self.data, self._home, self._mujoco.mjtState.mjSTATE_INTEGRATION)
        self._mujoco.mj_forward(self.model, self.data)

    def move(self, displacement: FloatArray) -> None:
        """Pull the gripper by a displacement for the time of one step; it follows with a lag."""
        self.data.mocap_pos[0] = self.data.xpos[self._gripper_body] + displacement
        self.data.mocap_quat[0] = self.data.xquat[self._gripper_body] + np.array(_DOWNWARDS)
        self._mujoco.mj_step(self.model, self.data, nstep=_SUBSTEPS)
        self._close_gripper()
        self._mujoco.mj_forward(self.model, self.data)

    def show_goal(self, goal: FloatArray) -> None:
        """Put the red mark of the model at the goal; it has no effect on the movement."""
        body = self.model.site_bodyid[self._goal_site]
        self.model.site_pos[self._goal_site] = goal - self.data.xpos[body]
        self._mujoco.mj_forward(self.model, self.data)

    def object_position(self) -> FloatArray:
        """Return where the object is."""
        return np.array(self.data.site_xpos[self._id("SITE", "object0")])

    def put_object(self, position: FloatArray) -> None:
        """Put the object somewhere, upright and at rest."""
        joint = self._id("JOINT", "object0:joint")
        address, velocity = int(self.model.jnt_qposadr[joint]), int(self.model.jnt_dofadr[joint])
        self.data.qpos[address : address + 7] = (*position, 1.0, 0.0, 0.0, 0.0)
        self.data.qvel[velocity : velocity + 6] = 0.0
        self._mujoco.mj_forward(self.model, self.data)

    def let_object_pass(self) -> None:
        """Let the robot pass through the object, which still lies on the table."""
        geometry = self._id("GEOM", "object0")
        table = int(self.model.body_geomadr[self._id("BODY", "table0")])
        self.model.geom_contype[geometry] = self.model.geom_conaffinity[geometry] = 0
        self.model.geom_contype[table] |= 2
        self.model.geom_conaffinity[geometry] = 2

    def _take_initial_pose(self) -> None:
        for name, value in _BASE.items():
            self.data.qpos[self.model.jnt_qposadr[self._id("JOINT", name)]] = value
        welds = self.model.eq_type == self._mujoco.mjtEq.mjEQ_WELD
        self.model.eq_data[welds, :7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        self._mujoco.mj_forward(self.model, self.data)
        self.data.mocap_pos[0] = self.position() + np.array(_GRIPPER_TARGET)
        self.data.mocap_quat[0] = _DOWNWARDS
        self._mujoco.mj_step(self.model, self.data, nstep=_SETTLING_STEPS)
        self._close_gripper()
        self._mujoco.mj_forward(self.model, self.data)

    def _close_gripper(self) -> None:
        self.data.qpos[self._fingers] = 0.0

    def _robot_joints(self) -> dict[str, int]:
        names = (self.model.joint(index).name for index in range(self.model.njnt))
        return {name: int(self.model.joint(name).qposadr[0]) for name in names if name.startswith("robot0:")}

    def _id(self, kind: str, name: str) -> int:
        return int(self._mujoco.mj_name2id(self.model, getattr(self._mujoco.mjtObj, f"mjOBJ_{kind}"), name))
