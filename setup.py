"""Builds the wheel: our modules, the compiled messages, the command `lift` and one command per node."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from tools.messages import SITE_PACKAGES, stage  # noqa: E402

EXTRAS = (
    *("arm", "epics", "export", "genicam", "grbl", "micromanager", "optics", "page", "rerun", "study", "tensorboard"),
)
# By the command that `pip install` gives; `ros2 run` knows nodes without the prefix.
PREFIX = "lift_"
NODES = (
    "arbiter",
    "arm_simulator",
    "augmentor",
    "fetch_simulator",
    "logging_policy",
    "loopback_hardware",
    "monitor",
    "page",
    "positioning_simulator",
    "recorder",
    "rig",
    "trainer",
)
EXECUTABLES = ["lift = lift_ros.cli:main"] + [f"{PREFIX}{name} = lift_ros.nodes.starting:{name}" for name in NODES]
# For `ros2 run` and `ros2 launch`: the same command with the Python that it was installed for, sourced or not.
ROS_EXECUTABLE = """#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/../../bin/{command}" "$@"
"""


def version() -> str:
    """Return the version that the package itself states."""
    namespace: dict[str, object] = {}
    line = next(
        row for row in (ROOT / "lift_ros/__init__.py").read_text().splitlines() if row.startswith("__version__")
    )
    exec(line, namespace)
    return str(namespace["__version__"])


def requirements(name: str) -> list[str]:
    """Return the requirements that a file lists."""
    rows = (ROOT / "requirements" / name).read_text().splitlines()
    return [row for row in rows if row and not row.startswith("#")]


def _write_ros_executables(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("lift", *NODES):
        path = folder / name
        path.write_text(ROS_EXECUTABLE.format(command=name if name == "lift" else f"{PREFIX}{name}"))
        path.chmod(0o755)


class BuildWithMessages(build_py):
    """Adds the compiled messages; an editable installation reads our modules from the checkout and needs none here."""

    def run(self) -> None:
        """Build our modules, then the messages beside them."""
        if self.editable_mode:
            super().run()
            return
        package = Path(self.build_lib) / "lift_ros"
        shutil.rmtree(package, ignore_errors=True)  # what an earlier build left there may no longer exist
        super().run()
        with tempfile.TemporaryDirectory() as folder:
            staged = stage(Path(folder))
            generated = staged / SITE_PACKAGES / "lift_ros"
            shutil.copytree(generated / "msg", package / "msg")
            for extension in generated.glob("*.so"):
                shutil.copy2(extension, package)
            self._add_data(staged)

    def _add_data(self, staged: Path) -> None:
        """Take what belongs outside Python's own folders: libraries, executables, launch files, the ament index."""
        kept = Path(self.build_lib).resolve().parent / "data"
        shutil.rmtree(kept, ignore_errors=True)
        for library in (staged / "lib").glob("*.so"):
            (kept / "lib").mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, kept / "lib")
        _write_ros_executables(kept / "lib" / "lift_ros")
        shutil.copytree(staged / "share", kept / "share")
        folders: dict[str, list[str]] = {}
        for path in kept.rglob("*"):
            if path.is_file():
                folders.setdefault(str(path.parent.relative_to(kept)), []).append(str(path))
        self.distribution.data_files = sorted(folders.items())


class BinaryDistribution(Distribution):
    """The messages are compiled, so the wheel fits one platform only."""

    def has_ext_modules(self) -> bool:
        """Say that there are compiled parts."""
        return True


setup(
    name="lift_ros",
    version=version(),
    description="LIFT for ROS 2: turn the logs of a scripted positioning routine into a better controller",
    long_description=(ROOT / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    package_dir={"": "."},
    packages=find_packages(include=["lift_ros", "lift_ros.*"], exclude=["lift_ros.msg*"]),
    package_data={"": ["py.typed", "*.css", "*.html", "*.js", "*.yaml"]},
    install_requires=requirements("runtime.txt"),
    extras_require={name: requirements(f"{name}.txt") for name in EXTRAS},
    entry_points={"console_scripts": EXECUTABLES},
    distclass=BinaryDistribution,
    cmdclass={"build_py": BuildWithMessages},
    zip_safe=False,
)
