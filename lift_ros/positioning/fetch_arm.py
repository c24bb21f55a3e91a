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
        names = (self.model.joint(index).name for index in range(self.model.njnt))
        self.joint_names = tuple(name for name in names if name.startswith("robot0:"))
        self._joints = [int(self.model.joint(name).qposadr[0]) for name in self.joint_names]
        self._fingers = [int(self.model.joint(name).qposadr[0]) for name in _FINGERS]
        self._gripper = self.data.body("robot0:gripper_link")
        self._take_initial_pose()
        self._home = np.empty(self._mujoco.mj_stateSize(self.model, self._mujoco.mjtState.mjSTATE_INTEGRATION))
        self._mujoco.mj_getState(self.model, self.data, self._home, self._mujoco.mjtState.mjSTATE_INTEGRATION)
        self.home_position = self.position()

    def joint_positions(self) -> FloatArray:
        """Return the angle or displacement of each joint, in the order of `joint_names`."""
        return np.array(self.data.qpos[self._joints])

    def position(self) -> FloatArray:
        """Return where the gripper is."""
        return np.array(self.data.site("robot0:grip").xpos)

    def restore(self) -> None:
        """Go back to the initial state, including what MuJoCo keeps from step to step to start its solver."""
        self._mujoco.mj_resetData(self.model, self.data)
        self._mujoco.mj_setState(self.model, self.data, self._home, self._mujoco.mjtState.mjSTATE_INTEGRATION)
        self._mujoco.mj_forward(self.model, self.data)

    def move(self, displacement: FloatArray) -> None:
        """Pull the gripper by a displacement for the time of one step; it follows with a lag."""
        self.data.mocap_pos[0] = self._gripper.xpos + displacement
        self.data.mocap_quat[0] = self._gripper.xquat + np.array(_DOWNWARDS)
        self._run(_SUBSTEPS)

    def show_goal(self, goal: FloatArray) -> None:
        """Put the red mark of the model at the goal; it has no effect on the movement."""
        site = self.model.site("target0")
        site.pos = goal - self.data.xpos[site.bodyid[0]]
        self._mujoco.mj_forward(self.model, self.data)

    def object_position(self) -> FloatArray:
        """Return where the object is."""
        return np.array(self.data.site("object0").xpos)

    def put_object(self, position: FloatArray) -> None:
        """Put the object somewhere, upright and at rest."""
        joint = self.data.joint("object0:joint")
        joint.qpos = (*position, 1.0, 0.0, 0.0, 0.0)
        joint.qvel = 0.0
        self._mujoco.mj_forward(self.model, self.data)

    def let_object_pass(self) -> None:
        """Let the robot pass through the object, which still lies on the table."""
        thing, table = self.model.geom("object0"), self.model.geom(int(self.model.body("table0").geomadr[0]))
        thing.contype = 0
        table.contype |= 2
        thing.conaffinity = 2

    def _take_initial_pose(self) -> None:
        for name, value in _BASE.items():
            self.data.joint(name).qpos = value
        welds = self.model.eq_type == self._mujoco.mjtEq.mjEQ_WELD
        self.model.eq_data[welds, :7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        self._mujoco.mj_forward(self.model, self.data)
        self.data.mocap_pos[0] = self.position() + np.array(_GRIPPER_TARGET)
        self.data.mocap_quat[0] = _DOWNWARDS
        self._run(_SETTLING_STEPS)

    def _run(self, steps: int) -> None:
        """Simulate, and close the gripper, which no action controls."""
        self._mujoco.mj_step(self.model, self.data, nstep=steps)
        self.data.qpos[self._fingers] = 0.0
        self._mujoco.mj_forward(self.model, self.data)
