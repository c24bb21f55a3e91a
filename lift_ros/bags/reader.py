"""Reading a run back: strict by default, and without a repair step after a crash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from lift_ros.bags.contents import REMEDY, RawEpisode, Sizes, assemble, read_file, recovered
from lift_ros.bags.faults import BagError, EpisodeError, Malformed
from lift_ros.bags.files import JOURNAL_SUFFIX, RunLock, first_episode_of, is_tail, list_run
from lift_ros.bags.metadata import FILE_NAME, METADATA_NAME, VERSION, facts_from_text, load_metadata
from lift_ros.bags.ordinary import NOT_ORDINARY, list_episodes
from lift_ros.bags.records import Announced, file_bytes
from lift_ros.collection.records import Episode

_ATTEMPTS = 20  # a recorder may finish a file between the listing of the directory and the reading


@dataclass(frozen=True)
class LeftOut:
    """An episode, or a part of a file where `episode` is None, that `skip_bad` left out, and why."""

    bag: str
    episode: int | None
    reason: str


class RunReader:
    """Reads the episodes of a run; opening it reads the names of its files and the newest of them, not the others.

    Episodes are checked when they are read. With `skip_bad` a bad one is left out and listed in `left_out`. While a
    recorder is at work, its unfinished episode is not shown (`under_way`); after a crash it is, as a recovered one.
    """

    facts: dict[str, Any]
    left_out: list[LeftOut]
    under_way: bool
    _knows_facts: bool
    _names: list[str]
    _files: dict[int, str]
    _journal: str | None
    _sizes: Sizes | None
    _loaded: tuple[str, dict[int, RawEpisode]] | None

    def __init__(self, path: str | Path, skip_bad: bool = False) -> None:
        self.path = Path(path)
        self.skip_bad = skip_bad
        for attempt in range(_ATTEMPTS):
            try:
                self._open()
                return
            except FileNotFoundError as error:
                if attempt == _ATTEMPTS - 1:
                    raise BagError(f"its file {error.filename!r} vanishes", bag=path, remedy=REMEDY) from error

    @property
    def episode_indices(self) -> list[int]:
        """Numbers of the recorded episodes, ascending."""
        return sorted(self._files)

    @property
    def files(self) -> dict[int, Path]:
        """The file in which each episode lies; a journal while it is not finished."""
        return {index: self.directory / name for index, name in self._files.items()}

    @property
    def file_names(self) -> dict[int, str]:
        """The name of the file in `directory` in which each episode lies."""
        return self._files

    @property
    def journal(self) -> Path | None:
        """The file under way, or what a crash has left of it."""
        return None if self._journal is None else self.path / self._journal

    @property
    def directory(self) -> Path:
        """Where the files are."""
        return self.path if self.path.is_dir() else self.path.parent

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[Episode]:
        for index in self.episode_indices:
            try:
                episode = self.episode(index)
            except EpisodeError as error:
                self._tolerate(error)
            else:
                yield episode

    def episode(self, index: int) -> Episode:
        """Return one episode; reads the file it lies in and no other."""
        name = self._files.get(index)
        if name is None:
            known = self.episode_indices
            raise BagError(
                "this episode is not recorded",
                bag=self.path,
                episode=index,
                remedy=f"Choose one of {known[0]} to {known[-1]}." if known else "The run is empty.",
            )
        path = self.directory / name
        raw = self._raw(name).get(index)
        if raw is None:
            raise EpisodeError("it is missing", bag=path, episode=index, remedy=REMEDY)
        if name == self._journal and raw.end is None:
            episode = recovered(index, raw, self.facts, path)
        else:
            episode = assemble(index, raw, path)
        for step in episode.steps[:1]:
            found = Sizes.of(step)
            self._sizes = self._sizes or found
            if found != self._sizes:
                raise EpisodeError(
                    f"its steps have {found} and those read before have {self._sizes}",
                    bag=path,
                    episode=index,
                    remedy="Record runs of different dimensions into different directories. " + REMEDY,
                )
        return episode

    def _tolerate(self, error: BagError) -> None:
        if not self.skip_bad:
            raise error
        note = LeftOut(error.bag, error.episode, error.problem)
        if note not in self.left_out:
            self.left_out.append(note)

    def _raw(self, name: str) -> dict[int, RawEpisode]:
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = (name, self._read(name))
        return self._loaded[1]

    def _read(self, name: str) -> dict[int, RawEpisode]:
        path = self.directory / name

        def tolerate(error: Malformed) -> None:
            self._tolerate(BagError(str(error), bag=path, remedy=REMEDY))

        announced = Announced()
        try:
            journal = name == self._journal
            raw = read_file(path, announced, journal=journal, tolerate=tolerate if self.skip_bad else None)
        except BagError as error:
            first = first_episode_of(name.removesuffix(JOURNAL_SUFFIX))
            raise EpisodeError(error.problem, bag=error.bag, episode=first, remedy=error.remedy) from error
        if not self._knows_facts and METADATA_NAME in announced.metadata:
            self.facts = facts_from_text(announced.metadata[METADATA_NAME], path)
            self._knows_facts = True
        return raw

    def _open(self) -> None:
        self.left_out, self.facts, self.under_way, self._knows_facts = [], {}, False, False
        self._names, self._files = [], {}
        self._journal = self._sizes = self._loaded = None
        if not self.path.exists():
            raise BagError("it does not exist", bag=self.path, remedy="Give the directory of a recorded run.")
        if self.path.is_dir():
            self._open_directory()
        else:
            self._names = [self.path.name]
        self._index()

    def _open_directory(self) -> None:
        # The metadata first: a recorder may add files between the two, and those must not look like missing ones.
        has_metadata = (self.path / FILE_NAME).exists()
        names: list[str] = []
        if has_metadata:
            try:
                names = self._read_metadata()
            except BagError as error:
                self._tolerate(error)
        try:
            listing = list_run(self.path)
        except OSError as error:
            raise BagError(f"it cannot be listed ({error.strerror})", bag=self.path, remedy=REMEDY) from error
        if not has_metadata and not listing.finished and listing.journal is None:
            raise BagError(
                f"it is no bag: there is neither {FILE_NAME} nor an .mcap file",
                bag=self.path,
                remedy="Give the directory of a recorded run, not the directory above it.",
            )
        for name in set(names).difference(listing.finished):
            problem = f"{FILE_NAME} names {name!r}, which is missing"
            self._tolerate(EpisodeError(problem, bag=self.path, episode=first_episode_of(name), remedy=REMEDY))
        self._names = listing.finished
        self._journal = listing.journal

    def _read_metadata(self) -> list[str]:
        """Take the facts from metadata.yaml and return the files it names."""
        information = load_metadata(self.path)
        version, storage = information.get("version"), information.get("storage_identifier")
        if not isinstance(version, int) or not 1 <= version <= VERSION:
            raise BagError(
                f"{FILE_NAME} has format version {version!r}; versions 1 to {VERSION} are known",
                bag=self.path,
                remedy="Convert it with `ros2 bag convert`, or restore the file.",
            )
        if storage != "mcap":
            raise BagError(
                f"its storage is {storage!r}; a run is stored as mcap",
                bag=self.path,
                remedy="Convert it with `ros2 bag convert`, or use `lift import`.",
            )
        names, custom = information.get("relative_file_paths") or [], information.get("custom_data") or {}
        if not isinstance(names, list) or not isinstance(custom, dict):
            raise BagError(
                f"relative_file_paths or custom_data in {FILE_NAME} is no list or no map",
                bag=self.path,
                remedy=f"Delete {FILE_NAME} if the .mcap files beside it are good: a run is also read without it.",
            )
        self.facts = facts_from_text(custom, self.path)
        self._knows_facts = True
        return [str(name).rpartition("/")[2] for name in names]

    def _index(self) -> None:
        """Find out which episode lies where, from names where they tell, from the file itself where they do not."""
        named = [(first, name) for name in self._names if (first := first_episode_of(name)) is not None]
        for (first, name), (following, _) in pairwise(named):
            if following == first + 1:
                self._files[first] = name
            else:
                self._files.update(dict.fromkeys(range(first, following), name))
        for name in self._names:
            if first_episode_of(name) is None and not is_tail(name):
                self._index_by_reading(name)
        for _, name in named[-1:]:
            self._index_by_reading(name)
        self._index_journal()
        self._check_gaps()

    def _index_by_reading(self, name: str) -> None:
        try:
            indices = self._list(name)
        except EpisodeError as error:
            self._tolerate(error)
            return
        first = first_episode_of(name)
        if first is not None and first not in indices:
            self._tolerate(EpisodeError("it is missing", bag=self.directory / name, episode=first, remedy=REMEDY))
        for index in indices:
            other = self._files.setdefault(index, name)
            if other != name:
                problem = f"it is recorded in {other} too"
                self._tolerate(EpisodeError(problem, bag=self.directory / name, episode=index, remedy=REMEDY))

    def _list(self, name: str) -> list[int]:
        """Return the episodes of a file, from its index where it has the usual one."""
        if self._knows_facts:  # else they are in the file, which has to be read for them
            with suppress(OSError, *NOT_ORDINARY):
                return list_episodes(file_bytes(self.directory / name, whole=False))
        return list(self._raw(name))

    def _index_journal(self) -> None:
        name = self._journal
        if name is None:
            return
        if (self.path / name.removesuffix(JOURNAL_SUFFIX)).exists():
            self._journal = None  # it was finished under its final name and only its removal is missing
            return
        lock = RunLock(self.path)
        try:
            self.under_way = lock.held_elsewhere()
        finally:
            lock.release()
        try:
            episodes = self._raw(name)
        except EpisodeError as error:
            self._tolerate(error)
            return
        for index, raw in episodes.items():
            if raw.end is not None or not self.under_way:
                self._files.setdefault(index, name)

    def _check_gaps(self) -> None:
        for before, after in pairwise(self.episode_indices):
            if after != before + 1:
                last = after - 1
                problem = "it is missing" if last == before + 1 else f"episodes up to {last} are missing"
                self._tolerate(EpisodeError(problem, bag=self.path, episode=before + 1, remedy=REMEDY))


def read_run(path: str | Path, skip_bad: bool = False) -> list[Episode]:
    """Return all episodes of a run."""
    return list(RunReader(path, skip_bad))
