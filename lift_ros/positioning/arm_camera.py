"""What a camera at an arm's tool sees: a board with discs of many sizes and colours, which lies beneath the arm."""

from __future__ import annotations

import mujoco
import numpy as np

from lift_ros.array_types import ByteArray, FloatArray
from lift_ros.positioning.offscreen import OffscreenCamera

_FIELD_OF_VIEW = 60.0  # degrees
_CENTRE = (0.55, 0.1)  # of the board in the arm's base, metres
_HALF_SIDE = 1.2
_HEIGHT = -0.1
_DISCS = 60
_SPREAD = 0.45  # of the discs around the centre
_RADII = (0.015, 0.06)
_THICKNESS = 0.002
_APART = 0.0001  # each disc is higher than the one before, so that none flickers where they overlap
_SEED = 5  # of the pattern, which is the same for everybody


class ArmCamera:
    """Looks along the tool at the board; the arm itself is out of its sight."""

    def __init__(self, size: int) -> None:
        self._model = mujoco.MjModel.from_xml_string(_scene())
        self._data = mujoco.MjData(self._model)
        view = {"type": mujoco.mjtCamera.mjCAMERA_FIXED, "fixedcamid": 0}
        self._camera = OffscreenCamera(self._model, size, [view])

    def image(self, place: FloatArray, turn: FloatArray) -> ByteArray:
        """Return what is seen from a pose of the tool, whose quaternion is x, y, z, w, as (height, width, 3) rgb8."""
        self._data.mocap_pos[0] = place
        self._data.mocap_quat[0] = np.roll(turn, 1)
        mujoco.mj_forward(self._model, self._data)
        return self._camera.image(self._data)

    def close(self) -> None:
        """Give the GL context back."""
        self._camera.close()


def _scene() -> str:
    """Return the board, and a camera that looks along z of a body that can be put anywhere."""
    random = np.random.default_rng(_SEED)
    discs = []
    for i in range(_DISCS):
        x, y = random.uniform(-_SPREAD, _SPREAD, 2) + _CENTRE
        colour = " ".join(f"{part:.3f}" for part in random.uniform(0.0, 0.6, 3))
        discs.append(
            f'<geom type="cylinder" size="{random.uniform(*_RADII):.4f} {_THICKNESS}" rgba="{colour} 1" '
            f'pos="{x:.4f} {y:.4f} {_HEIGHT + _APART * i:.5f}"/>'
        )
    return f"""
<mujoco>
  <visual>
    <headlight ambient="0.6 0.6 0.6" diffuse="0.4 0.4 0.4" specular="0 0 0"/>
    <quality numslices="24" shadowsize="0"/>
  </visual>
  <worldbody>
    <geom type="box" size="{_HALF_SIDE} {_HALF_SIDE} 0.01" pos="{_CENTRE[0]} {_CENTRE[1]} {_HEIGHT - 0.012}"
          rgba="0.9 0.9 0.9 1"/>
    {"".join(discs)}
    <body mocap="true">
      <camera quat="0 1 0 0" fovy="{_FIELD_OF_VIEW}"/>
    </body>
  </worldbody>
</mujoco>
"""
