"""What authors of rigs import is there, and needs ROS only where it must."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lift_ros import rig


def test_routines_and_limits_need_no_ros() -> None:
    program = "import sys; from lift_ros.rig import Limits, Observed, Policy, UserError; print('rclpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "False"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'lift_ros.rig' has no attribute 'PlantNod'"):
        rig.PlantNod  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.ros
def test_everything_that_is_offered_is_there() -> None:
    assert {name for name in rig.__all__ if getattr(rig, name) is not None} == set(rig.__all__)
