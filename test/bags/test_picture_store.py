"""Stores of pictures hold what was recorded, row by row, in memory and in a file alike."""

from __future__ import annotations

import gc
import hashlib
import os
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bag_samples import sample_episode, write_run
from rosbags_writer import write_with_rosbags

from lift_ros.array_types import Picture
from lift_ros.bags import EpisodeArrays, RunWriter, episodes_to_arrays, load_arrays, read_run, seen_part
from lift_ros.bags.pictures import PictureStore, store_episode_pictures, store_pictures
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Mode, Outcome, same
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import ENCODINGS, PictureFormat

MEMORY, NO_MEMORY = 10**9, 0
both_places = pytest.mark.parametrize("memory_limit", [MEMORY, NO_MEMORY])


def as_it_is(picture: Picture) -> Picture:
    return picture


def store(paths: list[Path], arrays: EpisodeArrays, encoding: str = "rgb8", memory_limit: int = MEMORY) -> PictureStore:
    kind = PictureFormat(5, 4, encoding)
    return store_pictures(paths, arrays, as_it_is, kind.shape, kind.dtype, memory_limit=memory_limit)


def expected(episodes: list[Episode]) -> Picture:
    return np.stack(
        [image for each in map(seen_part, episodes) for image in (*(s.image for s in each.steps), each.final_image)]
    )


def everything(found: PictureStore) -> Picture:
    return found.take(np.arange(len(found)))


