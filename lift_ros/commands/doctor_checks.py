"""What `lift doctor` looks at, one function per line of its table; all of them answer, whatever is broken."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

PROBE = [sys.executable, "-m", "lift_ros.nodes.doctor_probe"]
CHECKOUT = Path(__file__).resolve().parents[2]
PROBE_SECONDS = 120.0
GIGABYTE = 1e9
DISK_LOW = 2 * GIGABYTE
DISK_NEEDED = 0.2 * GIGABYTE
# Above it the ports of a domain reach into those that Linux hands out to anybody.
LAST_SAFE_DOMAIN = 101
LAST_DOMAIN = 232
RANGES = ("LOCALHOST", "SUBNET", "SYSTEM_DEFAULT", "OFF")


class Status(Enum):
    """How much a finding matters: `bad` stops collecting, `warn` does not."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Finding:
    """One line of the table, with the remedy where there is something to mend."""

    name: str
    status: Status
    found: str
    remedy: str = ""


class ProbeFailed(Exception):
    """A process that looked at something did not come back with an answer; carries its last line."""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def ask(command: list[str], settings: dict[str, str] | None = None) -> Any:
    """Run a process that prints one line of JSON and return its content."""
    environment = {**os.environ, **(settings or {})}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise ProbeFailed(f"no answer within {PROBE_SECONDS:.0f} s") from None
    if done.returncode < 0:
        raise ProbeFailed(f"ended by signal {-done.returncode}: {_last_line(done.stderr)}")
    if done.returncode != 0:
        raise ProbeFailed(_last_line(done.stderr))
    return json.loads(_last_line(done.stdout))


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Whether this Python is new enough."""
    found = f"{platform.python_version()} ({sys.prefix})"
    if version < (3, 10):
        return Finding("Python", Status.BAD, found, "use Python 3.10 or newer")
    return Finding("Python", Status.OK, found)


def check_ros(facts: dict[str, str] | ProbeFailed) -> Finding:
    """Which ROS and which RMW there are."""
    if isinstance(facts, ProbeFailed):
        remedy = "run `make setup` in a checkout, or source /opt/ros/<distribution>/setup.bash"
        return Finding("ROS", Status.BAD, str(facts), remedy)
    return Finding("ROS", Status.OK, f"{facts['distribution']} (rclpy {facts['rclpy']}, {facts['rmw']})")


def check_messages(facts: dict[str, str] | ProbeFailed, checkout: Path = CHECKOUT) -> Finding:
    """Whether our messages are built, and from the definitions of this checkout where there is one."""
    remedy = "run `make setup` in the checkout, or `colcon build` and source install/setup.bash"
    if isinstance(facts, ProbeFailed):
        return Finding("messages", Status.BAD, "not looked at without ROS", remedy)
    if "definitions" not in facts:
        return Finding("messages", Status.BAD, f"not built: {facts['messages_error']}", remedy)
    built = {path.name: path.read_bytes() for path in Path(facts["definitions"]).glob("*.msg")}
    if (checkout / "CMakeLists.txt").exists():
        wanted = {path.name: path.read_bytes() for path in (checkout / "msg").glob("*.msg")}
        stale = sorted(name for name in built.keys() | wanted.keys() if built.get(name) != wanted.get(name))
        if stale:
            return Finding("messages", Status.BAD, f"built from other definitions: {', '.join(stale)}", remedy)
    return Finding("messages", Status.OK, f"{len(built)} built and current")


def check_round_trip(facts: dict[str, str] | ProbeFailed) -> Finding:
    """Whether two processes on this machine reach each other over DDS, and how fast."""
    if isinstance(facts, ProbeFailed) or "definitions" not in facts:
        return Finding("DDS round trip", Status.BAD, "not tried without ROS and messages", "mend these first")
    settings = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    topic = f"/lift_doctor_{os.getpid()}"
    command = [*PROBE, "echo", topic, "--parent", str(os.getpid())]
    with subprocess.Popen(
        command,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as other:
        try:
            measured = ask([*PROBE, "ping", topic], settings)
        except ProbeFailed as error:
            remedy = "let UDP pass on the interface lo (firewall, container), and check that /dev/shm can be written"
            return Finding("DDS round trip", Status.BAD, str(error), remedy)
        finally:
            other.kill()
    found = f"p50 {measured['p50_ms']:.2f} ms, p99 {measured['p99_ms']:.2f} ms between two processes on loopback"
    return Finding("DDS round trip", Status.OK, found)


def check_discovery() -> Finding:
    """Whom nodes started from this shell will meet."""
    domain = os.environ.get("ROS_DOMAIN_ID", "0") or "0"
    reach = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET") or "SUBNET"
    number = int(domain) if domain.isdigit() else LAST_DOMAIN + 1
    variable = "ROS_AUTOMATIC_DISCOVERY_RANGE"
    troubles = {
        f"set ROS_DOMAIN_ID to a number from 0 to {LAST_SAFE_DOMAIN}": number > LAST_DOMAIN,
        f"set {variable} to one of {', '.join(RANGES)}": reach not in RANGES,
        f"nodes cannot meet: export {variable}=LOCALHOST": reach == "OFF",
    }
    doubts = {
        f"its ports may be taken: set ROS_DOMAIN_ID to at most {LAST_SAFE_DOMAIN}": number > LAST_SAFE_DOMAIN,
        f"others in this network can join in: export {variable}=LOCALHOST if that is not wanted": reach != "LOCALHOST",
    }
    found = f"domain {domain}, range {reach}"
    for status, remedies in ((Status.BAD, troubles), (Status.WARN, doubts)):
        for remedy, needed in remedies.items():
            if needed:
                return Finding("discovery", status, found, remedy)
    return Finding("discovery", Status.OK, found)


def check_torch() -> Finding:
    """Whether training is possible, and on how many threads."""
    program = (
        "import json, torch, d3rlpy; "
        "print(json.dumps([torch.__version__, torch.get_num_threads(), d3rlpy.__version__]))"
    )
    try:
        version, threads, d3rlpy = ask([sys.executable, "-c", program])
    except ProbeFailed as error:
        remedy = "needed for training only: pip install torch==2.13.0 d3rlpy==2.8.1"
        return Finding("torch", Status.WARN, str(error), remedy)
    return Finding("torch", Status.OK, f"{version} on {threads} of {os.cpu_count()} threads, d3rlpy {d3rlpy}")


def check_mujoco() -> Finding:
    """Whether the Fetch scenarios can render offscreen, and with what."""
    program = (
        "import json, mujoco; context = mujoco.GLContext(64, 64); context.make_current(); context.free(); "
        "print(json.dumps(mujoco.__version__))"
    )
    named = os.environ.get("MUJOCO_GL")
    failures = []
    for backend in [named] if named else ["egl", "osmesa"]:
        try:
            version = ask([sys.executable, "-c", program], {"MUJOCO_GL": backend})
        except ProbeFailed as error:
            failures.append(f"{backend}: {error}")
        else:
            return Finding("MuJoCo rendering", Status.OK, f"{backend} (MuJoCo {version})")
    remedy = (
        "needed for pictures of the Fetch scenarios only: MUJOCO_GL=egl with `apt install libegl1 libgl1`, or "
        "MUJOCO_GL=osmesa with `apt install libosmesa6`"
    )
    return Finding("MuJoCo rendering", Status.WARN, "; ".join(failures), remedy)


def check_disk(folder: Path) -> Finding:
    """Whether there is room for bags."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    found = f"{free / GIGABYTE:.1f} GB free for bags in {folder}"
    remedy = "free some space, or give another folder with --bags"
    if not os.access(existing, os.W_OK):
        return Finding("disk", Status.BAD, f"{folder} cannot be written", "give another folder with --bags")
    if free < DISK_NEEDED:
        return Finding("disk", Status.BAD, found, remedy)
    return Finding("disk", Status.WARN if free < DISK_LOW else Status.OK, found, remedy if free < DISK_LOW else "")


def ros_facts() -> dict[str, str] | ProbeFailed:
    """Return what a process of its own sees of ROS, or why it sees nothing."""
    try:
        facts: dict[str, str] = ask([*PROBE, "facts"])
    except ProbeFailed as error:
        return error
    return facts


def examine(bags: Path) -> Iterator[Finding]:
    """Yield the findings one after the other, as they come in."""
    yield check_python()
    facts = ros_facts()
    ros_checks: list[Callable[[dict[str, str] | ProbeFailed], Finding]] = [check_ros, check_messages, check_round_trip]
    for check in ros_checks:
        yield check(facts)
    yield check_discovery()
    yield check_disk(bags)
    yield check_torch()
    yield check_mujoco()
