"""Dockerfile and dev container name only what is there; no engine is needed to see that."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# Continued lines are one instruction; comments are none.
LINES = [
    line
    for line in (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
DEVCONTAINER: dict[str, Any] = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
FROM_ROSDEP = {"numpy", "matplotlib", "pyyaml"}  # package.xml names them, too


def arguments(instruction: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in LINES if line.startswith(f"{instruction} ")]


def names(file: str) -> set[str]:
    rows = (ROOT / "requirements" / file).read_text().splitlines()
    return {re.split(r"[\[<>=!~; ]", row)[0].lower() for row in rows if row and not row.startswith("#")}


def test_the_image_is_the_official_one_of_a_supported_distribution() -> None:
    (default,) = [words[0] for words in arguments("ARG")]
    assert default == "ROS_DISTRO=kilted"
    assert arguments("FROM") == [["ros:${ROS_DISTRO}-ros-base"]]


def test_every_copied_file_exists_and_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    sources = [source for words in arguments("COPY") for source in words[:-1]]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] not in ignored
    tracked = subprocess.run(["git", "ls-files", "--", *sources], cwd=ROOT, capture_output=True, text=True, timeout=60)
    if tracked.returncode == 0:  # a checkout, not an unpacked archive
        assert all(any(file.startswith(source) for file in tracked.stdout.splitlines()) for source in sources)


def test_all_that_cmake_reads_is_copied() -> None:
    copied = {source for words in arguments("COPY") for source in words[:-1]}
    text = (ROOT / "CMakeLists.txt").read_text()
    wanted = {"CMakeLists.txt", "package.xml", "msg", "lift_ros", "config", "launch"}
    assert all(name in text or (ROOT / name).is_file() for name in wanted)
    assert wanted <= copied


def test_what_has_no_rosdep_key_is_installed_with_the_versions_that_are_tested() -> None:
    runtime = {name for name in names("runtime.txt") if not name.startswith("ros-")}
    assert runtime <= names("workspace.txt") | FROM_ROSDEP
    locked = (ROOT / "requirements" / "jazzy.lock").read_text().splitlines()
    pinned = [row for row in (ROOT / "requirements" / "workspace.txt").read_text().splitlines() if "==" in row]
    assert set(pinned) <= set(locked)


def test_the_entrypoint_can_be_run() -> None:
    script = ROOT / "tools" / "docker-entrypoint.sh"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)], timeout=60).returncode == 0
    assert ["/usr/local/bin/lift-entrypoint"] in [words[-1:] for words in arguments("COPY")]


def test_the_dev_container_is_built_from_the_same_file() -> None:
    folder = ROOT / ".devcontainer"
    build = DEVCONTAINER["build"]
    assert (folder / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (folder / build["context"]).resolve() == ROOT
    assert DEVCONTAINER["workspaceFolder"] in DEVCONTAINER["workspaceMount"]
    for file in re.findall(r"requirements/[\w.]+", DEVCONTAINER["postCreateCommand"]):
        assert (ROOT / file).exists(), file