@pytest.fixture
def no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test fail where an episode is not read the fast way."""

    def refuse(self: RunReader, index: int) -> Episode:
        raise AssertionError(f"episode {index} was read the slow way")

    monkeypatch.setattr(RunReader, "episode", refuse)


@both_places
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.usefixtures("no_reader")
def test_a_store_holds_what_was_written(tmp_path: Path, encoding: str, memory_limit: int) -> None:
    written = write_run(tmp_path / "run", 3, image=True, encoding=encoding)
    found = store([tmp_path / "run"], load_arrays(tmp_path / "run"), encoding, memory_limit)
    assert same(everything(found), expected(written))
    assert len(found) == 15
    assert (found.shape, found.dtype) == (written[0].steps[0].image.shape, written[0].steps[0].image.dtype)
    assert found.in_memory == (memory_limit == MEMORY)


@pytest.mark.parametrize("per_file", [1, 2, 5])
@pytest.mark.usefixtures("no_reader")
def test_rows_follow_from_the_offsets_of_the_arrays(tmp_path: Path, per_file: int) -> None:
    first = write_run(tmp_path / "first", 5, 3, image=True, per_file=per_file)
    second = write_run(tmp_path / "second", 2, 6, image=True, per_file=per_file)
    paths = [tmp_path / "first", tmp_path / "second"]
    arrays = load_arrays(paths)
    found = everything(store(paths, arrays))
    for number, episode in enumerate([*first, *second]):
        for step in episode.steps:
            assert same(found[arrays.offsets[number] + number + step.index], step.image)
        assert same(found[arrays.offsets[number + 1] + number], episode.final_image)


@pytest.mark.parametrize("per_file", [1, 3, 7])
@pytest.mark.usefixtures("no_reader")
def test_some_episodes_in_any_order_are_stored_alike(tmp_path: Path, per_file: int) -> None:
    written = write_run(tmp_path / "run", 7, image=True, per_file=per_file)
    arrays = load_arrays(tmp_path / "run", [5, 1, 2, 6])
    found = store([tmp_path / "run"], arrays)
    assert same(everything(found), expected([written[index] for index in arrays.episodes]))
    few = arrays.select(np.array([False, True, False, True]))
    assert same(everything(store([tmp_path / "run"], few)), expected([written[index] for index in few.episodes]))


@both_places
def test_rows_are_taken_in_any_order_and_more_than_once(tmp_path: Path, memory_limit: int) -> None:
    written = expected(write_run(tmp_path / "run", 3, image=True))
    found = store([tmp_path / "run"], load_arrays(tmp_path / "run"), memory_limit=memory_limit)
    for rows in ([], [4], [3, 4, 5, 4, 4], [14, 0, 1, 2, 13], list(range(14, -1, -1))):
        taken = found.take(np.array(rows, dtype=np.int64))
        assert same(taken, written[rows])
        taken[...] = 0  # a new array: the store does not change
    assert same(everything(found), written)
    for bad in (-1, 15):
        with pytest.raises(IndexError, match="15 pictures"):
            found.take(np.array([0, bad]))


def test_the_digest_is_that_of_all_processed_pictures_in_order(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run", 3, image=True)
    arrays = load_arrays(tmp_path / "run")
    stores = [store([tmp_path / "run"], arrays, memory_limit=limit) for limit in (MEMORY, NO_MEMORY)]
    stores.append(store_episode_pictures(written, as_it_is, (5, 4, 3), np.uint8, memory_limit=MEMORY))
    assert {each.digest for each in stores} == {hashlib.sha256(expected(written).tobytes()).hexdigest()}


@both_places
def test_pictures_are_processed_before_they_are_stored(tmp_path: Path, memory_limit: int) -> None:
    written = expected(write_run(tmp_path / "run", 2, image=True))
    found = store_pictures(
        [tmp_path / "run"],
        load_arrays(tmp_path / "run"),
        lambda picture: picture[1:3, :, :1].astype(np.float32) / 2,
        (2, 4, 1),
        np.float32,
        memory_limit=memory_limit,
    )
    assert same(everything(found), written[:, 1:3, :, :1].astype(np.float32) / 2)


def test_what_processing_makes_has_the_shape_and_type_that_was_promised(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 1, image=True)
    arrays = load_arrays(tmp_path / "run")
    for shape, dtype in (((5, 4, 1), np.uint8), ((5, 4, 3), np.float32)):
        with pytest.raises(ValueError, match="uint8 of shape"):
            store_pictures([tmp_path / "run"], arrays, as_it_is, shape, dtype, memory_limit=MEMORY)


@both_places
def test_episodes_in_memory_are_stored_as_their_arrays_lie(memory_limit: int) -> None:
    empty = Episode(1, 1, Mode.COLLECT, Outcome.ABORTED, [], np.empty(0))
    cut = replace(sample_episode(2, image=True), outcome=Outcome.RECOVERED, final_observation=np.empty(0))
    episodes = [sample_episode(0, image=True), empty, cut]
    found = store_episode_pictures(episodes, as_it_is, (5, 4, 3), np.uint8, memory_limit=memory_limit)
    arrays = episodes_to_arrays(episodes)
    assert len(found) == arrays.steps + len(arrays)
    assert same(everything(found), expected([episodes[0], cut]))


@pytest.mark.parametrize("per_file", [1, 4])
def test_of_a_recovered_episode_the_last_picture_that_was_seen_is_the_final_one(tmp_path: Path, per_file: int) -> None:
    run = tmp_path / "run"
    writer = RunWriter(run, {}, per_file, sync=False, reserve=0)
    writer.write_episode(sample_episode(0, image=True))
    for step in sample_episode(1, image=True).steps[:3]:
        writer.write_step(step)
    writer._release()
    for _ in range(2):  # as a crash has left it, then recovered
        arrays = load_arrays(run)
        assert np.diff(arrays.offsets).tolist() == [4, 2]
        assert same(everything(store([run], arrays)), expected(read_run(run)))
        RunWriter(run, {}, sync=False, reserve=0).close()


def test_a_bag_of_others_is_stored_too(tmp_path: Path) -> None:
    episodes = [sample_episode(index, image=True) for index in range(3)]
    write_with_rosbags(tmp_path / "run", episodes)
    assert same(everything(store([tmp_path / "run"], load_arrays(tmp_path / "run"))), expected(episodes))


@pytest.mark.parametrize("per_file", [1, 3])
def test_an_unusual_episode_among_the_others_keeps_its_place(tmp_path: Path, per_file: int) -> None:
    written = [sample_episode(index, image=True) for index in range(3)]
    with RunWriter(tmp_path / "run", {}, per_file, sync=False, reserve=0) as writer:
        writer.write_episode(written[0])
        nothing = Episode(1, 1, Mode.COLLECT, Outcome.ABORTED, [], np.empty(0), reason="it never answered")
        writer.write_episode(nothing)
        writer.write_episode(replace(written[2], final_observation=written[2].final_observation))
    arrays = load_arrays(tmp_path / "run")
    assert same(everything(store([tmp_path / "run"], arrays)), expected([written[0], written[2]]))


@pytest.mark.parametrize(("number", "words"), [(0, "episode 1, step 0: this step has no picture"), (2, "step 2")])
def test_a_missing_picture_is_named_with_run_episode_step_and_remedy(tmp_path: Path, number: int, words: str) -> None:
    episode = sample_episode(1, image=True)
    episode.steps[number].image = None
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        writer.write_episode(sample_episode(0, image=True))
        writer.write_episode(episode)
    with pytest.raises(UserError, match=rf"run_000001.*{words}.*sees\.augmentor"):
        store([tmp_path / "run"], load_arrays(tmp_path / "run"))


def test_a_missing_last_picture_is_named(tmp_path: Path) -> None:
    episode = replace(sample_episode(0, image=True), final_image=None)
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        writer.write_episode(episode)
    with pytest.raises(UserError, match="episode 0: there is no picture after its last step"):
        store([tmp_path / "run"], load_arrays(tmp_path / "run"))
    with pytest.raises(UserError, match="episode 0: there is no picture after its last step"):
        store_episode_pictures([episode], as_it_is, (5, 4, 3), np.uint8, memory_limit=MEMORY)


def test_a_run_that_has_changed_since_it_was_loaded_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "run", 2, 4, image=True)
    write_run(tmp_path / "b" / "run", 2, 5, image=True)
    with pytest.raises(UserError, match="5 steps to learn from, and 4 were loaded"):
        store([tmp_path / "b" / "run"], load_arrays(tmp_path / "a" / "run"))
    write_run(tmp_path / "c" / "run", 1, 4, image=True)
    with pytest.raises(UserError, match="not recorded"):
        store([tmp_path / "c" / "run"], load_arrays(tmp_path / "a" / "run"))


def test_a_damaged_picture_is_refused(tmp_path: Path) -> None:
    (episode,) = write_run(tmp_path / "run", 1, image=True)
    arrays = load_arrays(tmp_path / "run")
    path = tmp_path / "run" / "run_000000.mcap"
    pixels = episode.steps[1].image.tobytes()
    path.write_bytes(path.read_bytes().replace(pixels, bytes(len(pixels))))
    with pytest.raises(UserError, match="checksum"):
        store([tmp_path / "run"], arrays)


def test_too_small_a_disk_is_told_with_bytes_needed_and_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Status = namedtuple("Status", "f_bavail f_frsize")
    monkeypatch.setattr(os, "statvfs", lambda path: Status(2, 100))
    with pytest.raises(UserError, match=f"take 600 bytes and 200 are free in {tmp_path}"):
        PictureStore(10, (5, 4, 3), np.uint8, memory_limit=599, folder=tmp_path)
    assert PictureStore(10, (5, 4, 3), np.uint8, memory_limit=600, folder=tmp_path).in_memory


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="missing cannot hold pictures"):
        PictureStore(1, (5, 4, 3), np.uint8, memory_limit=0, folder=tmp_path / "missing")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_the_file_has_no_name_and_is_given_back_when_closed_or_collected(tmp_path: Path) -> None:
    gc.collect()
    before = open_files()
    closed = PictureStore(3, (5, 4, 3), np.uint8, memory_limit=0, folder=tmp_path)
    collected = PictureStore(3, (5, 4, 3), np.uint8, memory_limit=0, folder=tmp_path)
    assert open_files() == before + 2
    assert not list(tmp_path.iterdir())
    closed.close()
    closed.close()
    del collected
    gc.collect()
    assert open_files() == before


@both_places
def test_nothing_is_taken_from_a_closed_store(memory_limit: int) -> None:
    episode = sample_episode(0, image=True)
    found = store_episode_pictures([episode], as_it_is, (5, 4, 3), np.uint8, memory_limit=memory_limit)
    found.close()
    with pytest.raises(ValueError, match="closed"):
        found.take(np.array([0]))


def test_files_of_a_run_are_closed_again(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 6, image=True)
    arrays = load_arrays(tmp_path / "run")
    before = open_files()
    found = store([tmp_path / "run"], arrays)
    assert open_files() == before
    assert len(found) == 30
