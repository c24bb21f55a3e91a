"""`pip install .` from a copy of the sources gives the command, the nodes and importable messages."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from sources import ROOT, clean_environment, copy_sources, node_names

import lift_ros

# Two are enough to see that messages are built and installed; each takes seconds to compile.
MESSAGES = ("Model.msg", "Step.msg")
PROGRAM = """
import pathlib
import lift_ros, lift_ros.collection.records, lift_ros.msg
from rclpy.serialization import deserialize_message, serialize_message
sent = lift_ros.msg.Step(episode=7)
assert deserialize_message(serialize_message(sent), lift_ros.msg.Step) == sent
print(lift_ros.__path__[0])
print(pathlib.Path(lift_ros.msg.__file__).parent)
"""


@pytest.mark.timeout(500)
def test_installed_package_works_without_the_checkout(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    copy_sources(sources, MESSAGES)
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, env=clean_environment())
    site_packages = environment / Path(sysconfig.get_path("purelib")).relative_to(sysconfig.get_path("data"))
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--no-compile"]
    # Dependencies are those of the environment that runs this test, and so is what builds the messages.
    (site_packages / "underlay.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    done = subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed", str(sources)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    libraries = os.pathsep.join([str(environment / "lib"), os.environ["LD_LIBRARY_PATH"]])
    settings = clean_environment() | {"LD_LIBRARY_PATH": libraries, "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1"}
    shown = subprocess.run(
        [environment / "bin" / "python", "-c", PROGRAM], env=settings, capture_output=True, text=True, cwd=tmp_path
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines() == [str(site_packages / "lift_ros"), str(site_packages / "lift_ros" / "msg")]

    commands = {path.name for path in (environment / "bin").iterdir()}
    assert {name for name in commands if name.startswith("lift")} == {
        "lift",
        *(f"lift_{name}" for name in node_names()),
    }
    helped = subprocess.run(
        [environment / "bin" / "lift", "doctor", "--help"], env=settings, capture_output=True, text=True, cwd=tmp_path
    )
    assert helped.returncode == 0, helped.stderr
    check_that_ros2_finds_it(environment, settings)
    share = environment / "share" / "lift_ros"
    assert {path.name for path in (share / "config").glob("*.yaml")} == {
        p.name for p in (ROOT / "config").glob("*.yaml")
    }
    assert (share / "msg" / "Step.msg").read_bytes() == (ROOT / "msg" / "Step.msg").read_bytes()


def check_that_ros2_finds_it(environment: Path, settings: dict[str, str]) -> None:
    """Look where `ros2 run` and `ros2 launch` look: in the ament index, below lib/ and below share/."""
    program = (
        "from ament_index_python.packages import get_package_prefix, get_package_share_directory as share; "
        "print(get_package_prefix('lift_ros')); print(share('lift_ros'))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=settings | {"AMENT_PREFIX_PATH": str(environment)},
        capture_output=True,
        text=True,
    )
    assert found.stdout.split() == [str(environment), str(environment / "share" / "lift_ros")], found.stderr
    launch = environment / "share" / "lift_ros" / "launch"
    assert {path.name for path in launch.iterdir()} == {path.name for path in (ROOT / "launch").glob("*.py")}
    executables = environment / "lib" / "lift_ros"
    assert {path.name for path in executables.iterdir()} == {"lift", *node_names()}
    assert all(os.access(path, os.X_OK) for path in executables.iterdir())
    shown = subprocess.run([executables / "lift", "--version"], env=settings, capture_output=True, text=True, cwd="/")
    assert (shown.returncode, shown.stdout) == (0, f"lift_ros {lift_ros.__version__}\n"), shown.stderr
