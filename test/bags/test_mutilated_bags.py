"""Random damage to a run ends in an error a user can read or in the right data, never in anything else."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bag_samples import sample_episode, write_run
from rosbags_writer import write_with_rosbags

from lift_ros.bags import RunReader, RunWriter, read_run
from lift_ros.collection.records import Outcome, same
from lift_ros.errors import UserError

Damage = Callable[[bytearray, np.random.Generator], None]


def flip(content: bytearray, rng: np.random.Generator) -> None:
    for _ in range(int(rng.integers(1, 4))):
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))


def truncate(content: bytearray, rng: np.random.Generator) -> None:
    del content[int(rng.integers(len(content))) :]


def cut_out(content: bytearray, rng: np.random.Generator) -> None:
    start = int(rng.integers(len(content)))
    del content[start : start + int(rng.integers(1, 200))]


def zero(content: bytearray, rng: np.random.Generator) -> None:
    start = int(rng.integers(len(content)))
    end = min(len(content), start + int(rng.integers(1, 600)))
    content[start:end] = bytes(end - start)


def claim_much(content: bytearray, rng: np.random.Generator) -> None:
    """Put an enormous number somewhere, at best into a length."""
    size = int(rng.choice([4, 8]))
    value = int(rng.choice([2**31, 2**32 - 1, 2**20])) if size == 4 else int(rng.choice([2**40, 2**62]))
    start = int(rng.integers(max(1, len(content) - size)))
    content[start : start + size] = struct.pack("<I" if size == 4 else "<Q", value)


def repeat(content: bytearray, rng: np.random.Generator) -> None:
    start = int(rng.integers(len(content)))
    piece = content[start : start + int(rng.integers(1, 400))]
    content[start:start] = piece


DAMAGES: list[Damage] = [flip, truncate, cut_out, zero, claim_much, repeat]


def mutilate(directory: Path, rng: np.random.Generator, damage: Damage) -> None:
    files = sorted(path for path in directory.iterdir() if path.stat().st_size)
    path = files[int(rng.integers(len(files)))]
    content = bytearray(path.read_bytes())
    damage(content, rng)
    path.write_bytes(content)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("per_file", [1, 3])
def test_damage_is_noticed(tmp_path: Path, damage: Damage, per_file: int) -> None:
    written = write_run(tmp_path / "run", 3, 3, per_file=per_file)
    rng = np.random.default_rng(per_file)
    noticed = 0
    for number in range(30):
        copy = tmp_path / str(number) / "run"
        shutil.copytree(tmp_path / "run", copy)
        mutilate(copy, rng, damage)
        try:
            episodes = read_run(copy)
        except UserError:
            noticed += 1
        else:
            assert same(episodes, written)
        try:
            reader = RunReader(copy, skip_bad=True)
            kept = list(reader)
        except UserError:
            continue
        assert all(same(episode, written[episode.index]) for episode in kept)
        assert len(kept) == 3 or reader.left_out
    assert noticed > 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_journal_never_breaks_the_reader(tmp_path: Path, damage: Damage) -> None:
    """Finished files stay readable beside it, and what is shown of it is true."""
    writer = RunWriter(tmp_path / "run", {}, sync=False, reserve=0)
    writer.write_episode(sample_episode(0))
    for step in sample_episode(1).steps:
        writer.write_step(step)
    writer._release()
    journal = tmp_path / "run" / "run_000001.mcap.active"
    original = journal.read_bytes()
    rng = np.random.default_rng(2)
    for _ in range(30):
        content = bytearray(original)
        damage(content, rng)
        journal.write_bytes(content)
        try:
            episodes = read_run(tmp_path / "run")
        except UserError:
            continue
        assert same(episodes[0], sample_episode(0))
        for episode in episodes[1:]:
            assert episode.outcome == Outcome.RECOVERED
            assert same(episode.steps, sample_episode(1).steps[: len(episode.steps)])


@pytest.mark.parametrize("damage", DAMAGES)
def test_recording_goes_on_after_a_damaged_journal(tmp_path: Path, damage: Damage) -> None:
    """A power cut can leave holes in a journal; the run must stay readable when recording goes on."""
    rng = np.random.default_rng(4)
    for number in range(20):
        run = tmp_path / str(number)
        writer = RunWriter(run, {}, 3, sync=False, reserve=0)
        for index in range(2):
            writer.write_episode(sample_episode(index))
        for step in sample_episode(2).steps:
            writer.write_step(step)
        writer._release()
        (journal,) = run.glob("*.active")
        content = bytearray(journal.read_bytes())
        damage(content, rng)
        journal.write_bytes(content)
        try:
            writer = RunWriter(run, {}, sync=False, reserve=0)
        except UserError:
            continue
        onward = writer.next_episode
        writer.write_episode(sample_episode(onward))
        writer.close()
        episodes = read_run(run)
        assert [episode.index for episode in episodes] == list(range(onward + 1))
        assert same(episodes[onward], sample_episode(onward))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_bag_of_others_never_breaks_the_reader(tmp_path: Path, damage: Damage, compressed: bool) -> None:
    write_with_rosbags(tmp_path / "run", [sample_episode(0), sample_episode(1)], compressed=compressed)
    path = tmp_path / "run" / "run.mcap"
    original = path.read_bytes()
    rng = np.random.default_rng(3)
    for _ in range(20):
        content = bytearray(original)
        damage(content, rng)
        path.write_bytes(content)
        for skip_bad in (False, True):
            try:
                read_run(tmp_path / "run", skip_bad)
            except UserError:
                continue
