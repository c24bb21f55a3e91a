"""Loading into arrays gives what the reader gives, finds the same faults, and reads no more than it must."""

from __future__ import annotations

import os
import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from bag_samples import sample_episode, write_run
from rosbags_writer import write_with_rosbags
from test_mutilated_bags import DAMAGES, Damage, mutilate

from lift_ros.bags import BagError, EpisodeArrays, RunWriter, episodes_to_arrays, load_arrays, loading, read_run
from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Mode, Outcome, same
from lift_ros.errors import UserError


def agree(first: EpisodeArrays, second: EpisodeArrays) -> bool:
    names = [field.name for field in fields(EpisodeArrays) if field.name not in ("left_out", "columns")]
    columns = first.columns.keys() | second.columns.keys()
    return all(same(getattr(first, name), getattr(second, name)) for name in names) and all(
        same(first.columns[name], second.columns[name]) for name in columns
    )


@pytest.fixture
def no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test fail where an episode is not loaded the fast way."""

    def refuse(self: RunReader, index: int) -> Episode:
        raise AssertionError(f"episode {index} was read the slow way")

    monkeypatch.setattr(RunReader, "episode", refuse)


@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("per_file", [1, 3])
@pytest.mark.parametrize("workers", [None, 1, 3])
@pytest.mark.usefixtures("no_reader")
def test_arrays_hold_what_was_written(tmp_path: Path, per_file: int, workers: int | None, image: bool) -> None:
    written = write_run(tmp_path / "run", 7, 5, per_file=per_file, image=image)
    arrays = load_arrays(tmp_path / "run", workers=workers, images=image)
    assert agree(arrays, episodes_to_arrays(written, images=image))
    assert len(arrays) == 7
    assert arrays.steps == 35
    assert arrays.terminated.all()
    assert same(arrays.observations[arrays.rows(3)], np.stack([step.observation for step in written[3].steps]))
    assert (arrays.images is not None) == image
    for field in fields(EpisodeArrays):
        value = getattr(arrays, field.name)
        assert not isinstance(value, np.ndarray) or value.flags.c_contiguous, field.name


@pytest.mark.usefixtures("no_reader")
def test_long_episodes_of_one_size_are_loaded_alike(tmp_path: Path) -> None:
    written = []
    with RunWriter(tmp_path / "run", {}, 2, sync=False, reserve=0) as writer:
        for index in range(4):
            episode = sample_episode(index, 400 if index % 2 else 6)
            for step in episode.steps:
                step.augmentor_proposal, step.model_hash = np.zeros(2), ""
            writer.write_episode(episode)
            written.append(episode)
    assert agree(load_arrays(tmp_path / "run"), episodes_to_arrays(written))


@pytest.mark.usefixtures("no_reader")
def test_several_runs_follow_each_other(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", 3)
    second = write_run(tmp_path / "second", 2, 6)
    arrays = load_arrays([tmp_path / "first", tmp_path / "second"])
    assert agree(arrays, episodes_to_arrays([*first, *second], [0, 0, 0, 1, 1]))
    assert arrays.runs.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.usefixtures("no_reader")
def test_a_few_episodes_are_loaded_in_the_order_asked_for(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run", 9, per_file=2)
    arrays = load_arrays(tmp_path / "run", [1, 4, 5])
    assert agree(arrays, episodes_to_arrays([written[1], written[4], written[5]]))


@pytest.mark.parametrize("per_file", [1, 9])
def test_loading_a_few_episodes_does_not_read_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_file: int
) -> None:
    written = write_run(tmp_path / "run", 9, per_file=per_file)
    for path in (tmp_path / "run").glob("*.mcap"):
        content = bytearray(path.read_bytes())
        for episode in written:
            place = content.find(episode.steps[1].observation.tobytes())
            if place >= 0 and episode.index not in (3, 8):
                content[place] ^= 1
        path.write_bytes(content)
    opened: list[str] = []
    original = os.open

    def spy(path: str, *arguments: int) -> int:
        opened.append(os.path.basename(path))
        return original(path, *arguments)

    monkeypatch.setattr(loading.os, "open", spy)
    assert agree(load_arrays(tmp_path / "run", [3]), episodes_to_arrays([written[3]]))
    newest = 8 if per_file == 1 else 0  # which is listed
    wanted = 3 if per_file == 1 else 0
    assert [name for name in opened if name.endswith(".mcap")] == [f"run_{newest:06d}.mcap", f"run_{wanted:06d}.mcap"]
    with pytest.raises(BagError, match="checksum"):
        load_arrays(tmp_path / "run")


def test_an_episode_that_is_not_there_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 2)
    with pytest.raises(BagError, match="not recorded"):
        load_arrays(tmp_path / "run", [5])
    with pytest.raises(UserError, match="workers is 0"):
        load_arrays(tmp_path / "run", workers=0)


def test_a_bag_of_others_is_loaded_too(tmp_path: Path) -> None:
    episodes = [sample_episode(index) for index in range(3)]
    write_with_rosbags(tmp_path / "run", episodes)
    assert agree(load_arrays(tmp_path / "run"), episodes_to_arrays(episodes))


def test_other_topics_do_not_matter(tmp_path: Path) -> None:
    words = RecordedTopic("/words", "std_msgs/msg/String", "string data\n")
    written = [sample_episode(index) for index in range(3)]
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        for episode in written:
            for step in episode.steps:
                writer.write_step(step)
                writer.write_other(
                    RecordedTopic("/words", "std_msgs/msg/String", "string data\n"), b"\0\1\0\0\1\0\0\0\0", step.time_ns
                )
            writer.finish_episode(episode)
        writer.write_other(words, b"\0\1\0\0\1\0\0\0\0", 7)
    assert agree(load_arrays(tmp_path / "run"), episodes_to_arrays(written))


def test_every_outcome_is_loaded_and_a_recovered_episode_ends_where_it_was_seen_last(tmp_path: Path) -> None:
    written = []
    with RunWriter(tmp_path / "run", {}, 2, sync=False, reserve=0) as writer:
        for index, outcome in enumerate((Outcome.REACHED, Outcome.STEP_LIMIT, Outcome.ABORTED)):
            episode = sample_episode(index)
            episode.outcome = outcome
            episode.reason = "the plant is silent" if outcome == Outcome.ABORTED else ""
            writer.write_episode(episode)
            written.append(episode)
        empty = Episode(3, 1, Mode.COLLECT, Outcome.ABORTED, [], np.empty(0), reason="it never answered")
        writer.write_episode(empty)
        for step in sample_episode(4).steps[:3]:
            writer.write_step(step)
    arrays = load_arrays(tmp_path / "run")
    assert agree(arrays, episodes_to_arrays(read_run(tmp_path / "run")))
    assert arrays.episodes.tolist() == [0, 1, 2, 4]
    assert arrays.outcomes.tolist() == [1, 2, 3, 4]
    assert arrays.terminated.tolist() == [True, False, False, False]
    assert np.diff(arrays.offsets).tolist() == [4, 4, 4, 2]
    assert same(arrays.final_observations[3], sample_episode(4).steps[2].observation)


def test_what_a_crash_has_left_is_loaded(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run", {}, 3, sync=False, reserve=0)
    writer.write_episode(sample_episode(0))
    for step in sample_episode(1).steps:
        writer.write_step(step)
    writer._release()
    arrays = load_arrays(tmp_path / "run")
    assert agree(arrays, episodes_to_arrays(read_run(tmp_path / "run")))
    assert np.diff(arrays.offsets).tolist() == [4, 3]


def test_an_empty_run_gives_empty_arrays(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 0)
    arrays = load_arrays(tmp_path / "run")
    assert (len(arrays), arrays.steps, arrays.offsets.tolist()) == (0, 0, [0])


def test_runs_of_different_plants_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "first", 1)
    other = sample_episode(0)
    for step in other.steps:
        step.action = np.zeros(3)
    with RunWriter(tmp_path / "second", {}, sync=False, reserve=0) as writer:
        writer.write_episode(other)
    with pytest.raises(BagError, match=r"second.*action=3"):
        load_arrays([tmp_path / "first", tmp_path / "second"])
    arrays = load_arrays([tmp_path / "first", tmp_path / "second"], skip_bad=True)
    assert arrays.runs.tolist() == [0]
    assert [entry.episode for entry in arrays.left_out] == [0]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("per_file", [1, 3])
def test_damage_is_noticed(tmp_path: Path, damage: Damage, per_file: int) -> None:
    written = write_run(tmp_path / "run", 3, 3, per_file=per_file, image=True)
    expected = episodes_to_arrays(written, images=True)
    rng = np.random.default_rng(10 + per_file)
    for number in range(20):
        copy = tmp_path / str(number) / "run"
        shutil.copytree(tmp_path / "run", copy)
        mutilate(copy, rng, damage)
        try:
            arrays = load_arrays(copy, images=True)
        except UserError:
            pass
        else:
            assert agree(arrays, expected)
        try:
            kept = load_arrays(copy, images=True, skip_bad=True)
        except UserError:
            continue
        assert agree(kept, episodes_to_arrays([written[index] for index in kept.episodes], images=True))
        assert len(kept) == 3 or kept.left_out


COLUMNS = ("draw", "p", "rejection", "augmentations_left", "logging_proposal", "augmentor_proposal")


def uniform_run(path: Path) -> list[Episode]:
    """Record episodes in which every step has both proposals, as a shadowing augmentor leaves them."""
    written = []
    with RunWriter(path, {}, 2, sync=False, reserve=0) as writer:
        for index in range(3):
            episode = sample_episode(index)
            for step in episode.steps:
                step.augmentor_proposal = np.full(2, step.index / 7)
            writer.write_episode(episode)
            written.append(episode)
    return written


@pytest.mark.usefixtures("no_reader")
def test_further_fields_of_steps_are_columns(tmp_path: Path) -> None:
    written = uniform_run(tmp_path / "run")
    arrays = load_arrays(tmp_path / "run", columns=COLUMNS)
    assert agree(arrays, episodes_to_arrays(written, columns=COLUMNS))
    steps = [step for episode in written for step in episode.steps]
    assert same(arrays.columns["draw"], np.array([step.draw for step in steps]))
    assert same(arrays.columns["augmentor_proposal"], np.stack([step.augmentor_proposal for step in steps]))
    assert arrays.columns["rejection"].dtype == np.uint8


def test_a_vector_that_a_step_does_not_have_is_a_row_of_nan(tmp_path: Path) -> None:
    written = uniform_run(tmp_path / "run")
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        last = sample_episode(3)
        last.steps[1].augmentor_proposal = np.empty(0)
        last.steps[2].augmentor_proposal = np.ones(2)
        writer.write_episode(last)
    proposals = load_arrays(tmp_path / "run", columns=["augmentor_proposal"]).columns["augmentor_proposal"]
    expected = [step.augmentor_proposal for episode in [*written, last] for step in episode.steps]
    for row, proposal in zip(proposals, expected, strict=True):
        assert same(row, proposal) if proposal.size else np.isnan(row).all()


def test_columns_that_no_table_of_numbers_holds_are_read_from_the_records(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run", 2)
    arrays = load_arrays(tmp_path / "run", columns=["model_hash", "time_ns", "index"])
    steps = [step for episode in written for step in episode.steps]
    assert arrays.columns["model_hash"].tolist() == [step.model_hash for step in steps]
    assert arrays.columns["time_ns"].tolist() == [step.time_ns for step in steps]
    assert arrays.columns["index"].tolist() == [0, 1, 2, 3] * 2


@pytest.mark.parametrize("name", ["drawn", "image"])
def test_a_column_that_steps_do_not_have_is_refused(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "run", 1)
    with pytest.raises(UserError, match=f"no column {name}"):
        load_arrays(tmp_path / "run", columns=[name])


@pytest.mark.usefixtures("no_reader")
def test_aborted_episodes_are_loaded_the_fast_way_whatever_their_reasons(tmp_path: Path) -> None:
    written = []
    with RunWriter(tmp_path / "run", {}, 4, sync=False, reserve=0) as writer:
        for index, reason in enumerate(("", "the plant is silent", "stopped", "")):
            episode = sample_episode(index)
            episode.outcome, episode.reason = Outcome.ABORTED if reason else Outcome.REACHED, reason
            writer.write_episode(episode)
            written.append(episode)
    assert agree(load_arrays(tmp_path / "run"), episodes_to_arrays(written))


def test_some_episodes_are_what_loading_them_gives(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 5, 4, image=True)
    arrays = load_arrays(tmp_path / "run", images=True, columns=["p"])
    keep = np.array([True, False, True, True, False])
    assert agree(arrays.select(keep), load_arrays(tmp_path / "run", [0, 2, 3], images=True, columns=["p"]))


@pytest.mark.usefixtures("no_reader")
def test_a_run_without_positions_is_loaded_the_fast_way(tmp_path: Path) -> None:
    episodes = [sample_episode(index, 3) for index in range(2)]
    for episode in episodes:
        episode.final_position, episode.goal = np.empty(0), np.empty(0)
        for step in episode.steps:
            step.position = np.empty(0)
    with RunWriter(tmp_path / "run", {}) as writer:
        for episode in episodes:
            writer.write_episode(episode)
    arrays = load_arrays(tmp_path / "run")
    assert arrays.positions.shape == (6, 0) and arrays.final_positions.shape == (2, 0)
