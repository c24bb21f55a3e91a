"""Writes the bag in test/bags/fixtures anew: `python test/bags/make_fixture.py`, from the repository's root.

The bag in the repository is to stay: it holds what this version has promised to read. Make another beside it when the
format changes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bag_samples import sample_episode

from lift_ros.bags import RunWriter
from lift_ros.collection.records import Episode

FIXTURE = Path(__file__).parent / "fixtures" / "first_format"


def fixture_episodes() -> list[Episode]:
    """Return what the fixture holds; the third episode was cut off."""
    return [sample_episode(0, 3), sample_episode(1, 2, image=True), sample_episode(2, 2)]


def main(path: Path) -> None:
    """Record two episodes and leave the third without an end, as a crash would."""
    writer = RunWriter(path, {"seed": 5, "scenario": "fixture"}, reserve=0)
    *finished, cut = fixture_episodes()
    for episode in finished:
        writer.write_episode(episode)
    for step in cut.steps:
        writer.write_step(step)
    writer._release()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FIXTURE)
