"""Tries to record into and read from a disk that is mounted read-only, inside a mount namespace of its own.

Run by test_durability.py as `unshare -rm python read_only_disk.py MOUNT`. Prints one JSON line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bag_samples import sample_episode

from lift_ros.bags import RunReader, RunWriter
from lift_ros.errors import UserError


def refusal(run: Path) -> str:
    """Return what a writer says to the run."""
    try:
        RunWriter(run, {}, reserve=0)
    except UserError as error:
        return str(error)
    return ""


def main(mount: Path) -> None:
    """Leave a run with an unfinished episode on the disk, make the disk read-only and use it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)], check=True)
    run = mount / "run"
    writer = RunWriter(run, {}, sync=False, reserve=0)
    writer.write_episode(sample_episode(0))
    for step in sample_episode(1).steps[:2]:
        writer.write_step(step)
    writer._release()
    subprocess.run(["mount", "-o", "remount,ro", str(mount)], check=True)
    outcomes = [episode.outcome.name for episode in RunReader(run)]
    print(json.dumps({"new": refusal(mount / "other"), "known": refusal(run), "outcomes": outcomes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
