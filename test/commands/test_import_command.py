from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign_bag import Entry, walk, write_bag

from lift_ros.bags.reader import RunReader
from lift_ros.cli import main

MAPPING = """
observation: {topic: /tool, fields: [point.x, point.y]}
position: {topic: /tool, fields: [point.x, point.y]}
action: {topic: /move, field: delta}
episodes: {gap: 2, minimum_steps: 4}
goal: last_position
"""


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    (tmp_path / "mapping.yaml").write_text(MAPPING)
    return write_bag(tmp_path / "bag", walk(5) + walk(2, begin=10.0))


def words(bag: Path, *more: str) -> list[str]:
    return ["import", str(bag), "--mapping", str(bag.parent / "mapping.yaml"), "--out", str(bag.parent / "run"), *more]


def test_import_says_what_was_kept_and_dropped(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(bag)) == 0
    output = capsys.readouterr().out
    assert "run: 1 episodes (1 reached), 5 steps" in output
    assert "dropped 1x episode shorter than 4 steps" in output
    assert len(RunReader(bag.parent / "run")) == 1


def test_report_for_programs(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(bag, "--json")) == 0
    assert json.loads(capsys.readouterr().out) == {
        "episodes": 1,
        "steps": 5,
        "outcomes": {"reached": 1},
        "dropped": {"episode shorter than 4 steps": 1},
        "doubts": [],
    }


def test_topics_are_shown_with_counts_rates_types_and_fields(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(bag), "--topics", "--mapping", str(bag.parent / "new.yaml")]) == 0
    output = capsys.readouterr().out
    assert "/move  foreign_rig/msg/Move  7 messages, 10 Hz\n    delta[0:2], phase (text), header\n" in output
    assert (
        "/tool  geometry_msgs/msg/PointStamped  41 messages, 50 Hz\n    point.x, point.y, point.z, header\n" in output
    )


def test_topics_for_programs(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(bag), "--topics", "--json", "--mapping", str(bag.parent / "new.yaml")]) == 0
    move = {entry["topic"]: entry for entry in json.loads(capsys.readouterr().out)}["/move"]
    assert (move["typename"], move["messages"], move["rate"]) == ("foreign_rig/msg/Move", 7, pytest.approx(10))
    assert ["delta", "float64", 2] in move["fields"]


def test_the_proposed_mapping_imports_as_it_stands(
    bag: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = bag.parent / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert main(["import", "--topics", str(bag)]) == 0
    assert "mapping.yaml written" in capsys.readouterr().err
    assert main(["import", str(bag), "--mapping", "mapping.yaml", "--out", "run"]) == 0
    episodes = list(RunReader(folder / "run"))
    assert [len(episode.steps) for episode in episodes] == [5, 2]
    assert episodes[0].steps[0].action.tolist() == pytest.approx([-0.2, -0.4])
    assert "# reward: {topic: /score, field: data}" in (folder / "mapping.yaml").read_text()


def test_a_mapping_that_is_there_is_not_touched(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mapping = bag.parent / "mapping.yaml"
    assert main(["import", "--topics", str(bag), "--mapping", str(mapping)]) == 0
    shown = capsys.readouterr()
    assert "/move" in shown.out and "exists and was left as it is" in shown.err
    assert mapping.read_text() == MAPPING


def as_velocities(entries: list[Entry], period: float) -> list[Entry]:
    """Return a walk whose commands are velocities: what is held for the period."""
    for topic, message, _ in entries:
        if topic == "/move":
            message.delta = message.delta / period
    return entries


def test_velocities_taken_for_increments_are_noticed_by_the_positions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mapping.yaml").write_text(MAPPING)
    bag = write_bag(tmp_path / "bag", as_velocities(walk(6), 0.1) + as_velocities(walk(5, begin=10.0), 0.1))
    assert main(words(bag)) == 0
    warning = capsys.readouterr().err
    assert "actions are 10 times as long as the ways between recorded positions" in warning
    assert "likely velocities" in warning and "`meaning: velocity`" in warning
    assert RunReader(tmp_path / "run").facts["doubts"] == [warning.partition("warning: ")[2].strip()]
    told = MAPPING.replace("field: delta", "field: delta, meaning: velocity")
    (tmp_path / "mapping.yaml").write_text(told)
    again = [word if word != str(tmp_path / "run") else str(tmp_path / "right") for word in words(bag)]
    assert main(again) == 0
    assert capsys.readouterr().err == ""


def test_mistakes_exit_with_2_and_one_sentence(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(bag)]) == 2
    assert "--mapping FILE and --out RUN are needed" in capsys.readouterr().err
    (bag.parent / "mapping.yaml").write_text(MAPPING.replace("/move", "/mve"))
    assert main(words(bag)) == 2
    assert "has no topic /mve; did you mean /move?" in capsys.readouterr().err


def test_what_was_imported_without_rewards_can_be_trained_on(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(bag)) == 0
    run, out = str(bag.parent / "run"), str(bag.parent / "model.safetensors")
    assert main(["train", run, "--out", out, "--action-radius", "1", "--updates", "2", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["episodes"], report["labelled"], report["left_out"]) == (1, 1, [])
