"""Nothing finished is ever lost: crashes at every system call, kills at random moments, full and read-only disks."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bag_samples import sample_episode, write_run
from mcap.exceptions import EndOfFile
from mcap.records import Message
from mcap.stream_reader import StreamReader
from rosbags.rosbag2 import Reader

from lift_ros.bags import BagError, DiskFull, RunReader, RunWriter, load_arrays, read_run
from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.collection.records import COMPRESSIONS, Outcome, same
from lift_ros.seeds import episode_seed

HERE = Path(__file__).parent
CALLS = ("write", "writev", "pwrite", "rename", "fsync", "fdatasync", "unlink", "open")


class Crash(BaseException):
    """The process dies here."""


@contextmanager
def dying_at(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[list[int]]:
    """Let the system call with this number and all after it fail like a dead process would."""
    made = [0]

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            made[0] += 1
            if made[0] > number:
                raise Crash
            return function(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, wrap(getattr(os, name)))
        yield made


def record_two(run: Path, per_file: int, compression: str) -> None:
    writer = RunWriter(run, {"seed": 3}, per_file, reserve=0, compression=compression)
    try:
        for index in range(writer.next_episode, writer.next_episode + 2):
            writer.write_episode(sample_episode(index, 2))
        writer.close()
    except Crash:
        writer._release()  # what the kernel does for a dead process
        raise


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("per_file", [1, 2, 3])
def test_a_crash_at_any_system_call_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_file: int, compression: str
) -> None:
    number = crashes = 0
    while True:
        run = tmp_path / f"run{number}"
        write_run(run, 1, 2)
        try:
            with dying_at(monkeypatch, number) as made:
                record_two(run, per_file, compression)
        except Crash:
            crashes += 1
        else:
            assert made[0] > 10
            break
        episodes = read_run(run)
        assert same(episodes[0], sample_episode(0, 2))
        for episode in episodes[1:]:
            original = sample_episode(episode.index, 2)
            if episode.outcome == Outcome.RECOVERED:
                assert same(episode.steps, original.steps[: len(episode.steps)])
                assert episode is episodes[-1]
            else:
                assert same(episode, original)
        names = json.loads((run / "metadata.yaml").read_text())["rosbag2_bagfile_information"]["relative_file_paths"]
        assert all((run / name).exists() for name in names)
        record_two(run, per_file, COMPRESSIONS[number % 2])
        onward = read_run(run)
        assert [episode.index for episode in onward] == list(range(len(episodes) + 2))
        assert same(onward[: len(episodes)], episodes)
        assert same(onward[-2:], [sample_episode(len(episodes), 2), sample_episode(len(episodes) + 1, 2)])
        assert not list(run.glob("*.active"))
        assert not list(run.glob(".*"))
        number += 1
    assert crashes > 10


def test_foreign_readers_open_the_run_from_the_first_moment(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", {}, reserve=0) as writer:
        with Reader(tmp_path / "run") as reader:
            assert reader.message_count == 0
        writer.write_step(sample_episode(0).steps[0])
        with Reader(tmp_path / "run") as reader:
            assert list(reader.messages()) == []


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("per_file", [1, 3])
def test_an_unfinished_episode_is_recovered_and_recording_goes_on(
    tmp_path: Path, per_file: int, compression: str
) -> None:
    run = tmp_path / "run"
    writer = RunWriter(run, {"seed": 7}, per_file, sync=False, reserve=0, compression=compression)
    writer.write_episode(sample_episode(0))
    for step in sample_episode(1).steps[:3]:
        writer.write_step(step)
    writer._release()
    for _ in range(2):  # reading repairs nothing
        first, cut = read_run(run)
        assert same(first, sample_episode(0))
        assert cut.outcome == Outcome.RECOVERED
        assert cut.seed == episode_seed(7, 1)
        assert same(cut.steps, sample_episode(1).steps[:3])
        assert cut.final_observation.size == 0
        assert cut.reason
    with RunWriter(run, {"seed": 7}, per_file, sync=False, reserve=0, compression=compression) as writer:
        assert writer.next_episode == 2
        writer.write_episode(sample_episode(2))
    assert same(read_run(run), [first, cut, sample_episode(2)])
    with Reader(run) as reader:
        assert reader.message_count == 5 + 4 + 5


def test_a_journal_cut_anywhere_is_recovered_up_to_its_last_whole_step(tmp_path: Path) -> None:
    run = tmp_path / "run"
    writer = RunWriter(run, {}, sync=False, reserve=0)
    sizes = [0]
    (journal,) = [run / "run_000000.mcap.active"]
    for step in sample_episode(0).steps:
        writer.write_step(step)
        sizes.append(journal.stat().st_size)
    writer._release()
    content = journal.read_bytes()
    for size in range(0, len(content) + 1, 7):
        journal.write_bytes(content[:size])
        whole = sum(size >= end for end in sizes[1:])
        episodes = read_run(run)
        if whole:
            assert same(episodes[0].steps, sample_episode(0).steps[:whole])
        else:
            assert episodes == []


def test_other_topics_alone_are_recovered_too(tmp_path: Path) -> None:
    run = tmp_path / "run"
    writer = RunWriter(run, {}, sync=False, reserve=0)
    writer.write_other(RecordedTopic("/words", "std_msgs/msg/String", "string data\n"), b"\0\1\0\0\1\0\0\0\0", 5)
    writer._release()
    assert read_run(run) == []
    with RunWriter(run, {}, sync=False, reserve=0) as writer:
        assert writer.next_episode == 0
        writer.write_episode(sample_episode(0))
    with Reader(run) as reader:
        assert {c.topic: c.msgcount for c in reader.connections} == {"/lift/step": 4, "/lift/episode": 1, "/words": 1}
    assert same(read_run(run), [sample_episode(0)])


def test_an_error_in_the_middle_completes_what_was_written(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(ZeroDivisionError), RunWriter(run, {}, 5, sync=False, reserve=0) as writer:
        writer.write_episode(sample_episode(0))
        writer.write_step(sample_episode(1).steps[0])
        raise ZeroDivisionError
    assert [episode.outcome for episode in read_run(run)] == [Outcome.REACHED, Outcome.RECOVERED]
    with Reader(run) as reader:
        assert reader.message_count == 5 + 2


def test_closing_keeps_an_unfinished_episode_as_recovered(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        writer.write_step(sample_episode(0).steps[0])
    (episode,) = read_run(tmp_path / "run")
    assert episode.outcome == Outcome.RECOVERED
    assert same(episode.steps, sample_episode(0).steps[:1])


def test_two_recorders_do_not_share_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lift_ros.bags.writer._LOCK_PATIENCE", 0.05)
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        with pytest.raises(BagError, match="another process records"):
            RunWriter(tmp_path / "run", {}, sync=False, reserve=0)
        writer.write_episode(sample_episode(0))
    assert len(read_run(tmp_path / "run")) == 1


@pytest.mark.parametrize("per_file", [1, 3])
def test_a_reader_beside_a_recorder_sees_finished_episodes_only(tmp_path: Path, per_file: int) -> None:
    with RunWriter(tmp_path / "run", {}, per_file, sync=False, reserve=0) as writer:
        writer.write_episode(sample_episode(0))
        writer.write_step(sample_episode(1).steps[0])
        reader = RunReader(tmp_path / "run")
        assert reader.under_way
        assert same(list(reader), [sample_episode(0)])


def _read_again_and_again(run: Path, stop: Any, seen: Any) -> None:
    while not stop.is_set():
        episodes = read_run(run)
        assert all(episode.outcome == Outcome.REACHED for episode in episodes)
    seen.value = len(read_run(run))


def test_reading_while_recording_never_fails(tmp_path: Path) -> None:
    run = tmp_path / "run"
    context = multiprocessing.get_context("spawn")
    stop, seen = context.Event(), context.Value("i", 0)
    with RunWriter(run, {}, sync=False, reserve=0) as writer:
        process = context.Process(target=_read_again_and_again, args=(run, stop, seen))
        process.start()
        try:
            for index in range(60):
                writer.write_episode(sample_episode(index, 2))
            stop.set()
        finally:
            stop.set()
            process.join(120)
            if process.is_alive():
                process.kill()
    assert process.exitcode == 0
    assert seen.value == 60


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(HERE), str(HERE.parents[1])])
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def run_script(*command: str) -> dict[str, Any]:
    result = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=170, check=False)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout.splitlines()[-1]))


def test_killed_at_hundreds_of_random_moments(tmp_path: Path) -> None:
    report = run_script(sys.executable, str(HERE / "kill_writer.py"), str(tmp_path), "200", "1")
    assert report["kills"] == 200
    assert report["episodes"] > 0


def mounting() -> list[str]:
    """Return the command that runs another in a mount namespace of its own, or skip."""
    command = ["unshare", "-rm"]
    if shutil.which("unshare") is None:
        pytest.skip("there is no `unshare` to mount a disk of our own")
    tried = subprocess.run([*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"this machine does not let us mount a disk: {tried.stderr.decode().strip()}")
    return [*command, sys.executable]


@pytest.mark.parametrize("per_file", [1, 4])
def test_a_full_disk_stops_recording_before_anything_breaks(tmp_path: Path, per_file: int) -> None:
    report = run_script(*mounting(), str(HERE / "small_disk.py"), str(tmp_path), "40000", str(per_file))
    assert "40000 are kept in reserve" in report["full"]
    assert "Free space" in report["full"]
    assert report["finished"] > 3
    assert report["whole"]
    assert report["readable"]
    # The reserve is enough to complete the run, so others see all of it too.
    assert report["seen_by_rosbags"] == report["episodes"]
    assert report["goes_on"]


@pytest.mark.parametrize("per_file", [1, 4])
def test_a_disk_that_is_full_to_the_last_byte_loses_nothing(tmp_path: Path, per_file: int) -> None:
    report = run_script(*mounting(), str(HERE / "small_disk.py"), str(tmp_path), "0", str(per_file))
    assert report["full"]
    assert report["finished"] > 3
    assert report["episodes"] >= report["finished"]
    assert report["whole"]
    assert report["readable"]
    assert report["onward"] == report["episodes"]
    assert report["goes_on"]


def test_a_read_only_disk_is_refused_and_read(tmp_path: Path) -> None:
    report = run_script(*mounting(), str(HERE / "read_only_disk.py"), str(tmp_path))
    assert "Read-only file system" in report["new"]
    assert "Read-only file system" in report["known"]
    assert report["outcomes"] == ["REACHED", "RECOVERED"]


@pytest.mark.parametrize("per_file", [1, 3])
def test_no_space_at_any_write_leaves_a_run_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_file: int
) -> None:
    """The same without a disk: each write in turn finds no space, some after writing a part."""
    writev, write, pwrite = os.writev, os.write, os.pwrite
    for number in range(60):
        run = tmp_path / f"run{number}"
        left = number

        def take_space() -> bool:
            """Return whether there is space for all of it."""
            nonlocal left
            if left == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            left -= 1
            return left > 0

        def full_write(descriptor: int, data: bytes) -> int:
            take_space()
            return write(descriptor, data)

        def full_pwrite(descriptor: int, data: bytes, offset: int) -> int:
            take_space()
            return pwrite(descriptor, data, offset)

        def full_writev(descriptor: int, parts: tuple[bytes, ...]) -> int:
            if take_space():
                return writev(descriptor, parts)
            data = b"".join(parts)
            return write(descriptor, data[: len(data) // 2])

        writer = RunWriter(run, {}, per_file, sync=False, reserve=0)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full_write)
            patch.setattr(os, "pwrite", full_pwrite)
            patch.setattr(os, "writev", full_writev)
            with pytest.raises(DiskFull, match="full"):
                for index in range(100):
                    writer.write_episode(sample_episode(index, 3))
        # Space is back: the same writer goes on with the step that found none.
        episode = sample_episode(writer.next_episode, 3)
        writer.finish_episode(episode)
        writer.close()
        assert same(read_run(run), [sample_episode(index, 3) for index in range(episode.index + 1)])


def crashed_run(run: Path, per_file: int = 5) -> Path:
    """Leave two finished episodes and three steps of another in a journal, and return it."""
    writer = RunWriter(run, {}, per_file, sync=False, reserve=0)
    for index in range(2):
        writer.write_episode(sample_episode(index))
    for step in sample_episode(2).steps[:3]:
        writer.write_step(step)
    writer._release()
    (journal,) = run.glob("*.active")
    return journal


def test_a_journal_is_the_beginning_of_an_mcap_file_at_any_moment(tmp_path: Path) -> None:
    journal = crashed_run(tmp_path / "run")
    content = journal.read_bytes()
    with pytest.raises(EndOfFile):
        list(StreamReader(io.BytesIO(content)).records)
    records = []
    with contextlib.suppress(EndOfFile):
        for record in StreamReader(io.BytesIO(content)).records:
            records.append(record)
    assert [type(record) for record in records].count(Message) == 5 + 5 + 3


def test_a_torn_record_is_cut_off_and_nothing_is_kept_aside(tmp_path: Path) -> None:
    journal = crashed_run(tmp_path / "run")
    journal.write_bytes(journal.read_bytes()[:-20])
    RunWriter(tmp_path / "run", {}, sync=False, reserve=0).close()
    assert [len(episode.steps) for episode in read_run(tmp_path / "run")] == [4, 4, 2]
    assert not list((tmp_path / "run").glob("*.damaged"))


def test_a_journal_with_a_hole_is_kept_aside(tmp_path: Path) -> None:
    """A power cut can leave zeros where a page never reached the disk."""
    journal = crashed_run(tmp_path / "run")
    content = bytearray(journal.read_bytes())
    place = content.index(sample_episode(1).steps[2].observation.tobytes()) - 50
    content[place : place + 60] = bytes(60)
    journal.write_bytes(content)
    RunWriter(tmp_path / "run", {}, sync=False, reserve=0).close()
    first, second = read_run(tmp_path / "run")
    assert same(first, sample_episode(0))
    assert second.outcome == Outcome.RECOVERED
    assert same(second.steps, sample_episode(1).steps[:2])
    assert (tmp_path / "run" / "run_000000.mcap.damaged").read_bytes() == content


def test_a_head_and_an_index_that_a_power_cut_has_spoiled_are_written_anew(tmp_path: Path) -> None:
    journal = crashed_run(tmp_path / "run")
    content = bytearray(journal.read_bytes())
    index = content.index(b"\7", content.index(sample_episode(0).context.tobytes()))
    head = content.index(b"\6")
    content[head + 9 : head + 49] = bytes(40)
    content[index + 15 : index + 31] = bytes(16)
    journal.write_bytes(content)
    RunWriter(tmp_path / "run", {}, sync=False, reserve=0).close()
    assert same(read_run(tmp_path / "run")[:2], [sample_episode(0), sample_episode(1)])
    assert load_arrays(tmp_path / "run").episodes.tolist() == [0, 1, 2]


def test_recovering_is_interrupted_at_any_system_call_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 0
    while True:
        run = tmp_path / f"run{number}"
        crashed_run(run)
        expected = read_run(run)
        try:
            with dying_at(monkeypatch, number):
                RunWriter(run, {}, reserve=0).close()
        except Crash:
            assert same(read_run(run), expected)
            RunWriter(run, {}, reserve=0).close()
        else:
            break
        assert same(read_run(run), expected)
        assert not list(run.glob("*.active*")) + list(run.glob("*.damaged"))
        number += 1
    assert number > 5
