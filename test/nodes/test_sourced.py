"""A terminal that lacks ROS or the messages is told to source, by the command and by every node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Stands for a terminal in which a module is not to be found.
HIDE = """
import importlib.util, runpy, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == {hidden!r} else find(name, *rest)
sys.argv = {argv!r}
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def run_without(hidden: str, module: str, *argv: str) -> subprocess.CompletedProcess[str]:
    code = HIDE.format(hidden=hidden, module=module, argv=[module, *argv])
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(("hidden", "name"), [("rclpy", "ROS 2 (rclpy)"), ("lift_ros.msg", "the messages of lift_ros")])
def test_a_node_says_what_to_source(hidden: str, name: str) -> None:
    done = run_without(hidden, "lift_ros.nodes", "arbiter")
    assert done.returncode == 2
    assert done.stderr.startswith(f"arbiter: this terminal does not know {name}")
    assert "source install/setup.bash" in done.stderr
    assert "Traceback" not in done.stderr


def test_lift_run_says_what_to_source_before_anything_starts(tmp_path: Path) -> None:
    words = ["run", "--scenario", "po-none-d2", "--out", str(tmp_path / "run")]
    done = run_without("lift_ros.msg", "lift_ros.cli", *words)
    assert done.returncode == 2
    assert "source install/setup.bash" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_plant_node_of_ones_own_says_what_to_source(tmp_path: Path) -> None:
    (tmp_path / "stage.py").write_text("from lift_ros.rig import PlantNode\n")
    code = HIDE.format(hidden="lift_ros.msg", module="stage", argv=["stage"]).replace(
        "sys.argv", f"sys.path.insert(0, {str(tmp_path)!r}); sys.argv", 1
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "source install/setup.bash" in done.stderr.splitlines()[-1]
