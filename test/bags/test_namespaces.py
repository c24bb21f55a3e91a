"""A bag's topics are those of the graph that was recorded, and bags of every namespace are read alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bag_samples import sample_episode

from lift_ros.bags import BagError, RunReader, RunWriter, load_arrays, read_run
from lift_ros.bags.chunks import list_episodes
from lift_ros.bags.files import topics_of
from lift_ros.bags.mcap_records import file_bytes
from lift_ros.bags.replaying import recorded_topics
from lift_ros.collection.records import Outcome, same
from lift_ros.errors import UserError
from lift_ros.messages.records import encode_step


def writer(run: Path, namespace: str) -> RunWriter:
    return RunWriter(run, {}, sync=False, reserve=0, namespace=namespace)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two episodes of a graph in /left."""
    with writer(tmp_path / "run", "/left") as recording:
        for index in range(2):
            recording.write_episode(sample_episode(index))
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("namespace", "names"),
    [
        ("/lift", ["/lift/step", "/lift/episode"]),
        ("/cell/left", ["/cell/left/step", "/cell/left/episode"]),
        ("/", ["/step", "/episode"]),
    ],
)
def test_topics_carry_the_namespace(tmp_path: Path, namespace: str, names: list[str]) -> None:
    with writer(tmp_path / "run", namespace) as recording:
        recording.write_episode(sample_episode(0))
    assert list(recorded_topics(tmp_path / "run")) == names
    metadata = json.loads((tmp_path / "run" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert [entry["topic_metadata"]["name"] for entry in metadata["topics_with_message_count"]] == names
    assert same(read_run(tmp_path / "run")[0], sample_episode(0))


def test_every_way_of_reading_finds_the_episodes(run: Path) -> None:
    assert [same(episode, sample_episode(episode.index)) for episode in RunReader(run)] == [True, True]
    assert load_arrays(run).episodes.tolist() == [0, 1]
    assert list_episodes(file_bytes(run / "run_000001.mcap", whole=True)) == [1]  # the fast way, without its fallback


def test_a_run_goes_on_in_another_namespace(run: Path) -> None:
    with writer(run, "/lift") as recording:
        recording.write_episode(sample_episode(2))
    assert [same(episode, sample_episode(episode.index)) for episode in RunReader(run)] == [True] * 3
    assert load_arrays(run).episodes.tolist() == [0, 1, 2]


def test_a_cut_off_episode_is_recovered_under_its_own_names(run: Path) -> None:
    recording = writer(run, "/left")
    for step in sample_episode(2).steps[:3]:
        recording.write_step(step)
    recording._release()
    writer(run, "/left").close()
    last = RunReader(run).episode(2)
    assert (last.outcome, len(last.steps)) == (Outcome.RECOVERED, 3)
    assert set(recorded_topics(run)) == {"/left/step", "/left/episode"}


def test_steps_of_another_graph_are_not_recorded_along(tmp_path: Path) -> None:
    with writer(tmp_path / "run", "/left") as recording, pytest.raises(UserError, match="record another along"):
        recording.write_other(topics_of("/right")[0], b"", 0)


def record_both(run: Path, own: str, other: str) -> None:
    """Do what recorders once did when they were told to record another graph's steps along."""
    with writer(run, own) as recording:
        stranger = sample_episode(0, seed=1).steps[0]
        recording._write(topics_of(other)[0], stranger.time_ns, (encode_step(stranger),))
        recording.write_episode(sample_episode(0))


def test_a_file_with_another_graphs_steps_is_read_as_before(tmp_path: Path) -> None:
    record_both(tmp_path / "run", "/lift", "/right")
    assert [same(episode, sample_episode(0)) for episode in RunReader(tmp_path / "run")] == [True]


def test_a_file_that_may_be_of_either_graph_is_refused(tmp_path: Path) -> None:
    record_both(tmp_path / "run", "/left", "/right")
    with pytest.raises(BagError, match="it holds the steps of several graphs: /right, /left"):
        read_run(tmp_path / "run")
