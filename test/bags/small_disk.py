"""Records into a small tmpfs until it is full, inside a mount namespace of its own.

Run by test_durability.py as `unshare -rm python small_disk.py MOUNT RESERVE PER_FILE`. Prints one JSON line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bag_samples import sample_episode
from rosbags.rosbag2 import Reader

from lift_ros.bags import DiskFull, RunReader, RunWriter
from lift_ros.collection.records import Outcome, same


def main(mount: Path, reserve: int, per_file: int) -> None:
    """Fill the disk, check the run, free space and record on."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(mount)], check=True)
    ballast = mount / "ballast"
    ballast.write_bytes(bytes(100_000))
    run = mount / "run"
    finished, full = 0, ""
    try:
        with RunWriter(run, {"seed": 1}, per_file, sync=False, reserve=reserve) as writer:
            for index in range(100):
                writer.write_episode(sample_episode(index, 20))
                finished += 1
    except DiskFull as error:
        full = str(error)
    episodes = list(RunReader(run))
    cut_off = [episode.index for episode in episodes if episode.outcome == Outcome.RECOVERED]
    whole = all(same(episode, sample_episode(episode.index, 20)) for episode in episodes[:finished])
    with Reader(run) as foreign:
        seen = sum(c.msgcount for c in foreign.connections if c.topic == "/lift/episode")
        readable = sum(1 for _ in foreign.messages(foreign.connections))
        counted = foreign.message_count
    ballast.unlink()
    with RunWriter(run, {"seed": 1}, per_file, sync=False, reserve=reserve) as writer:
        onward = writer.next_episode
        writer.write_episode(sample_episode(onward, 20))
    last = RunReader(run).episode(onward)
    print(
        json.dumps(
            {
                "full": full,
                "finished": finished,
                "episodes": len(episodes),
                "cut_off": cut_off,
                "whole": whole,
                "seen_by_rosbags": seen,
                "readable": readable == counted,
                "onward": onward,
                "goes_on": same(last, sample_episode(onward, 20)),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
