"""What is written is what is read, in our reader and in other people's."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_samples import sample_episode, write_run
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from lift_ros.bags import BagError, RunReader, RunWriter, read_run
from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.collection.records import Episode, Mode, Outcome, same
from lift_ros.errors import UserError
from lift_ros.messages.definitions import type_hash
from lift_ros.messages.records import EpisodeEnd, decode_episode, decode_step, encode_episode, encode_step

MESSAGES = Path(__file__).parents[2] / "msg"


@functools.cache
def typestore() -> Any:
    store = get_typestore(Stores.ROS2_KILTED)
    types: dict[str, Any] = {}
    for name in ("Step", "Episode"):
        types.update(get_types_from_msg((MESSAGES / f"{name}.msg").read_text(), f"lift_ros/msg/{name}"))
    store.register(types)
    return store


@pytest.mark.parametrize("image", [False, True])
def test_messages_are_what_rosbags_would_write(image: bool) -> None:
    store = typestore()
    episode = sample_episode(1, image=image)
    ends = [("lift_ros/msg/Episode", encode_episode(EpisodeEnd.of(episode)))]
    for name, data in [*(("lift_ros/msg/Step", encode_step(step)) for step in episode.steps), *ends]:
        assert bytes(store.serialize_cdr(store.deserialize_cdr(data, name), name)) == data


@pytest.mark.skipif(importlib.util.find_spec("lift_ros.msg") is None, reason="messages are not compiled")
def test_our_bytes_are_those_of_rmw() -> None:
    serialization = pytest.importorskip("rclpy.serialization")
    import lift_ros.msg as compiled

    step = sample_episode(1, image=True).steps[1]
    message = serialization.deserialize_message(encode_step(step), compiled.Step)
    assert same(decode_step(serialization.serialize_message(message)), step)
    end = EpisodeEnd(sample_episode(1, 0, image=True), 0, 0, 0.0)
    message = serialization.deserialize_message(encode_episode(end), compiled.Episode)
    assert same(decode_episode(serialization.serialize_message(message)).episode, end.episode)


@pytest.mark.parametrize("per_file", [1, 3])
@pytest.mark.parametrize("image", [False, True])
def test_run_survives(tmp_path: Path, per_file: int, image: bool) -> None:
    written = write_run(tmp_path / "run", 5, per_file=per_file, image=image)
    assert same(read_run(tmp_path / "run"), written)
    reader = RunReader(tmp_path / "run")
    assert reader.episode_indices == [0, 1, 2, 3, 4]
    assert same(reader.episode(3), written[3])
    assert reader.facts == {"seed": 7, "scenario": "sample"}
    assert len(list((tmp_path / "run").glob("*.mcap"))) == -(-5 // per_file)


def test_step_by_step_is_the_same_as_at_once(tmp_path: Path) -> None:
    written = [sample_episode(index) for index in range(3)]
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        for episode in written:
            for step in episode.steps[: episode.index + 2]:
                writer.write_step(step)
            writer.finish_episode(episode)
    assert same(read_run(tmp_path / "run"), written)


def test_finishing_without_the_steps_keeps_those_written(tmp_path: Path) -> None:
    episode = sample_episode(0)
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        for step in episode.steps:
            writer.write_step(step)
        bare = sample_episode(0)
        bare.steps = []
        writer.finish_episode(bare)
    assert same(read_run(tmp_path / "run"), [episode])


def test_episode_without_steps_survives(tmp_path: Path) -> None:
    aborted = Episode(0, 1, Mode.COLLECT, Outcome.ABORTED, [], np.empty(0), reason="the plant is silent")
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        writer.write_episode(aborted)
    assert same(read_run(tmp_path / "run"), [aborted])


def test_recording_goes_on_and_facts_tell_from_where(tmp_path: Path) -> None:
    run = tmp_path / "run"
    written = write_run(run, 2)
    with RunWriter(run, {"seed": 7, "scenario": "sample", "model": "ab"}, sync=False, reserve=0) as writer:
        assert writer.next_episode == 2
        writer.write_episode(written_too := sample_episode(2))
    with RunWriter(run, {"seed": 7, "scenario": "sample", "model": "ab"}, sync=False, reserve=0) as writer:
        assert writer.next_episode == 3
    assert same(read_run(run), [*written, written_too])
    facts = RunReader(run).facts
    assert facts["continuations"] == [{"from_episode": 2, "facts": {"model": "ab"}}]
    with Reader(run) as reader:
        assert reader.message_count == 3 * 5


@pytest.mark.parametrize("per_file", [1, 2])
def test_rosbags_reads_the_run(tmp_path: Path, per_file: int) -> None:
    written = write_run(tmp_path / "run", 3, per_file=per_file, image=True)
    with AnyReader([tmp_path / "run"]) as reader:
        decoded = [
            (connection.topic, reader.deserialize(data, connection.msgtype))
            for connection, _, data in reader.messages()
        ]
    steps = [message for topic, message in decoded if topic == "/lift/step"]
    ends = [message for topic, message in decoded if topic == "/lift/episode"]
    assert [topic for topic, _ in decoded] == (["/lift/step"] * 4 + ["/lift/episode"]) * 3
    for message, step in zip(steps, [step for episode in written for step in episode.steps], strict=True):
        assert same(message.observation, step.observation)
        assert same(message.image.data.reshape(5, 4, 3), step.image)
        assert message.model_hash == step.model_hash
    assert [message.seed for message in ends] == [episode.seed for episode in written]
    with Reader(tmp_path / "run") as plain:
        assert {c.topic: (c.msgcount, c.digest) for c in plain.connections} == {
            "/lift/step": (12, type_hash("Step")),
            "/lift/episode": (3, type_hash("Episode")),
        }
        profile = plain.connections[0].ext.offered_qos_profiles[0]
        assert (profile.depth, profile.reliability.name) == (1000, "RELIABLE")


def test_mcap_reads_and_checks_every_file(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run", 3, per_file=3)
    (path,) = (tmp_path / "run").glob("*.mcap")
    with path.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert summary.statistics.message_count == 15
        assert len(summary.chunk_indexes) == 3
        assert [metadata.name for metadata in reader.iter_metadata()] == ["lift_ros", "rosbag2"]
        decoded = [message for _, _, _, message in reader.iter_decoded_messages(topics=["/lift/step"])]
        late = list(reader.iter_messages(starting_at=written[1].steps[0].time_ns))
    assert [list(message.action) for message in decoded] == [
        step.action.tolist() for episode in written for step in episode.steps
    ]
    assert len(late) == 10


def test_other_topics_ride_along(tmp_path: Path) -> None:
    run = tmp_path / "run"
    text = b"\0\1\0\0\6\0\0\0hello\0"
    with RunWriter(run, {}, sync=False, reserve=0) as writer:
        for index in range(2):
            writer.write_other(RecordedTopic("/words", "std_msgs/msg/String", "string data\n"), text, 5)
            writer.write_episode(sample_episode(index))
        writer.write_other(RecordedTopic("/words", "std_msgs/msg/String", "string data\n"), text, 7)
    assert same(read_run(run), [sample_episode(0), sample_episode(1)])
    with AnyReader([run]) as reader:
        words = [
            reader.deserialize(data, connection.msgtype).data
            for connection, _, data in reader.messages()
            if connection.topic == "/words"
        ]
    assert words == ["hello"] * 3
    with RunWriter(run, {}, sync=False, reserve=0) as writer:
        assert writer.next_episode == 2
        writer.write_episode(sample_episode(2))
    assert RunReader(run).episode_indices == [0, 1, 2]


def test_other_topics_refuse_ours_and_a_change_of_type(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        with pytest.raises(UserError, match="write_step"):
            writer.write_other(RecordedTopic("/lift/step", "x/msg/Y", ""), b"", 0)
        writer.write_other(RecordedTopic("/words", "std_msgs/msg/String", "string data\n"), b"\0\1\0\0\1\0\0\0\0", 5)
        with pytest.raises(UserError, match="cannot change"):
            writer.write_other(RecordedTopic("/words", "std_msgs/msg/Int8", "int8 data\n"), b"\0\1\0\0\1", 5)


def test_a_single_file_is_a_run_too(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run", 2)
    reader = RunReader(tmp_path / "run" / "run_000001.mcap")
    assert same(list(reader), written[1:])
    assert reader.facts["seed"] == 7


def test_without_metadata_the_run_is_read_all_the_same(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run", 2)
    (tmp_path / "run" / "metadata.yaml").unlink()
    reader = RunReader(tmp_path / "run")
    assert same(list(reader), written)
    assert reader.facts["seed"] == 7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"observation": np.array([1.0, np.nan])}, "observation is"),
        ({"action": np.array([np.inf])}, "action is"),
        ({"position": np.zeros(65)}, "at most 64"),
        ({"observation": np.zeros((2, 2))}, "shape"),
        ({"reward": float("inf")}, "reward is inf"),
        ({"model_hash": "x" * 65}, "at most 64"),
        ({"image": np.zeros((2, 2, 1), np.uint8)}, "height, width, 3"),
        ({"image": np.zeros((2, 2, 3))}, "expected uint8"),
        ({"time_ns": 2**62}, "header is"),
        ({"augmentations_left": -1}, "between 0 and"),
    ],
)
def test_writer_refuses_what_no_reader_takes(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    step = sample_episode(0).steps[0]
    for name, value in change.items():
        setattr(step, name, value)
    with (
        RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer,
        pytest.raises(UserError, match=words),
    ):
        writer.write_step(step)
    assert read_run(tmp_path / "run") == []


def test_writer_refuses_gaps_and_repeats(tmp_path: Path) -> None:
    episode = sample_episode(0)
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        with pytest.raises(UserError, match="expects episode 0, step 0"):
            writer.write_step(episode.steps[1])
        writer.write_step(episode.steps[0])
        with pytest.raises(UserError, match="expects episode 0, step 1"):
            writer.write_step(episode.steps[0])
        with pytest.raises(UserError, match="expects episode 0"):
            writer.finish_episode(sample_episode(1))
        writer.finish_episode(episode)
    assert same(read_run(tmp_path / "run"), [episode])


def test_facts_that_are_no_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run facts cannot be written as JSON"):
        RunWriter(tmp_path / "run", {"path": tmp_path})


def test_writer_keeps_the_bytes_that_the_caller_has(tmp_path: Path) -> None:
    episode = sample_episode(0)
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        for step in episode.steps:
            writer.write_step(step, encode_step(step, frame_id="mark"))
        writer.finish_episode(episode, encode_episode(EpisodeEnd.of(episode), frame_id="mark"))
    assert (tmp_path / "run" / "run_000000.mcap").read_bytes().count(b"\5\0\0\0mark\0") == 5
    assert same(read_run(tmp_path / "run"), [episode])


def test_an_end_that_counts_otherwise_is_written_with_what_was_recorded(tmp_path: Path) -> None:
    episode = sample_episode(0)
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        writer.finish_episode(episode, encode_episode(EpisodeEnd(episode, 9, 9, 0.0)))
    assert same(read_run(tmp_path / "run"), [episode])


@pytest.mark.parametrize("name", ["observation", "position", "action"])
def test_writer_refuses_sizes_that_change_within_an_episode(tmp_path: Path, name: str) -> None:
    episode = sample_episode(0)
    setattr(episode.steps[2], name, np.zeros(7))
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        with pytest.raises(BagError, match=rf"step 2.*{name}=7") as caught:
            writer.write_episode(episode)
        assert caught.value.step == 2
    (kept,) = read_run(tmp_path / "run")
    assert kept.outcome == Outcome.RECOVERED
    assert same(kept.steps, sample_episode(0).steps[:2])


def test_writer_refuses_a_last_observation_of_another_size(tmp_path: Path) -> None:
    episode = sample_episode(0)
    episode.final_observation = np.zeros(7)
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        with pytest.raises(BagError, match="final_observation"):
            writer.write_episode(episode)
        writer.finish_episode(sample_episode(0))
    assert same(read_run(tmp_path / "run"), [sample_episode(0)])
