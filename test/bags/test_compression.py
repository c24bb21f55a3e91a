"""Compressed runs hold bit for bit what others hold, for every reader, and are as safe while they are recorded."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_samples import sample_episode, write_run
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader
from test_arrays import agree
from test_mutilated_bags import DAMAGES, Damage, mutilate

from lift_ros.bags import (
    DiskFull,
    RunReader,
    RunWriter,
    chunks,
    episodes_to_arrays,
    load_arrays,
    packing,
    read_run,
    store_pictures,
)
from lift_ros.bags.chunks import list_episodes
from lift_ros.bags.mcap_records import RecordedTopic, file_bytes
from lift_ros.collection.records import COMPRESSIONS, Episode, Outcome, same
from lift_ros.errors import UserError

WORDS = RecordedTopic("/words", "std_msgs/msg/String", "string data\n")
HELLO = b"\0\1\0\0\6\0\0\0hello\0"
per_files = pytest.mark.parametrize("per_file", [1, 3])


def plain_episode(index: int, steps: int = 20) -> Episode:
    """Return an episode with pictures that can be compressed."""
    episode = sample_episode(index, steps, image=True)
    for step in episode.steps:
        step.image = np.full((32, 32, 3), step.index, np.uint8)
    episode.final_image = np.zeros((32, 32, 3), np.uint8)
    return episode


def size_of(run: Path) -> int:
    return sum(path.stat().st_size for path in run.glob("*.mcap"))


@pytest.fixture
def no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test fail where an episode is not loaded the fast way."""

    def refuse(self: RunReader, index: int) -> Episode:
        raise AssertionError(f"episode {index} was read the slow way")

    monkeypatch.setattr(RunReader, "episode", refuse)


@per_files
def test_the_strict_reader_returns_what_was_written(tmp_path: Path, per_file: int) -> None:
    written = write_run(tmp_path / "run", 5, per_file=per_file, image=True, compression="zstd")
    assert same(read_run(tmp_path / "run"), written)
    assert RunReader(tmp_path / "run").facts == {"seed": 7, "scenario": "sample"}


@per_files
@pytest.mark.parametrize("workers", [None, 1, 3])
@pytest.mark.usefixtures("no_reader")
def test_the_fast_loader_returns_what_was_written(tmp_path: Path, per_file: int, workers: int | None) -> None:
    written = write_run(tmp_path / "run", 7, 5, per_file=per_file, image=True, compression="zstd")
    arrays = load_arrays(tmp_path / "run", workers=workers, images=True)
    assert agree(arrays, episodes_to_arrays(written, images=True))
    some = load_arrays(tmp_path / "run", [1, 4, 5], images=True)
    assert agree(some, episodes_to_arrays([written[1], written[4], written[5]], images=True))


@per_files
@pytest.mark.usefixtures("no_reader")
def test_a_store_of_pictures_is_the_same_with_and_without_compression(tmp_path: Path, per_file: int) -> None:
    digests = set()
    for compression in COMPRESSIONS:
        run = tmp_path / compression / "run"
        write_run(run, 5, per_file=per_file, image=True, compression=compression)
        arrays = load_arrays(run, [4, 1, 2])
        store = store_pictures([run], arrays, lambda picture: picture, (5, 4, 3), np.uint8, memory_limit=10**6)
        digests.add(store.digest)
    assert len(digests) == 1


def test_opening_a_run_unpacks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "run", 5, per_file=3, compression="zstd")

    def refuse(*_: object) -> None:
        raise AssertionError("a chunk was unpacked")

    monkeypatch.setattr(chunks, "unpacked", refuse)
    assert RunReader(tmp_path / "run").episode_indices == [0, 1, 2, 3, 4]


def test_a_file_under_another_number_is_noticed_when_it_is_read(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 1, compression="zstd")
    (tmp_path / "run" / "metadata.yaml").unlink()
    (tmp_path / "run" / "run_000000.mcap").rename(tmp_path / "run" / "run_000007.mcap")
    with pytest.raises(UserError, match="episode 7: it is missing"):
        read_run(tmp_path / "run")
    with pytest.raises(UserError, match="episode 7: it is missing"):
        load_arrays(tmp_path / "run")


