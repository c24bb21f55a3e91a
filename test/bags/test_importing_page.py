"""docs/importing-bags.md leads from somebody else's bag to a trained model; every line of it is run as printed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from foreign_bag import search, write_bag
from page import DOCS, blocks, write_files

from lift_ros.bags.reader import read_run
from lift_ros.cli import main
from lift_ros.policies.learned import load_model

PAGE = DOCS / "importing-bags.md"


def test_the_page_ends_in_a_trained_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bag(tmp_path / "recordings" / "stage", search(40))
    monkeypatch.chdir(tmp_path)
    look, shown, _, work = blocks(PAGE)
    assert [shlex.split(line)[1] for line in (*look.lines, *work.lines)] == [
        "import", "import", "inspect", "train", "evaluate",
    ]  # fmt: skip
    assert main(shlex.split(look.text)[1:]) == 0
    assert capsys.readouterr().out == shown.text
    guessed = (tmp_path / "mapping.yaml").read_text()
    write_files(PAGE, tmp_path)
    assert (tmp_path / "mapping.yaml").read_text() != guessed
    for line in work.lines:
        assert main(shlex.split(line)[1:]) == 0, line
    assert len(read_run(tmp_path / "runs" / "stage")) == 40
    action = load_model(tmp_path / "stage.safetensors").act([0.5, 0.0])
    assert action[0] < -0.1 and abs(action[1]) < 0.1, "it leads to the goal, faster than the routine"
    assert "success" in capsys.readouterr().out, "the bags predict what the model is worth"
