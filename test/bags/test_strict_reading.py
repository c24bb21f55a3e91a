"""Bad bags are refused with bag, episode, step and remedy, or left out on request."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_samples import sample_episode, write_run
from rosbags_writer import write_with_rosbags

from lift_ros.bags import BagError, EpisodeError, RunReader, RunWriter, read_run, writer
from lift_ros.bags.files import EPISODE, STEP
from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.collection.records import Episode, Outcome, same
from lift_ros.errors import UserError


def refusal(path: Path) -> BagError:
    """Return the error of reading the run; it must be one a user can act on."""
    with pytest.raises(UserError) as caught:
        read_run(path)
    error = caught.value
    assert isinstance(error, BagError)
    assert path.name in str(error)
    assert error.remedy in str(error)
    return error


def change_metadata(run: Path, **changes: Any) -> None:
    path = run / "metadata.yaml"
    content = json.loads(path.read_text())
    content["rosbag2_bagfile_information"].update(changes)
    path.write_text(json.dumps(content))


def damage(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def bad(change: str) -> Episode:
    """Return episode 1 with a fault that only another program can have written."""
    episode = sample_episode(1)
    match change:
        case "gap":
            del episode.steps[1]
        case "long gap":
            del episode.steps[1:3]
        case "repeat":
            episode.steps[2] = episode.steps[1]
        case "nan":
            episode.steps[2].observation[1] = np.nan
        case "infinite action":
            episode.steps[1].action[0] = np.inf
        case "infinite reward":
            episode.steps[3].reward = -np.inf
        case "mixed observation":
            episode.steps[3].observation = np.zeros(4)
        case "mixed action":
            episode.steps[2].action = np.zeros(1)
        case "final":
            episode.final_observation = np.zeros(2)
        case "final position":
            episode.final_position = np.zeros(5)
        case "nan goal":
            episode.goal = np.array([np.nan])
        case _:
            raise AssertionError(change)
    return episode


@pytest.mark.parametrize(
    ("change", "step", "words"),
    [
        ("gap", 1, "this step is missing"),
        ("long gap", 1, "steps up to 2 are missing"),
        ("repeat", 1, "repeated"),
        ("nan", 2, "observation is .*nan.*expected finite"),
        ("infinite action", 1, "action is .*inf.*expected finite"),
        ("infinite reward", 3, "reward is .*expected finite"),
        ("mixed observation", 3, "observation=4.*step 0 has .*observation=3"),
        ("mixed action", 2, "action=1.*step 0 has .*action=2"),
        ("final", None, "final_observation and final_position have 2 and"),
        ("final position", None, "final_position have 3 and 5 values"),
        ("nan goal", None, "goal is .*expected finite"),
    ],
)
def test_a_bad_episode_is_named_and_can_be_left_out(tmp_path: Path, change: str, step: int | None, words: str) -> None:
    write_with_rosbags(tmp_path / "run", [sample_episode(0), bad(change), sample_episode(2)])
    error = refusal(tmp_path / "run")
    assert error.episode == 1
    assert error.step == step
    assert "episode 1" in str(error)
    assert step is None or f"step {step}" in str(error)
    with pytest.raises(EpisodeError, match=words):
        RunReader(tmp_path / "run").episode(1)
    reader = RunReader(tmp_path / "run", skip_bad=True)
    assert same(list(reader), [sample_episode(0), sample_episode(2)])
    assert [(entry.episode, entry.reason) for entry in reader.left_out] == [(1, error.problem)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 9}, "counts 9 steps and 4 are recorded"),
        ({"augmentations": 99}, "counts 99 augmentations"),
        ({"outcome": 77}, "outcome is 77"),
    ],
)
def test_an_end_that_contradicts_its_steps_is_refused(tmp_path: Path, changes: dict[str, int], words: str) -> None:
    write_with_rosbags(tmp_path / "run", [sample_episode(0)], **changes)
    assert words in str(refusal(tmp_path / "run"))
    reader = RunReader(tmp_path / "run", skip_bad=True)
    assert list(reader) == []
    assert reader.left_out


def test_a_missing_episode_is_a_gap(tmp_path: Path) -> None:
    write_with_rosbags(tmp_path / "run", [sample_episode(0), sample_episode(1), sample_episode(4)])
    error = refusal(tmp_path / "run")
    assert error.episode == 2
    assert "up to 3 are missing" in str(error)
    reader = RunReader(tmp_path / "run", skip_bad=True)
    assert [episode.index for episode in reader] == [0, 1, 4]
    assert len(reader.left_out) == 1


def test_a_repeated_episode_is_refused(tmp_path: Path) -> None:
    write_with_rosbags(tmp_path / "run", [sample_episode(0), sample_episode(1), sample_episode(1)])
    assert refusal(tmp_path / "run").episode == 1


def test_the_same_episode_in_two_files_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 2)
    copy = tmp_path / "run" / "copy.mcap"
    copy.write_bytes((tmp_path / "run" / "run_000001.mcap").read_bytes())
    error = refusal(tmp_path / "run")
    assert error.episode == 1
    assert "copy.mcap" in str(error)


def test_episodes_of_other_dimensions_are_refused(tmp_path: Path) -> None:
    other = sample_episode(1)
    for step in other.steps:
        step.action = np.zeros(3)
    write_with_rosbags(tmp_path / "run", [sample_episode(0), other, sample_episode(2)])
    error = refusal(tmp_path / "run")
    assert error.episode == 1
    assert "action=3" in str(error)
    reader = RunReader(tmp_path / "run", skip_bad=True)
    assert [episode.index for episode in reader] == [0, 2]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 3)
    (tmp_path / "run" / "run_000001.mcap").unlink()
    error = refusal(tmp_path / "run")
    assert error.episode == 1
    assert "run_000001.mcap" in str(error)
    reader = RunReader(tmp_path / "run", skip_bad=True)
    assert [episode.index for episode in reader] == [0, 2]
    assert {entry.episode for entry in reader.left_out} == {1}


def test_a_missing_last_file_is_named(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 3)
    (tmp_path / "run" / "run_000002.mcap").unlink()
    assert refusal(tmp_path / "run").episode == 2


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_truncated_file_is_named_and_can_be_left_out(tmp_path: Path, number: int) -> None:
    written = write_run(tmp_path / "run", 3)
    path = tmp_path / "run" / f"run_{number:06d}.mcap"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BagError, match="cut off") as caught:
        read_run(tmp_path / "run")
    assert caught.value.episode == number
    reader = RunReader(tmp_path / "run", skip_bad=True)
    assert same(list(reader), [episode for episode in written if episode.index != number])
    assert {entry.episode for entry in reader.left_out} >= {number}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_bad_chunk_costs_one_episode_of_a_file(tmp_path: Path, number: int) -> None:
    written = write_run(tmp_path / "run", 3, per_file=3)
    (path,) = (tmp_path / "run").glob("*.mcap")
    content = path.read_bytes()
    place = content.index(written[number].steps[2].observation.tobytes())
    damage(path, place)
    assert "checksum" in str(refusal(tmp_path / "run"))
    reader = RunReader(tmp_path / "run", skip_bad=True)
    assert same(list(reader), [episode for episode in written if episode.index != number])
    assert any("checksum" in entry.reason for entry in reader.left_out)


def test_what_is_no_bag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BagError, match="does not exist"):
        RunReader(tmp_path / "nothing")
    with pytest.raises(BagError, match="no bag"):
        RunReader(tmp_path)
    (tmp_path / "text.mcap").write_text("Dear diary,\n" * 100)
    with pytest.raises(BagError, match="does not begin like an MCAP file"):
        RunReader(tmp_path / "text.mcap")
    (tmp_path / "empty.mcap").write_bytes(b"")
    with pytest.raises(BagError, match="does not begin like an MCAP file"):
        RunReader(tmp_path / "empty.mcap")


def test_a_writer_does_not_touch_a_directory_of_other_things(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("% years of work")
    with pytest.raises(BagError, match="holds other files"):
        RunWriter(tmp_path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 10}, "format version 10"),
        ({"version": "nine"}, "format version 'nine'"),
        ({"storage_identifier": "sqlite3"}, "'sqlite3'; a run is stored as mcap"),
        ({"relative_file_paths": 3}, "is no list"),
        ({"custom_data": {"lift_facts": "{}", "lift_facts_crc32": "00000000"}}, "checksum"),
    ],
)
def test_foreign_metadata_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    written = write_run(tmp_path / "run", 2)
    change_metadata(tmp_path / "run", **changes)
    assert words in str(refusal(tmp_path / "run"))
    reader = RunReader(tmp_path / "run", skip_bad=True)
    assert same(list(reader), written)
    assert reader.left_out


@pytest.mark.parametrize("text", ["", "{", "- [", "a: b: c", "\0", "rosbag2_bagfile_information: 3", "[" * 5_000])
def test_broken_metadata_is_refused(tmp_path: Path, text: str) -> None:
    write_run(tmp_path / "run", 1)
    (tmp_path / "run" / "metadata.yaml").write_text(text)
    assert "metadata.yaml" in str(refusal(tmp_path / "run"))


def test_a_step_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = STEP.definition.replace("float64 reward\n", "float32 reward\n")
    step = RecordedTopic(STEP.name, STEP.type_name, definition)
    with monkeypatch.context() as patch:
        patch.setattr(writer, "topics_of", lambda _namespace: (step, EPISODE))
        write_run(tmp_path / "run", 1)
    error = refusal(tmp_path / "run")
    assert "float32 reward" in str(error)
    assert "version of lift_ros that recorded it" in str(error)


def test_an_episode_that_is_not_there_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 2)
    with pytest.raises(BagError, match=r"episode 7.*Choose one of 0 to 1"):
        RunReader(tmp_path / "run").episode(7)


def test_reading_one_episode_reads_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_run(tmp_path / "run", 5)
    reader = RunReader(tmp_path / "run")
    read: list[str] = []
    original = os.open

    def spy(path: str | Path, *arguments: int) -> int:
        read.append(Path(path).name)
        return original(path, *arguments)

    monkeypatch.setattr(os, "open", spy)
    assert same(reader.episode(2), written[2])
    assert read == ["run_000002.mcap"]


def test_an_aborted_episode_is_no_fault(tmp_path: Path) -> None:
    aborted = sample_episode(0, 2)
    aborted.outcome, aborted.reason = Outcome.ABORTED, "the plant refused a command"
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        writer.write_episode(aborted)
    assert same(read_run(tmp_path / "run"), [aborted])
