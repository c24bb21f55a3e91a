"""Damage to a journal never becomes a step: each message is followed by the checksum of its chunk so far."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from bag_samples import sample_episode
from mcap.records import Message
from mcap.stream_reader import StreamReader, breakup_chunk
from rosbags.rosbag2 import Reader

from benchmark.attacks.journals import DAMAGES, attack
from lift_ros.bags import BagError, RunWriter, load_arrays, read_run
from lift_ros.bags.mcap_records import BEGINS_CHUNK, CHECKSUM, START, START_UNCHECKED, journal_records
from lift_ros.collection.records import Outcome, same

STEPS = 12


def journal_of(run: Path) -> Path:
    """Leave an episode without an end, as a kill does."""
    writer = RunWriter(run, {"seed": 1}, sync=False, reserve=0)
    for step in sample_episode(0, STEPS).steps:
        writer.write_step(step)
    writer._release()
    (journal,) = run.glob("*.active")
    return journal


def test_a_hole_at_any_place_never_becomes_a_step(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "run")
    original = journal.read_bytes()
    first = original.index(sample_episode(0, STEPS).steps[0].observation.tobytes())
    kept = set()
    for place in range(first, len(original), 97):
        journal.write_bytes(original[:place] + bytes(len(original[place : place + 64])) + original[place + 64 :])
        episodes = read_run(tmp_path / "run")
        steps = episodes[0].steps if episodes else []
        assert same(steps, sample_episode(0, STEPS).steps[: len(steps)])
        kept.add(len(steps))
    assert kept == set(range(STEPS)), "what lies before the hole is kept"


def test_recovery_keeps_nothing_untrue(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "run")
    content = bytearray(journal.read_bytes())
    place = content.index(sample_episode(0, STEPS).steps[5].action.tobytes())
    content[place : place + 16] = bytes(16)  # zeros are a valid action
    journal.write_bytes(content)
    RunWriter(tmp_path / "run", {"seed": 1}, sync=False, reserve=0).close()
    (episode,) = read_run(tmp_path / "run")
    assert episode.outcome == Outcome.RECOVERED
    assert same(episode.steps, sample_episode(0, STEPS).steps[:5])
    assert load_arrays(tmp_path / "run").steps == 4
    assert list((tmp_path / "run").glob("*.damaged"))


def test_a_checksum_half_written_is_no_damage(tmp_path: Path) -> None:
    journal = journal_of(tmp_path / "run")
    journal.write_bytes(journal.read_bytes()[:-5])
    RunWriter(tmp_path / "run", {"seed": 1}, sync=False, reserve=0).close()
    (episode,) = read_run(tmp_path / "run")
    assert len(episode.steps) == STEPS - 1
    assert not list((tmp_path / "run").glob("*.damaged"))


@pytest.mark.parametrize("length", [*range(0, 40, 4), *range(41, 60), 255])
def test_a_chunk_whose_head_has_another_length_is_cut_off(tmp_path: Path, length: int) -> None:
    journal = journal_of(tmp_path / "run")
    content = bytearray(journal.read_bytes())
    place = next(start for opcode, start, _ in journal_records(memoryview(bytes(content))) if opcode in BEGINS_CHUNK)
    assert content[place + 1] not in (length, 0)
    content[place + 1] = length
    journal.write_bytes(content)
    RunWriter(tmp_path / "run", {"seed": 1}, sync=False, reserve=0).close()
    assert read_run(tmp_path / "run") == []
    assert list((tmp_path / "run").glob("*.damaged"))


def test_no_damage_makes_a_journal_one_without_checksums(tmp_path: Path) -> None:
    """What begins in any other way than those of before 0.2.0 needs them."""
    assert len(START) != len(START_UNCHECKED)
    journal = journal_of(tmp_path / "run")
    content = bytearray(journal.read_bytes())
    content[20:24] = bytes(4)  # in the header
    place = content.index(sample_episode(0, STEPS).steps[5].action.tobytes())
    content[place : place + 16] = bytes(16)
    journal.write_bytes(content)
    assert [len(episode.steps) for episode in read_run(tmp_path / "run")] in ([], [5])


def test_other_readers_do_not_mind_the_checksums(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", {}, sync=False, reserve=0) as writer:
        writer.write_episode(sample_episode(0))
    (path,) = (tmp_path / "run").glob("*.mcap")
    content = path.read_bytes()
    assert content.count(CHECKSUM.to_bytes(1, "little") + (4).to_bytes(8, "little")) == 5
    reader = StreamReader(io.BytesIO(content), emit_chunks=True, validate_crcs=True)
    chunks = [record for record in reader.records if type(record).__name__ == "Chunk"]
    inside = breakup_chunk(chunks[0], validate_crc=True)  # type: ignore[arg-type]
    assert sum(isinstance(record, Message) for record in inside) == 5
    with Reader(tmp_path / "run") as plain:
        assert len(list(plain.messages())) == 5


def test_the_attack_in_small() -> None:
    result = attack(4 * len(DAMAGES), 7)
    assert result["untrue"] == 0
    assert result["recovered true"] > 0
    assert result["refused"] > 0


def test_sizes_do_not_change_within_a_run(tmp_path: Path) -> None:
    """The reader would refuse them, too."""
    other = sample_episode(1)
    for step in other.steps:
        step.action = step.action[:1]
    for reopen in (False, True):
        run = tmp_path / str(reopen)
        writer = RunWriter(run, {}, sync=False, reserve=0)
        writer.write_episode(sample_episode(0))
        if reopen:
            writer.close()
            writer = RunWriter(run, {}, sync=False, reserve=0)
        with pytest.raises(BagError, match=r"episode 1, step 0: it has .*action=1.*another run"):
            writer.write_episode(other)
        writer.write_episode(sample_episode(1))
        writer.close()
        assert same(read_run(run), [sample_episode(0), sample_episode(1)])
