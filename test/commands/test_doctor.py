"""`lift doctor` finds what is there, names the remedy for what is not, and says whether collecting can start."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from lift_ros.commands import doctor_command as checks
from lift_ros.commands.doctor_command import BAD, OK, WARN, Finding, ProbeFailed
from lift_ros.graph.roles import LIBRARIES, ROLES, Role

ROOT = Path(__file__).parents[2]
FACTS = {"rclpy": "9.1.2", "distribution": "kilted", "rmw": "rmw_fastrtps_cpp"}
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "msg", tmp_path / "checkout" / "msg")
    (tmp_path / "checkout" / "CMakeLists.txt").touch()
    return tmp_path / "checkout"


def built_from(folder: Path) -> dict[str, str]:
    return {**FACTS, "definitions": str(folder)}


def test_old_python_is_bad() -> None:
    assert checks.check_python((3, 9)).status == BAD
    assert checks.check_python((3, 10)).status == OK


def test_ros_is_named() -> None:
    assert checks.check_ros(FACTS).found == "kilted (rclpy 9.1.2, rmw_fastrtps_cpp)"


def test_missing_ros_stops_everything_that_needs_it() -> None:
    missing = {"error": "No module named 'rclpy'"}
    for check in (checks.check_ros, checks.check_messages, checks.check_round_trip):
        finding = check(missing)
        assert finding.status == BAD
        assert finding.remedy


def test_current_messages_are_fine(checkout: Path, tmp_path: Path) -> None:
    built = tmp_path / "built"
    shutil.copytree(checkout / "msg", built)
    assert checks.check_messages(built_from(built), checkout).status == OK


@pytest.mark.parametrize("change", ["edited", "added", "removed"])
def test_stale_messages_are_named(change: str, checkout: Path, tmp_path: Path) -> None:
    built = tmp_path / "built"
    shutil.copytree(checkout / "msg", built)
    target = checkout / "msg" / ("New.msg" if change == "added" else "Step.msg")
    if change == "removed":
        target.unlink()
    else:
        target.write_text("float64 other # [1]\n")
    finding = checks.check_messages(built_from(built), checkout)
    assert finding.status == BAD
    assert target.name in finding.found
    assert "make setup" in finding.remedy


def test_installed_package_without_checkout_needs_no_definitions_to_compare(tmp_path: Path) -> None:
    assert checks.check_messages(built_from(ROOT / "msg"), tmp_path).status == OK


def test_messages_that_cannot_be_loaded_are_bad() -> None:
    finding = checks.check_messages({**FACTS, "messages_error": "libfoo.so: cannot open"})
    assert finding.status == BAD
    assert "libfoo.so" in finding.found


@pytest.mark.parametrize(
    ("domain", "reach", "status"),
    [
        ("7", "LOCALHOST", OK),
        (None, None, WARN),
        ("0", "SUBNET", WARN),
        ("150", "LOCALHOST", WARN),
        ("233", "LOCALHOST", BAD),
        ("-1", "LOCALHOST", BAD),
        ("seven", "LOCALHOST", BAD),
        ("7", "OFF", BAD),
        ("7", "everybody", BAD),
    ],
)
def test_discovery(domain: str | None, reach: str | None, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ROS_DOMAIN_ID", domain), ("ROS_AUTOMATIC_DISCOVERY_RANGE", reach)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    finding = checks.check_discovery()
    assert finding.status == status
    assert bool(finding.remedy) == (status != OK)


@pytest.mark.parametrize(("free", "status"), [(5e9, OK), (1e9, WARN), (1e8, BAD)])
def test_disk(free: float, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(1e12, 1e12 - free, free))
    finding = checks.check_disk(tmp_path / "not" / "yet" / "there")
    assert finding.status == status
    assert bool(finding.remedy) == (status != OK)


def test_probe_that_crashes_or_fails_is_told_from_one_that_answers() -> None:
    assert checks.ask([sys.executable, "-c", "print('noise'); print('[1, 2]')"]) == [1, 2]
    with pytest.raises(ProbeFailed, match="ValueError: broken"):
        checks.ask([sys.executable, "-c", "raise ValueError('broken')"])
    with pytest.raises(ProbeFailed, match="signal 6"):
        checks.ask([sys.executable, "-c", "import os; os.abort()"])


def test_probe_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "PROBE_SECONDS", 0.5)
    with pytest.raises(ProbeFailed, match="no answer within"):
        checks.ask([sys.executable, "-c", "import time; time.sleep(600)"])


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_missing_library_stops_collecting_where_collecting_needs_it(
    role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "missing_of", lambda libraries: [libraries[-1]])
    finding = checks.check_role(role)
    needed = role.name in ("plant and routine", "collecting")
    assert finding.status == (BAD if needed else WARN)
    assert finding.found == f"{role.libraries[-1]} missing"
    assert f"pip install {LIBRARIES[role.libraries[-1]].pip}" in finding.remedy
    assert needed or finding.remedy.startswith(f"needed for {role.purpose} only")


def test_library_that_is_there_but_broken_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **settings: str) -> None:
        raise ProbeFailed("ImportError: libtorch.so: cannot open")

    monkeypatch.setattr(checks, "ask", fail)
    (training,) = [role for role in ROLES if role.name == "training"]
    finding = checks.check_role(training)
    assert (finding.status, finding.found) == (WARN, "ImportError: libtorch.so: cannot open")
    assert "torch==2.13.0" in finding.remedy


@pytest.mark.parametrize("named", [None, "egl"])
def test_rendering_backends_are_tried_in_turn(named: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def fail(command: list[str], **settings: str) -> None:
        tried.append(settings["MUJOCO_GL"])
        raise ProbeFailed("no library")

    monkeypatch.setattr(checks, "ask", fail)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    if named:
        monkeypatch.setenv("MUJOCO_GL", named)
    finding = checks.check_mujoco()
    assert tried == ([named] if named else ["egl", "osmesa"])
    assert finding.status == WARN
    assert "libegl1 libgl1" in finding.remedy
    assert "libosmesa6" in finding.remedy


@pytest.mark.parametrize(("worst", "code"), [(OK, 0), (WARN, 0), (BAD, 1)])
@pytest.mark.parametrize("as_json", [False, True])
def test_exit_status_says_whether_collecting_can_start(
    worst: str, code: int, as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = [Finding("one", OK, "fine"), Finding("two", worst, "something", "" if code == 0 else "mend it")]
    monkeypatch.setattr(checks, "examine", lambda bags: iter(findings))
    assert checks.run(argparse.Namespace(json=as_json, bags=Path("."))) == code
    printed = capsys.readouterr().out
    if as_json:
        told = json.loads(printed)
        assert told["can_collect"] is (code == 0)
        assert [row["name"] for row in told["checks"]] == ["one", "two"]
    else:
        assert ("mend it" in printed) is (code == 1)
        assert printed.splitlines()[-1].startswith("Collecting can" if code == 0 else "Collecting cannot")


@pytest.mark.ros
def test_doctor_on_this_machine_from_another_folder(tmp_path: Path) -> None:
    lift = Path(sys.executable).parent / "lift"
    done = subprocess.run(
        [lift, "doctor", "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=170, env=dict(os.environ)
    )
    told = json.loads(done.stdout)
    by_name = {row["name"]: row for row in told["checks"]}
    assert by_name["messages"]["status"] == "ok", by_name["messages"]
    assert by_name["DDS round trip"]["status"] == "ok", by_name["DDS round trip"]
    assert "p50" in by_name["DDS round trip"]["found"]
    assert by_name["discovery"]["status"] == "ok"
    for role in ROLES:
        assert by_name[role.name]["status"] == "ok", by_name[role.name]
    assert "torch 2." in by_name["training"]["found"]
    assert done.returncode == (0 if told["can_collect"] else 1)
