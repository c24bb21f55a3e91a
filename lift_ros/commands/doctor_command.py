"""`lift doctor`: a table of what this machine has, the remedy for what it lacks, and whether collecting can start.

One function looks for each line of the table; all of them answer, whatever is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lift_ros.configuration import listed
from lift_ros.console import fold
from lift_ros.graph.roles import COLLECTING, PLANT, ROLES, Role, missing_of, remedy_for

INDENT = " " * 24
# Imports all that it is given and prints the versions.
IMPORT = (
    "import importlib, json, sys; modules = {name: importlib.import_module(name) for name in sys.argv[1:]}; "
    "print(json.dumps({name: getattr(module, '__version__', '') for name, module in modules.items()}))"
)
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
RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
OK, WARN, BAD = "ok", "warn", "bad"  # how much a finding matters: `bad` stops collecting, `warn` does not


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--json", action="store_true", help="for programs: one JSON object instead of the table")
    parser.add_argument(
        "--bags", type=Path, default=Path("."), help="folder for bags, to look for free disk (default: .)"
    )


@dataclass(frozen=True)
class Finding:
    """One line of the table, with the remedy where there is something to mend."""

    name: str
    status: str
    found: str
    remedy: str = ""


class ProbeFailed(Exception):
    """A process that looked at something did not come back with an answer; carries its last line."""


def _last_line(text: str) -> str:
    return (text.strip() or "no output").splitlines()[-1]


def ask(command: list[str], **settings: str) -> Any:
    """Run a process that prints one line of JSON and return its content."""
    environment = {**os.environ, **settings}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise ProbeFailed(f"no answer within {PROBE_SECONDS:.0f} s") from None
    if done.returncode:
        signal = f"ended by signal {-done.returncode}: " if done.returncode < 0 else ""
        raise ProbeFailed(signal + _last_line(done.stderr))
    return json.loads(_last_line(done.stdout))


def ros_facts() -> dict[str, str]:
    """Return what a process of its own sees of ROS, or under `error` why it sees nothing."""
    try:
        return dict(ask([*PROBE, "facts"]))
    except ProbeFailed as error:
        return {"error": str(error)}


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Whether this Python is new enough."""
    status, remedy = (BAD, "use Python 3.10 or newer") if version < (3, 10) else (OK, "")
    return Finding("Python", status, f"{platform.python_version()} ({sys.prefix})", remedy)


def check_ros(facts: dict[str, str]) -> Finding:
    """Which ROS and which RMW there are."""
    if "error" in facts:
        remedy = "run `make setup` in a checkout, or source /opt/ros/<distribution>/setup.bash"
        return Finding("ROS", BAD, facts["error"], remedy)
    return Finding("ROS", OK, f"{facts['distribution']} (rclpy {facts['rclpy']}, {facts['rmw']})")


def check_messages(facts: dict[str, str], checkout: Path = CHECKOUT) -> Finding:
    """Whether our messages are built, and from the definitions of this checkout where there is one."""
    remedy = "run `make setup` in the checkout, or `colcon build` and source install/setup.bash"
    if "definitions" not in facts:
        return Finding("messages", BAD, f"not built: {facts.get('messages_error', 'that needs ROS')}", remedy)
    built = {path.name: path.read_bytes() for path in Path(facts["definitions"]).glob("*.msg")}
    if (checkout / "CMakeLists.txt").exists():
        wanted = {path.name: path.read_bytes() for path in (checkout / "msg").glob("*.msg")}
        if stale := sorted({name for name, _ in built.items() ^ wanted.items()}):
            return Finding("messages", BAD, f"built from other definitions: {', '.join(stale)}", remedy)
    return Finding("messages", OK, f"{len(built)} built and current")


def check_round_trip(facts: dict[str, str]) -> Finding:
    """Whether two processes on this machine reach each other over DDS, and how fast."""
    if "definitions" not in facts:
        return Finding("DDS round trip", BAD, "not tried without ROS and messages", "mend these first")
    try:
        measured = ask([*PROBE, "round_trips"], **{RANGE: "LOCALHOST"})
    except ProbeFailed as error:
        remedy = "let UDP pass on the interface lo (firewall, container), and check that /dev/shm can be written"
        return Finding("DDS round trip", BAD, str(error), remedy)
    found = f"p50 {measured['p50_ms']:.2f} ms, p99 {measured['p99_ms']:.2f} ms between two processes on loopback"
    return Finding("DDS round trip", OK, found)


