"""The commands that docs/security.md prints for this package do what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from page import DOCS, blocks

from lift_ros.bags.reader import read_run

PAGE = DOCS / "security.md"
WAIT_S = 380


def run_as_printed(heading: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (block,) = blocks(PAGE, heading)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-ec", block.text],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )


def test_an_isolated_graph_collects_or_says_why_not(tmp_path: Path) -> None:
    done = run_as_printed("## A network of its own", tmp_path)
    if done.returncode:
        assert "this system allows no private network" in done.stderr
        pytest.skip(done.stderr)
    assert "nsenter --preserve-credentials --user --net --target" in done.stdout
    assert len(list(read_run(tmp_path / "runs" / "isolated"))) == 3


def test_the_policy_is_written(tmp_path: Path) -> None:
    assert run_as_printed("## Keys", tmp_path).returncode == 0
    policy = ElementTree.parse(tmp_path / "policy.xml")
    enclaves = {entry.attrib["path"] for entry in policy.iter("enclave")}
    assert {"/lift/lens_stage", "/lift/arbiter", "/lift/viewer", "/lift/operator"} <= enclaves


def test_the_current_folder_is_searched_where_pythonpath_says_so(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('code of the current folder')")
    done = run_as_printed("## Scenarios name code", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "code of the current folder" in done.stdout
