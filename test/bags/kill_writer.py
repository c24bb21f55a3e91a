"""Kills a process with SIGKILL again and again while it records at full speed, and checks what it has left.

Run by test_durability.py as `kill_writer.py DIRECTORY KILLS SEED`, in a process of its own: it forks from a warm and
single-threaded interpreter, which makes a kill cost milliseconds. Prints one JSON line.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import sys
import time
from pathlib import Path

import numpy as np
from bag_samples import sample_episode
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader

from lift_ros.bags import RunReader, RunWriter
from lift_ros.collection.records import COMPRESSIONS, Episode, Outcome, same

EPISODES = 30  # a run is given up for a new one when it has as many
ALL = [sample_episode(index, steps=3 + index % 5, image=index % 7 == 0) for index in range(EPISODES + 1)]


def record(run: Path, per_file: int, sync: bool, compression: str, progress: mmap.mmap) -> None:
    """Record until killed; tell through shared memory what has been confirmed."""
    writer = RunWriter(run, {"seed": 1}, per_file, sync=sync, reserve=0, compression=compression)
    struct.pack_into("<II", progress, 4, writer.next_episode, 0)
    progress[0] = 1
    while writer.next_episode < EPISODES:
        episode = ALL[writer.next_episode]
        for step in episode.steps:
            writer.write_step(step)
            struct.pack_into("<I", progress, 8, step.index + 1)
        writer.finish_episode(episode)
        struct.pack_into("<II", progress, 4, writer.next_episode, 0)
    progress[1] = 1
    while True:
        time.sleep(1)


def expected(episode: Episode) -> bool:
    """Whether an episode is what was written, as far as it goes."""
    original = ALL[episode.index]
    if episode.outcome == Outcome.RECOVERED:
        return same(episode.steps, original.steps[: len(episode.steps)])
    return same(episode, original)


def check_as_others_see_it(run: Path, thorough: bool) -> None:
    """Check that metadata.yaml names what is there, and with `rosbags` and `mcap` that it can be read."""
    information = json.loads((run / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    names = information["relative_file_paths"]
    assert all((run / name).exists() for name in names), "metadata.yaml names a file that is not there"
    assert len(list(run.glob("*.mcap"))) - len(names) in (0, 1)
    for name in names[-1:]:
        with (run / name).open("rb") as stream:
            assert list(make_reader(stream, validate_crcs=True).iter_messages(topics=["/lift/episode"]))
    if thorough:  # `rosbags` parses YAML for milliseconds per file
        with Reader(run) as foreign:
            finished = sum(c.msgcount for c in foreign.connections if c.topic == "/lift/episode")
            read = sum(1 for c, _, _ in foreign.messages(foreign.connections) if c.topic == "/lift/episode")
            assert read == finished


def check(run: Path, confirmed: int, steps: int, known: int) -> tuple[int, bool]:
    """Check the run after a kill; `known` episodes were checked before. Returns the episodes and whether one is cut."""
    reader = RunReader(run)
    indices = reader.episode_indices
    assert indices == list(range(len(indices))), indices
    assert len(indices) >= confirmed, f"{confirmed} episodes were confirmed and {len(indices)} are there"
    last = None
    for index in indices[max(0, known - 1) :]:
        last = reader.episode(index)
        assert expected(last), f"episode {index} differs"
    if len(indices) == confirmed:
        assert steps == 0, "a confirmed step is lost"
    elif last is not None and last.outcome == Outcome.RECOVERED:
        assert len(last.steps) >= steps, f"{steps} steps were confirmed and {len(last.steps)} are there"
    return len(indices), last is not None and last.outcome == Outcome.RECOVERED


def main(directory: Path, kills: int, seed: int) -> None:
    """Kill, check and go on into the same run, with one and with three episodes per file, compressed or not."""
    rng = np.random.default_rng(seed)
    progress = mmap.mmap(-1, 16)
    total = cuts = runs = 0
    run, known, per_file, sync, compression = directory / "none", EPISODES, 1, False, "none"
    for number in range(kills):
        if known >= EPISODES - 5:
            runs += 1
            run, known, per_file, sync = directory / f"run{runs}", 0, (1, 3)[runs % 2], runs % 3 == 0
            compression = COMPRESSIONS[runs // 2 % 2]
        progress[:16] = bytes(16)
        child = os.fork()
        if child == 0:
            try:
                record(run, per_file, sync, compression, progress)
            finally:
                os._exit(1)
        while not progress[0]:
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the recorder failed"
            time.sleep(0.0002)
        time.sleep(float(rng.uniform(0, 0.006)))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the recorder failed"
        confirmed, steps = struct.unpack_from("<II", progress, 4)
        before = known
        known, cut = check(run, confirmed, steps, known)
        check_as_others_see_it(run, thorough=number % 20 == 0)
        total += known - before
        cuts += cut
    print(json.dumps({"kills": kills, "episodes": total, "cut_off": cuts, "runs": runs}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
