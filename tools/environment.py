"""Makes the environment that `make` works in and keeps it current; what is unchanged costs nothing.

Standard library only and no syntax newer than Python 3.6, so that an unsupported Python still gets to read why.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ((3, 11), (3, 12))
DISTRIBUTIONS = ("kilted", "jazzy")
# Set once per environment by the ROS wheels; the Python of another environment must not see them.
INHERITED = (
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
)


class SetupFailed(Exception):
    """Says in one sentence what is missing and how to get it."""


def check_python(version):
    """Refuse a Python for which the pinned packages have no wheels."""
    if tuple(version[:2]) not in PYTHONS:
        raise SetupFailed(
            "Python {}.{} is not supported: run `make PYTHON=python3.11` or `make PYTHON=python3.12` (on Debian: "
            "`apt install python3 python3-venv`).".format(*version[:2])
        )


def check_compiler(environment):
    """Refuse a machine without a C++ compiler before anything is downloaded."""
    named = environment.get("CXX", "").split()
    candidates = named[:1] or ["c++", "g++", "clang++"]
    if not any(shutil.which(name, path=environment.get("PATH", "")) for name in candidates):
        raise SetupFailed(
            "No C++ compiler found (looked for {}): install one (on Debian: `apt install g++`) or name it in "
            "CXX.".format(", ".join(candidates))
        )


def explain_pip(output):
    """Return one sentence for what pip complained about."""
    unreachable = ("Failed to establish a new connection", "NewConnectionError", "Name or service not known")
    if any(sign in output for sign in (*unreachable, "Temporary failure in name resolution", "ProxyError")):
        return (
            "No network: pip cannot reach its package index. Connect, or set PIP_INDEX_URL to a mirror, and run again."
        )
    if "No space left on device" in output:
        return f"The disk is full: the environment needs 2 GB below {ROOT}."
    last = [line for line in output.splitlines() if line.startswith("ERROR")] or output.splitlines()[-1:]
    return "pip failed: {} (see above; delete the environment with `make clean` and run again).".format(
        " ".join(last[:2])
    )


def clean_environment():
    """Return the environment for another environment's Python."""
    return {name: value for name, value in os.environ.items() if name not in INHERITED}


def digest(paths, *words):
    """Return a hash of the files' names and contents and of further words."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.relative_to(ROOT)}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    for word in words:
        total.update(f"{word}\0".encode())
    return total.hexdigest()


class Environment:
    """One virtual environment and the three things that are put into it, each stamped with what it was made from."""

    def __init__(self, distribution, folder):
        self.lock = ROOT / "requirements" / (distribution + ".lock")
        self.build = ROOT / "build" / distribution
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.stamps = folder / "lift_ros_stamps"

    def _digests(self):
        """Return what each step depends on, in the order in which they are done."""
        packages = digest([self.lock], sys.version)
        sources = [ROOT / "CMakeLists.txt", ROOT / "package.xml", ROOT / "tools" / "messages.py"]
        sources += list((ROOT / "msg").glob("*.msg")) + list((ROOT / "cmake").glob("*.cmake"))
        return {
            "packages": packages,
            "messages": digest(sources, packages),
            "commands": digest([ROOT / "setup.py", ROOT / "requirements" / "runtime.txt"], packages, ROOT),
        }

    def _is_current(self, step, value):
        stamp = self.stamps / step
        return self.python.exists() and stamp.exists() and stamp.read_text() == value

    def refresh(self):
        """Do the steps whose sources have changed since they were last done."""
        digests = self._digests()
        pending = [step for step, value in digests.items() if not self._is_current(step, value)]
        if not pending:
            return
        check_compiler(os.environ)
        for step in pending:
            began = time.time()
            (self.stamps / step).unlink() if (self.stamps / step).exists() else None
            print("[setup] {} …".format(getattr(self, step).__doc__.rstrip(".")), flush=True)
            getattr(self, step)()
            self.stamps.mkdir(exist_ok=True)
            (self.stamps / step).write_text(digests[step])
            print(f"[setup] done in {time.time() - began:.0f} s", flush=True)

    def _pip(self, *words):
        command = [str(self.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
        command += ["--no-deps", "--no-compile", "--no-build-isolation"]
        finished = subprocess.run(
            command + list(words),
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if finished.returncode != 0:
            print(finished.stdout, file=sys.stderr)
            raise SetupFailed(explain_pip(finished.stdout))

    def packages(self):
        """Install the pinned packages, 2 GB on the first run."""
        if not self.python.exists():
            made = subprocess.run(
                [sys.executable, "-m", "venv", "--clear", str(self.folder)],
                env=clean_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if made.returncode != 0:
                print(made.stdout, file=sys.stderr)
                raise SetupFailed("Python cannot make a virtual environment (on Debian: `apt install python3-venv`).")
        pins = self.lock.read_text().splitlines()
        # Packages that come as source need these two, and pip takes them from the environment.
        self._pip(*[pin for pin in pins if pin.split("==")[0] in ("setuptools", "wheel")])
        self._pip("--requirement", str(self.lock))

    def messages(self):
        """Build the messages."""
        command = [str(self.python), "-m", "tools.messages", "--build", str(self.build)]
        if subprocess.run(command, cwd=str(ROOT), env=clean_environment()).returncode != 0:
            raise SetupFailed("The messages could not be built: see above what CMake says.")

    def commands(self):
        """Install the command `lift` and the nodes, read from this checkout."""
        self._pip("--editable", str(ROOT))


def main():
    """Make the environment of a distribution, or bring it up to date."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("distribution", help=" or ".join(DISTRIBUTIONS))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    try:
        if arguments.distribution not in DISTRIBUTIONS:
            raise SetupFailed(
                "ROS_DISTRO={} is not supported: use {}.".format(arguments.distribution, " or ".join(DISTRIBUTIONS))
            )
        check_python(sys.version_info)
        Environment(arguments.distribution, arguments.folder.resolve()).refresh()
    except SetupFailed as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