def check_discovery() -> Finding:
    """Whom nodes started from this shell will meet."""
    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    reach = os.environ.get(RANGE) or "SUBNET"
    number = int(domain) if domain.isdigit() else LAST_DOMAIN + 1
    public = f"others in this network can join in: export {RANGE}=LOCALHOST if that is not wanted"
    troubles = [
        (number > LAST_DOMAIN, BAD, f"set ROS_DOMAIN_ID to a number from 0 to {LAST_SAFE_DOMAIN}"),
        (reach not in RANGES, BAD, f"set {RANGE} to one of {', '.join(RANGES)}"),
        (reach == "OFF", BAD, f"nodes cannot meet: export {RANGE}=LOCALHOST"),
        (number > LAST_SAFE_DOMAIN, WARN, f"its ports may be taken: set ROS_DOMAIN_ID to at most {LAST_SAFE_DOMAIN}"),
        (reach != "LOCALHOST", WARN, public),
        (True, OK, ""),
    ]
    status, remedy = next(entry for true, *entry in troubles if true)
    return Finding("discovery", status, f"domain {domain}, range {reach}", remedy)


def check_disk(folder: Path) -> Finding:
    """Whether there is room for bags."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not os.access(existing, os.W_OK):
        return Finding("disk", BAD, f"{folder} cannot be written", "give another folder with --bags")
    free = shutil.disk_usage(existing).free
    status = BAD if free < DISK_NEEDED else WARN if free < DISK_LOW else OK
    remedy = "" if status == OK else "free some space, or give another folder with --bags"
    return Finding("disk", status, f"{free / GIGABYTE:.1f} GB free for bags in {folder}", remedy)


def check_role(role: Role) -> Finding:
    """Whether this Python has what a role imports; without what collecting takes, nothing can start."""
    needed = role in (PLANT, COLLECTING)
    status, only = (BAD, "") if needed else (WARN, f"needed for {role.purpose} only: ")
    if missing := missing_of(role.libraries):
        return Finding(role.name, status, f"{listed(missing)} missing", only + remedy_for(missing))
    own = [name for name in role.libraries if needed or name not in COLLECTING.libraries]
    try:
        versions = ask([sys.executable, "-c", IMPORT, *own])
    except ProbeFailed as error:
        return Finding(role.name, status, str(error), f"{only}install it again: {remedy_for(own)}")
    return Finding(role.name, OK, ", ".join(f"{name} {version}".rstrip() for name, version in versions.items()))


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
            version = ask([sys.executable, "-c", program], MUJOCO_GL=backend)
            return Finding("MuJoCo rendering", OK, f"{backend} (MuJoCo {version})")
        except ProbeFailed as error:
            failures.append(f"{backend}: {error}")
    remedy = (
        "needed for pictures of the Fetch scenarios only: MUJOCO_GL=egl with `apt install libegl1 libgl1`, or "
        "MUJOCO_GL=osmesa with `apt install libosmesa6`"
    )
    return Finding("MuJoCo rendering", WARN, "; ".join(failures), remedy)


def examine(bags: Path) -> Iterator[Finding]:
    """Yield the findings one after the other, as they come in."""
    yield check_python()
    facts = ros_facts()
    for check in (check_ros, check_messages, check_round_trip):
        yield check(facts)
    yield check_discovery()
    yield check_disk(bags)
    yield from map(check_role, ROLES)
    yield check_mujoco()


def as_line(finding: Finding) -> str:
    """Return one line of the table, and a second one for the remedy; each folded below its column."""
    line = fold(f"{finding.status:<5} {finding.name:<17} {finding.found}", INDENT)
    return line + ("\n" + fold(f"{INDENT}→ {finding.remedy}", f"{INDENT}  ") if finding.remedy else "")


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; 0 where collecting can start, else 1."""
    findings = []
    for finding in examine(arguments.bags):
        findings.append(finding)
        if not arguments.json:
            print(as_line(finding), flush=True)
    ready = all(finding.status != BAD for finding in findings)
    if arguments.json:
        print(json.dumps({"can_collect": ready, "checks": [asdict(finding) for finding in findings]}, indent=2))
    else:
        print("Collecting can start." if ready else "Collecting cannot start: see the lines marked `bad`.")
    return 0 if ready else 1