@per_files
def test_rosbags_reads_it(tmp_path: Path, per_file: int) -> None:
    written = write_run(tmp_path / "run", 4, per_file=per_file, image=True, compression="zstd")
    with AnyReader([tmp_path / "run"]) as reader:
        found = [reader.deserialize(data, connection.msgtype) for connection, _, data in reader.messages()]
    steps = [message for message in found if hasattr(message, "image")]
    for message, step in zip(steps, [step for episode in written for step in episode.steps], strict=True):
        assert same(message.observation, step.observation)
        assert same(message.image.data.reshape(5, 4, 3), step.image)
    with Reader(tmp_path / "run") as plain:
        assert plain.message_count == 4 * 5


@per_files
def test_mcap_reads_it_and_its_index_leads_to_every_message(tmp_path: Path, per_file: int) -> None:
    written = write_run(tmp_path / "run", 3, per_file=per_file, image=True, compression="zstd")
    found: list[Any] = []
    for path in sorted((tmp_path / "run").glob("*.mcap")):
        with path.open("rb") as stream:
            reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
            summary = reader.get_summary()
            assert summary is not None and summary.statistics is not None
            assert {index.compression for index in summary.chunk_indexes} == {"zstd"}
            assert summary.statistics.message_count == 5 * len(summary.chunk_indexes)
            assert [metadata.name for metadata in reader.iter_metadata()] == ["lift_ros", "rosbag2"]
            found += [message for _, _, _, message in reader.iter_decoded_messages(topics=["/lift/step"])]
            content = path.read_bytes()
            for chunk in summary.chunk_indexes:
                assert content[chunk.chunk_start_offset] == 6
                assert all(content[offset] == 7 for offset in chunk.message_index_offsets.values())
    assert [list(message.action) for message in found] == [
        step.action.tolist() for episode in written for step in episode.steps
    ]


