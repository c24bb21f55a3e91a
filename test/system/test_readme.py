"""What the README shows works as printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
WAIT_S = 380


def tour() -> list[list[str]]:
    """Return the commands of the tour, made small where that does not change what they do."""
    text = README.partition("## A short tour")[2].partition("\n## ")[0]
    commands = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("    lift ")]
    smaller = {"60": "20", "30": "3"}
    return [[smaller.get(word, word) for word in command] for command in commands]


def test_the_tour_runs_from_beginning_to_end(tmp_path: Path) -> None:
    commands = tour()
    assert [command[1] for command in commands] == ["run", "inspect", "train", "run", "train", "evaluate", "report"]
    for command in commands:
        extra = ["--updates", "300"] if command[1] == "train" else []
        done = subprocess.run(
            [sys.executable, "-m", "lift_ros.cli", *command[1:], *extra],
            cwd=tmp_path,
            env=None,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    assert (tmp_path / "report.html").exists()
    assert list((tmp_path / "plots").glob("**/*.png"))


def test_the_d3rlpy_example_runs(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    done = subprocess.run(
        [sys.executable, "-c", code.group(1)], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.returncode == 0, done.stderr
    assert "Gym" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_lines_fit_a_page() -> None:
    for number, line in enumerate(README.splitlines(), 1):
        assert len(line) < 100 or line.startswith("!["), f"README.md, line {number} has {len(line)} characters"


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z]+)\b", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_colcon_stays_out_of_the_virtual_environment_of_a_workspace(tmp_path: Path) -> None:
    """The line that makes it, as printed; what pip puts there may look like packages to colcon."""
    (line,) = re.findall(r"^    (python3 -m venv .*)$", README, re.MULTILINE)
    subprocess.run(["bash", "-c", line.replace("python3", sys.executable)], cwd=tmp_path, check=True, timeout=WAIT_S)
    for folder in ("src/lift_ros", "venv/lib/stranger"):
        (tmp_path / folder).mkdir(parents=True)
        manifest = (ROOT / "package.xml").read_text().replace("<name>lift_ros<", f"<name>{Path(folder).name}<")
        (tmp_path / folder / "package.xml").write_text(manifest)
        (tmp_path / folder / "CMakeLists.txt").touch()
    colcon = Path(sys.executable).parent / "colcon"
    listed = subprocess.run(
        [colcon, "list", "--names-only"], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S
    )
    assert listed.stdout.split() == ["lift_ros"], listed.stderr
