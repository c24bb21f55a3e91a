"""Reading a run back: strict by default, and without a repair step after a crash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lift_ros.bags.contents import (
    REMEDY,
    Dimensions,
    RawEpisode,
    assemble,
    check_episode,
    dimensions_of,
    read_finished,
    read_journal,
    recovered,
)
from lift_ros.bags.faults import BagError, EpisodeError
from lift_ros.bags.files import JOURNAL_SUFFIX, RunLock, first_episode_of, list_run
from lift_ros.bags.metadata import FILE_NAME, VERSION, facts_from_text, load_metadata
from lift_ros.bags.scan import Announced
from lift_ros.collection.records import Episode

METADATA_NAME = "lift_ros"


@dataclass(frozen=True)
class LeftOut:
    """An episode, or a whole file where `episode` is None, that `skip_bad` left out, and why."""

    bag: str
    episode: int | None
    reason: str


class RunReader:
    """Reads the episodes of a run; opening it reads the names of its files and the newest of them, not the others.

    Episodes are checked when they are read. With `skip_bad` a bad one is left out and listed in `left_out`.
    """

    def __init__(self, path: str | Path, skip_bad: bool = False) -> None:
        self.path = Path(path)
        self.skip_bad = skip_bad
        self.left_out: list[LeftOut] = []
        self.facts: dict[str, Any] = {}
        self.under_way = False  # a process records into the run now; its unfinished episode is not shown
        self._paths: list[Path] = []
        self._files: dict[int, Path] = {}  # episode: file
        self._journal: Path | None = None
        self._dimensions: Dimensions | None = None
        self._loaded: tuple[Path, dict[int, RawEpisode]] | None = None
        self._open()

    @property
    def episode_indices(self) -> list[int]:
        """Numbers of the recorded episodes, ascending."""
        return sorted(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[Episode]:
        for index in self.episode_indices:
            try:
                yield self.episode(index)
            except EpisodeError as error:
                self._tolerate(error)

    def episode(self, index: int) -> Episode:
        """Return one episode; reads the file it lies in and no other."""
        path = self._files.get(index)
        if path is None:
            known = self.episode_indices
            raise BagError(
                f"it has no episode {index}",
                bag=self.path,
                remedy=f"Episodes {known[0]} to {known[-1]} are recorded." if known else "No episode is recorded.",
            )
        raw = self._raw(path).get(index)
        if raw is None:
            raise EpisodeError("it is missing", bag=path, episode=index, remedy=REMEDY)
        if path == self._journal and raw.end is None:
            episode = recovered(index, raw, self.facts)
            check_episode(episode, path)
        else:
            episode = assemble(index, raw, path)
        self._check_dimensions(episode, path)
        return episode

    def _check_dimensions(self, episode: Episode, path: Path) -> None:
        found = dimensions_of(episode)
        if found is None:
            return
        if self._dimensions is None:
            self._dimensions = found
        elif found != self._dimensions:
            raise EpisodeError(
                f"it has other dimensions ({found}) than the episodes before it ({self._dimensions})",
                bag=path,
                episode=episode.index,
                remedy="Record runs with different dimensions into different directories. " + REMEDY,
            )

    def _tolerate(self, error: BagError) -> None:
        if not self.skip_bad:
            raise error
        self.left_out.append(LeftOut(error.bag, error.episode, error.problem))

    def _raw(self, path: Path) -> dict[int, RawEpisode]:
        if self._loaded is None or self._loaded[0] != path:
            try:
                raw = read_journal(path, Announced()) if path == self._journal else read_finished(path, Announced())
            except EpisodeError:
                raise
            except BagError as error:
                raise EpisodeError(
                    error.problem,
                    bag=error.bag,
                    episode=first_episode_of(path.name.removesuffix(JOURNAL_SUFFIX)),
                    remedy=error.remedy,
                ) from error
            self._loaded = (path, raw)
        return self._loaded[1]

    def _open(self) -> None:
        if not self.path.exists():
            raise BagError("it does not exist", bag=self.path, remedy="Give the directory of a recorded run.")
        if self.path.is_file():
            self._paths = [self.path]
        else:
            self._open_directory()
        self._index()

    def _open_directory(self) -> None:
        listing = list_run(self.path)
        has_metadata = (self.path / FILE_NAME).exists()
        if not has_metadata and not listing.finished and listing.journal is None:
            raise BagError(
                f"it is no bag: there is neither {FILE_NAME} nor an .mcap file",
                bag=self.path,
                remedy="Give the directory of a recorded run, not the directory above it.",
            )
        self._paths = [self.path / name for name in listing.finished]
        if has_metadata:
            try:
                self._check_metadata(set(listing.finished))
            except BagError as error:
                self._tolerate(error)
        if listing.journal is not None:
            self._journal = self.path / listing.journal

    def _check_metadata(self, present: set[str]) -> None:
        information = load_metadata(self.path)
        if information.get("version") not in range(1, VERSION + 1):
            raise BagError(
                f"{FILE_NAME} has format version {information.get('version')!r}; versions 1 to {VERSION} are known",
                bag=self.path,
                remedy="Convert it with `ros2 bag convert`, or restore the file.",
            )
        if information.get("storage_identifier") != "mcap":
            raise BagError(
                f"its storage is {information.get('storage_identifier')!r}; a run is stored as mcap",
                bag=self.path,
                remedy="Convert it with `ros2 bag convert`, or use `lift import`.",
            )
        names = information.get("relative_file_paths") or []
        for name in names:
            if Path(str(name)).name not in present:
                self._tolerate(BagError(f"{FILE_NAME} names {name!r}, which is missing", bag=self.path, remedy=REMEDY))
        self.facts = facts_from_text(information.get("custom_data") or {}, self.path)

    def _index(self) -> None:
        """Find out which episode lies where, from names where they tell, from the file itself where they do not."""
        named = [(first, path) for path in self._paths if (first := first_episode_of(path.name)) is not None]
        for number, (first, path) in enumerate(named[:-1]):
            for index in range(first, named[number + 1][0]):
                self._files[index] = path
        read = [path for path in self._paths if first_episode_of(path.name) is None and "_tail" not in path.name]
        read += [path for _, path in named[-1:]]
        for path in read:
            self._index_by_reading(path)
        self._index_journal()
        self._check_gaps()

    def _index_by_reading(self, path: Path) -> None:
        try:
            raw = self._raw(path)
        except BagError as error:
            self._tolerate(error)
            return
        for index in raw:
            if index in self._files:
                self._tolerate(
                    EpisodeError(
                        f"it is also recorded in {self._files[index].name}", bag=path, episode=index, remedy=REMEDY
                    )
                )
            else:
                self._files[index] = path

    def _index_journal(self) -> None:
        if self._journal is None:
            return
        if self._journal.with_name(self._journal.name.removesuffix(JOURNAL_SUFFIX)).exists():
            self._journal = None  # it was finished under its final name and only its removal is missing
            return
        lock = RunLock(self.path)
        try:
            self.under_way = lock.held_elsewhere()
        finally:
            lock.release()
        for index, raw in self._raw(self._journal).items():
            if raw.end is not None or not self.under_way:
                self._files[index] = self._journal

    def _check_gaps(self) -> None:
        known = self.episode_indices
        for before, after in zip(known, known[1:], strict=False):
            if after != before + 1:
                missing = (
                    f"episode {before + 1} is" if after == before + 2 else f"episodes {before + 1} to {after - 1} are"
                )
                self._tolerate(EpisodeError(f"{missing} missing", bag=self.path, episode=before + 1, remedy=REMEDY))


def read_run(path: str | Path, skip_bad: bool = False) -> list[Episode]:
    """Return all episodes of a run."""
    return list(RunReader(path, skip_bad))
