"""The tutorial's cells run one after the other, as in a notebook, and tell the story they promise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))
WAIT_S = 380


def cells(kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == kind]


def test_every_cell_runs_and_the_policy_beats_the_routine(tmp_path: Path) -> None:
    program = "\n".join([*cells("code"), "print('success', results['learned policy'].success)"])  # one namespace
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    routine, lift = (float(number) for number in re.findall(r"takes (\d+) steps", done.stdout))
    assert lift < routine
    assert float(done.stdout.split()[-1]) > 0.9
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_stored_that_was_printed_once() -> None:
    assert NOTEBOOK["nbformat"] == 4
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    for cell in NOTEBOOK["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", "\n".join(cells("markdown"))):
        assert (DOCS / target).exists(), target
