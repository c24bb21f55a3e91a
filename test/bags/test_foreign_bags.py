"""Bags that others wrote, and a bag of this format kept in the repository."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bag_samples import sample_episode
from make_fixture import FIXTURE, fixture_episodes, main
from rosbags.rosbag2 import Reader
from rosbags_writer import write_with_rosbags

from lift_ros.bags import BagError, RunReader, RunWriter, episodes_to_arrays, load_arrays, read_run
from lift_ros.collection.records import Outcome, same


@pytest.mark.parametrize("compressed", [False, True])
def test_a_bag_written_by_rosbags_is_a_run(tmp_path: Path, compressed: bool) -> None:
    episodes = [sample_episode(index, image=index == 1) for index in range(3)]
    write_with_rosbags(tmp_path / "run", episodes, compressed=compressed)
    assert same(read_run(tmp_path / "run"), episodes)
    assert RunReader(tmp_path / "run").facts == {}


def test_recording_goes_on_in_a_bag_written_by_rosbags(tmp_path: Path) -> None:
    episodes = [sample_episode(index) for index in range(3)]
    write_with_rosbags(tmp_path / "run", episodes[:2])
    with RunWriter(tmp_path / "run", {"seed": 1}, sync=False, reserve=0) as writer:
        assert writer.next_episode == 2
        writer.write_episode(episodes[2])
    assert same(read_run(tmp_path / "run"), episodes)


def test_another_type_on_our_topic_is_refused(tmp_path: Path) -> None:
    write_with_rosbags(tmp_path / "run", [sample_episode(0)], step_topic_type="std_msgs/msg/Header")
    with pytest.raises(BagError, match=r"/lift/step is std_msgs/msg/Header.*lift import"):
        RunReader(tmp_path / "run")


def test_the_kept_bag_is_still_read() -> None:
    reader = RunReader(FIXTURE)
    first, second, third = reader
    originals = fixture_episodes()
    assert same([first, second], originals[:2])
    assert third.outcome == Outcome.RECOVERED
    assert same(third.steps, originals[2].steps)
    assert reader.facts == {"seed": 5, "scenario": "fixture"}


def test_the_script_writes_such_a_bag(tmp_path: Path) -> None:
    main(tmp_path / "first_format")
    assert same(read_run(tmp_path / "first_format"), read_run(FIXTURE))
    assert {path.name for path in (tmp_path / "first_format").iterdir()} == {path.name for path in FIXTURE.iterdir()}


def test_recording_goes_on_in_the_kept_bag(tmp_path: Path) -> None:
    """Its journal has an open chunk head where ours have a placeholder."""
    run = tmp_path / "first_format"
    shutil.copytree(FIXTURE, run)
    before = read_run(run)
    with RunWriter(run, {"seed": 5, "scenario": "fixture"}, sync=False, reserve=0) as writer:
        assert writer.next_episode == 3
        writer.write_episode(sample_episode(3))
    assert same(read_run(run), [*before, sample_episode(3)])
    assert not list(run.glob("*.active*")) + list(run.glob("*.damaged"))
    with Reader(run) as reader:
        assert reader.message_count == sum(len(episode.steps) + 1 for episode in read_run(run))


def test_the_kept_bag_is_loaded_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    finished = [FIXTURE / f"first_format_{number:06d}.mcap" for number in range(2)]
    expected = episodes_to_arrays(fixture_episodes()[:2], [0, 1])

    def refuse(self: RunReader, index: int) -> None:
        raise AssertionError(f"episode {index} was read the slow way")

    monkeypatch.setattr(RunReader, "episode", refuse)
    assert same(load_arrays(finished).observations, expected.observations)
