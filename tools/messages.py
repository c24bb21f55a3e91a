"""Builds the messages with ROS 2 from PyPI: CMake and the real rosidl pipeline, installed into a staging folder."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE_PACKAGES = Path(sysconfig.get_path("purelib")).relative_to(sysconfig.get_path("data"))


class BuildFailed(Exception):
    """CMake did not succeed; carries one sentence and the end of its output."""


def ros_prefix() -> Path:
    """Return the folder below which this Python's ROS 2 wheels lie."""
    spec = importlib.util.find_spec("ament_package")
    if spec is None or spec.origin is None:
        raise BuildFailed("The package ament_package is missing: install requirements/*.lock or run `make setup`.")
    site_packages = Path(spec.origin).resolve().parents[1]
    return site_packages.parents[len(SITE_PACKAGES.parts) - 1]


def _run(command: list[str], environment: dict[str, str]) -> None:
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        tail = "\n".join((finished.stdout + finished.stderr).splitlines()[-40:])
        raise BuildFailed(f"Building the messages failed in `{' '.join(command[:3])} …`:\n{tail}")


def _build_environment(prefix: Path) -> dict[str, str]:
    """Return the environment for CMake: only the wheels' ROS, so that a sourced one elsewhere cannot mix in."""
    environment = dict(os.environ)
    # Not CMake's Release: it would drop the generated code's own checks of what Python hands over.
    for name in ("CFLAGS", "CXXFLAGS"):
        environment.setdefault(name, "-O2")
    environment["AMENT_PREFIX_PATH"] = str(prefix)
    environment["CMAKE_PREFIX_PATH"] = str(prefix)
    environment["PATH"] = os.pathsep.join([str(prefix / "bin"), str(Path(sys.executable).parent), environment["PATH"]])
    return environment


def stage(build: Path) -> Path:
    """Configure, build and install the package below `build`; return the folder that holds the result."""
    prefix = ros_prefix()
    environment = _build_environment(prefix)
    staged = build / "stage"
    shutil.rmtree(staged, ignore_errors=True)
    (build / "CMakeCache.txt").unlink(missing_ok=True)
    build.mkdir(parents=True, exist_ok=True)
    cmake = [sys.executable, "-m", "cmake"]
    configure = [
        *cmake,
        *("-S", str(ROOT), "-B", str(build), "-G", "Ninja"),
        f"-DCMAKE_INSTALL_PREFIX={staged}",
        f"-DCMAKE_PROJECT_INCLUDE={ROOT / 'cmake' / 'pypi_wheels.cmake'}",
        f"-DPython3_EXECUTABLE={sys.executable}",
    ]
    _run(configure, environment)
    _run([*cmake, "--build", str(build), "--target", "install"], environment)
    return staged


def _replace_tree(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target)


def install_beside_checkout(staged: Path, prefix: Path) -> None:
    """Copy what was generated into the environment, but none of our own modules: these are read from the checkout.

    The folder gets no `__init__.py`, so that the checkout's package is the one found; that one adds this folder to its
    search path.
    """
    generated = staged / SITE_PACKAGES / "lift_ros"
    package = prefix / SITE_PACKAGES / "lift_ros"
    shutil.rmtree(package, ignore_errors=True)
    _replace_tree(generated / "msg", package / "msg")
    for extension in generated.glob("*.so"):
        shutil.copy2(extension, package / extension.name)
    for library in (staged / "lib").glob("*.so"):
        temporary = prefix / "lib" / f".{library.name}"
        shutil.copy2(library, temporary)
        temporary.replace(prefix / "lib" / library.name)
    _replace_tree(staged / "share" / "lift_ros", prefix / "share" / "lift_ros")
    for folder in ("config", "launch"):
        shutil.rmtree(prefix / "share" / "lift_ros" / folder, ignore_errors=True)
    shutil.copytree(
        staged / "share" / "ament_index", prefix / "share" / "ament_index", dirs_exist_ok=True, symlinks=True
    )


def main() -> int:
    """Build the messages into the environment of the Python that runs this."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--build", type=Path, required=True, help="folder for CMake's files")
    arguments = parser.parse_args()
    try:
        staged = stage(arguments.build.resolve())
        install_beside_checkout(staged, Path(sys.prefix))
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