def test_metadata_says_nothing_of_it_as_rosbag2_does_for_chunks(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 1, compression="zstd")
    information = json.loads((tmp_path / "run" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert (information["compression_format"], information["compression_mode"]) == ("", "")


@per_files
def test_finished_files_are_smaller_and_nothing_else_is_left(tmp_path: Path, per_file: int) -> None:
    for compression in COMPRESSIONS:
        with RunWriter(tmp_path / compression, {}, per_file, reserve=0, compression=compression) as writer:
            for index in range(3):
                writer.write_episode(plain_episode(index))
    assert 5 * size_of(tmp_path / "zstd") < size_of(tmp_path / "none")
    assert same(read_run(tmp_path / "zstd"), [plain_episode(index) for index in range(3)])
    names = sorted(path.name for path in (tmp_path / "zstd").iterdir())
    assert names == ["metadata.yaml", *(f"zstd_{index:06d}.mcap" for index in range(0, 3, per_file))]


def test_an_episode_under_way_is_not_compressed(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run", {}, 3, sync=False, reserve=0, compression="zstd")
    writer.write_episode(plain_episode(0))
    for step in plain_episode(1).steps:
        writer.write_step(step)
    journal = (tmp_path / "run" / "run_000000.mcap.active").read_bytes()
    for step in [*plain_episode(0).steps, *plain_episode(1).steps]:
        assert step.image is not None and journal.count(step.image.tobytes()) >= 2
    writer._release()
    first, cut = read_run(tmp_path / "run")
    assert same(first, plain_episode(0))
    assert same(cut.steps, plain_episode(1).steps)


@pytest.mark.parametrize("then", COMPRESSIONS)
@per_files
def test_what_a_crash_has_left_is_completed_with_and_without(tmp_path: Path, per_file: int, then: str) -> None:
    run = tmp_path / "run"
    writer = RunWriter(run, {}, per_file, sync=False, reserve=0, compression="zstd")
    writer.write_episode(plain_episode(0))
    for step in plain_episode(1).steps[:5]:
        writer.write_step(step)
    writer._release()
    before = read_run(run)
    with RunWriter(run, {}, per_file, sync=False, reserve=0, compression=then) as writer:
        writer.write_episode(plain_episode(2))
    assert same(read_run(run), [*before, plain_episode(2)])
    assert before[1].outcome == Outcome.RECOVERED
    assert not list(run.glob(".*")) and not list(run.glob("*.active"))


def test_a_run_may_be_compressed_in_part(tmp_path: Path) -> None:
    written = []
    for compression in ("none", "zstd", "none"):
        with RunWriter(tmp_path / "run", {}, 2, sync=False, reserve=0, compression=compression) as writer:
            for _ in range(2):
                written.append(plain_episode(writer.next_episode, 3))
                writer.write_episode(written[-1])
    assert same(read_run(tmp_path / "run"), written)
    assert agree(load_arrays(tmp_path / "run", images=True), episodes_to_arrays(written, images=True))


def test_without_metadata_it_is_read_and_taken_up_all_the_same(tmp_path: Path) -> None:
    written = write_run(tmp_path / "run", 4, per_file=2, image=True, compression="zstd")
    (tmp_path / "run" / "metadata.yaml").unlink()
    assert same(read_run(tmp_path / "run"), written)
    content = file_bytes(tmp_path / "run" / "run_000002.mcap", whole=True)
    assert list_episodes(content) == list_episodes(content, 2) == [2, 3]
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0, compression="zstd") as writer:
        assert writer.next_episode == 4
    with Reader(tmp_path / "run") as reader:
        assert reader.message_count == 4 * 5


def test_other_topics_ride_along_and_a_tail_is_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with RunWriter(run, {}, sync=False, reserve=0, compression="zstd") as writer:
        writer.write_other(WORDS, HELLO, 5)
        writer.write_episode(plain_episode(0))
        writer.write_other(WORDS, HELLO, 7)
    assert sorted(path.name for path in run.iterdir()) == ["metadata.yaml", "run_000000.mcap", "run_000001_tail0.mcap"]
    with AnyReader([run]) as reader:
        assert sum(connection.topic == "/words" for connection, _, _ in reader.messages()) == 2
    assert agree(load_arrays(run), episodes_to_arrays([plain_episode(0)]))


@pytest.mark.parametrize("damage", DAMAGES)
@per_files
def test_damage_is_noticed(tmp_path: Path, damage: Damage, per_file: int) -> None:
    rng = np.random.default_rng(per_file)
    for number in range(15):
        run = tmp_path / str(number) / "run"
        expected = episodes_to_arrays(
            write_run(run, 3, 3, per_file=per_file, image=True, compression="zstd"), images=True
        )
        mutilate(run, rng, damage)
        for load in (load_arrays, lambda run, images: episodes_to_arrays(read_run(run), images=images)):
            try:
                found = load(run, images=True)
            except UserError:
                continue
            assert agree(found, expected)


def test_a_disk_that_fills_up_while_packing_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RunWriter(tmp_path / "run", {}, 3, sync=False, reserve=0, compression="zstd")
    original = packing.PackedCopy._append

    def full(self: packing.PackedCopy, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(packing.PackedCopy, "_append", full)
    with pytest.raises(DiskFull):
        writer.write_episode(plain_episode(0))
    assert same(RunReader(tmp_path / "run").episode(0), plain_episode(0))
    monkeypatch.setattr(packing.PackedCopy, "_append", original)
    writer.write_episode(plain_episode(1))
    writer.close()
    assert same(read_run(tmp_path / "run"), [plain_episode(0), plain_episode(1)])
    with Reader(tmp_path / "run") as reader:
        assert reader.message_count == 2 * 21


def test_room_for_the_compressed_copy_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = namedtuple("status", "f_bavail f_frsize")
    monkeypatch.setattr(os, "statvfs", lambda path: status(50, 1000))
    for compression, steps in (("none", {20}), ("zstd", range(1, 8))):  # of 3 kB and more
        run = tmp_path / compression
        writer = RunWriter(run, {}, 9, sync=False, reserve=24_000, compression=compression)
        written = 0
        with contextlib.suppress(DiskFull):
            for step in plain_episode(0).steps:
                writer.write_step(step)
                written += 1
        assert written in steps
        writer._release()


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="compression is 'lz5'"):
        RunWriter(tmp_path / "run", {}, compression="lz5")
    assert not (tmp_path / "run").exists()


def test_a_chunk_that_claims_another_size_takes_no_memory_and_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", 1, image=True, compression="zstd")
    path = tmp_path / "run" / "run_000000.mcap"
    content = bytearray(path.read_bytes())
    place = content.index(b"\4\0\0\0zstd") - 12  # its size unpacked
    content[place : place + 8] = (2**31).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(UserError, match="other than the 2147483648 bytes"):
        read_run(tmp_path / "run")
    with pytest.raises(UserError, match="other than the 2147483648 bytes"):
        load_arrays(tmp_path / "run")
