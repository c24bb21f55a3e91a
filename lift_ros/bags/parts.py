"""Episodes that several processes write themselves: each into a file of its own, which the run takes over in order.

So only names travel between the processes. Whatever a crash leaves lies in a hidden folder of the run, is nobody's
episode yet, and is removed when the run is written to again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path

from lift_ros.bags.contents import Sizes
from lift_ros.bags.files import PARTS
from lift_ros.bags.journal import FileSummary
from lift_ros.bags.writer import RunWriter
from lift_ros.collection.records import Episode


@dataclass(frozen=True)
class Part:
    """An episode that lies in a finished file."""

    file: Path
    summary: FileSummary
    sizes: Sizes | None  # None where it has no step
    episode: Episode  # without its steps
    steps: int
    augmentations: int


class PartWriter(RunWriter):
    """Writes episodes in any order, each into a file that is not yet part of a run."""

    _completed: list[FileSummary]  # since the last part was begun

    def write_part(self, episode: Episode) -> Part:
        """Write an episode and return where it lies."""
        self.next_episode, self._completed = episode.index, []
        self.write_episode(episode)
        [summary] = self._completed
        values = {entry.name: getattr(episode, entry.name) for entry in fields(Episode)}
        return Part(
            self.path / summary.name,
            summary,
            Sizes.of(episode.steps[0]) if episode.steps else None,
            Episode(**{**values, "steps": []}),
            len(episode.steps),
            episode.augmentations,
        )

    def _finish_file(self) -> None:
        """Complete the file and list it nowhere."""
        if self._file is not None:
            summary = self._file.complete(sync=self._sync)
            self._file = None
            self._completed += [] if summary is None else [summary]


class Parts:
    """Writes the parts of a run in the process that it was sent to, by a writer that is made there."""

    def __init__(self, writer: RunWriter) -> None:
        self._folder = writer.path.resolve() / PARTS
        self._facts, self._settings = writer.facts, writer.settings
        self._writer: PartWriter | None = None  # never in the process that sends it

    def __call__(self, episode: Episode) -> Part:
        """Write an episode."""
        if self._writer is None:
            self._writer = PartWriter(self._folder / str(os.getpid()), self._facts, **self._settings)
        return self._writer.write_part(episode)


def take_over(writer: RunWriter, part: Part) -> Episode:
    """Make a part the next episode of a run, and return it without its steps."""
    writer.take_file(part.file, part.summary, part.episode, part.sizes)
    return part.episode
