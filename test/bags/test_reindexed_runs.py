"""What rosbag2 makes of a run's metadata.yaml, and what odd facts may not do to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from bag_samples import sample_episode, write_run
from rosbags.rosbag2 import Reader

from lift_ros.bags import BagError, RunReader, RunWriter, read_run
from lift_ros.bags.mcap_records import file_bytes, read_metadata
from lift_ros.bags.metadata import FILE_NAME, summarise_file
from lift_ros.collection.records import same


def reindex(run: Path, custom_data: dict[str, str] | None) -> None:
    """Write metadata.yaml as `ros2 bag reindex` does: it counts topics, but describes no file."""
    files = sorted(path for path in run.glob("*.mcap"))
    summaries = [summarise_file(path) for path in files]
    topics: dict[str, dict[str, Any]] = {}
    for topic, count in (pair for summary in summaries for pair in summary.counts.items()):
        description = {
            "name": topic.name,
            "type": topic.type_name,
            "serialization_format": "cdr",
            "offered_qos_profiles": json.loads(topic.qos),
            "type_description_hash": topic.type_hash,
        }
        topics.setdefault(topic.name, {"topic_metadata": description, "message_count": 0})["message_count"] += count
    information = {
        "version": 9,
        "storage_identifier": "mcap",
        "duration": {"nanoseconds": sum(summary.last_time - summary.first_time for summary in summaries)},
        "starting_time": {"nanoseconds_since_epoch": min(summary.first_time for summary in summaries)},
        "message_count": sum(summary.messages for summary in summaries),
        "topics_with_message_count": list(topics.values()),
        "compression_format": "",
        "compression_mode": "",
        "relative_file_paths": [path.name for path in files],
        "files": [],
        "custom_data": custom_data,
        "ros_distro": "kilted",
    }
    (run / FILE_NAME).write_text(yaml.safe_dump({"rosbag2_bagfile_information": information}))


@pytest.mark.parametrize("custom_data", [None, {}, {"operator": "somebody"}])
def test_a_reindexed_run_keeps_its_facts_and_counts(tmp_path: Path, custom_data: dict[str, str] | None) -> None:
    run = tmp_path / "run"
    written = write_run(run, 3)
    reindex(run, custom_data)
    assert RunReader(run).facts == {"seed": 7, "scenario": "sample"}
    with RunWriter(run, {"seed": 7, "scenario": "sample"}, sync=False, reserve=0) as writer:
        assert writer.facts == {"seed": 7, "scenario": "sample"}
        writer.write_episode(sample_episode(3))
    assert same(read_run(run), [*written, sample_episode(3)])
    with Reader(run) as reader:
        assert reader.message_count == 20
        assert {c.topic: c.msgcount for c in reader.connections} == {"/lift/step": 16, "/lift/episode": 4}
    information = json.loads((run / FILE_NAME).read_text())["rosbag2_bagfile_information"]
    assert [entry["message_count"] for entry in information["files"]] == [5, 5, 5, 5]


def test_facts_come_from_the_newest_file_whose_are_undamaged(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(run, 2)
    with RunWriter(run, {"seed": 8}, sync=False, reserve=0) as writer:
        writer.write_episode(sample_episode(2))
    reindex(run, None)
    newest = RunReader(run).facts
    assert newest["continuations"] == [{"from_episode": 2, "facts": {"seed": 8}}]
    last = run / "run_000002.mcap"
    last.write_bytes(last.read_bytes().replace(b'"seed": 8', b'"seed": 9'))
    assert RunReader(run).facts == {"seed": 7, "scenario": "sample"}


def test_each_file_tells_rosbag2_what_reindexing_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    write_run(tmp_path / "run", 1)
    (path,) = (tmp_path / "run").glob("*.mcap")
    record = read_metadata(file_bytes(path, whole=True))["rosbag2"]
    found = yaml.safe_load(record["serialized_metadata"])
    whole = yaml.safe_load((tmp_path / "run" / FILE_NAME).read_text())["rosbag2_bagfile_information"]
    assert found.keys() == whole.keys()
    assert (found["version"], found["ros_distro"], whole["ros_distro"]) == (9, "jazzy", "jazzy")
    assert found["custom_data"] == whole["custom_data"]


def test_no_character_in_facts_spoils_the_metadata(tmp_path: Path) -> None:
    text = "".join(map(chr, range(0x100))) + "\u2028\u2029\ufeff\ufffe\uffff\U0001f642é"
    facts = {"note": text, text: 1}
    with RunWriter(tmp_path / "run 🙂", facts, sync=False, reserve=0) as writer:
        writer.write_episode(sample_episode(0))
    content = yaml.safe_load((tmp_path / "run 🙂" / FILE_NAME).read_bytes())["rosbag2_bagfile_information"]
    assert json.loads(content["custom_data"]["lift_facts"]) == facts
    assert content["relative_file_paths"] == ["run 🙂_000000.mcap"]
    assert RunReader(tmp_path / "run 🙂").facts == facts
    with Reader(tmp_path / "run 🙂") as reader:
        assert reader.message_count == 5


def test_half_a_character_in_facts_is_kept(tmp_path: Path) -> None:
    """File names that are no UTF-8 come as such."""
    with RunWriter(tmp_path / "run", {"note": "a\udc80"}, sync=False, reserve=0) as writer:
        writer.write_episode(sample_episode(0))
    assert RunReader(tmp_path / "run").facts == {"note": "a\udc80"}
    yaml.safe_load((tmp_path / "run" / FILE_NAME).read_bytes())


def test_facts_that_are_no_object_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 1)
    reindex(tmp_path / "run", {"lift_facts": "[1]", "lift_facts_crc32": "4c2f32b8"})
    with pytest.raises(BagError, match="a JSON object was written"):
        RunReader(tmp_path / "run")
