"""Reading a run back: strict by default, and without a repair step after a crash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from lift_ros.bags.chunks import NOT_ORDINARY, list_episodes
from lift_ros.bags.contents import RawEpisode, Sizes, assemble, read_file, recovered
from lift_ros.bags.faults import REMEDY, BagError, EpisodeError
from lift_ros.bags.files import JOURNAL_SUFFIX, RunLock, first_episode_of, is_tail, list_run
from lift_ros.bags.mcap_records import Announced, file_bytes
from lift_ros.bags.metadata import FACTS_KEY, FILE_NAME, facts_from_text, facts_of_files, load_metadata
from lift_ros.collection.records import Episode
from lift_ros.untrusted import brief

_ATTEMPTS = 20  # a recorder may finish a file between the listing of the directory and the reading


@dataclass(frozen=True)
class LeftOut:
    """An episode, or a part of a file where `episode` is None, that `skip_bad` left out, and why."""

    bag: str
    episode: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.bag}{'' if self.episode is None else f', episode {self.episode}'}: {self.reason}"


class RunReader:
    """Reads the episodes of a run; opening it reads the names of its files and the newest of them, not the others.

    Episodes are checked when they are read. With `skip_bad` a bad one is left out and listed in `left_out`. While a
    recorder is at work, its unfinished episode is not shown (`under_way`); after a crash it is, as a recovered one.
    """

    def __init__(self, path: str | Path, skip_bad: bool = False) -> None:
        self.path = Path(path)
        self.skip_bad = skip_bad
        for attempt in range(_ATTEMPTS):
            try:
                self._open()
                return
            except FileNotFoundError as error:
                if attempt == _ATTEMPTS - 1:
                    raise BagError(f"its file {error.filename!r} vanishes", bag=path) from error

    def _open(self) -> None:
        self.facts: dict[str, Any] = {}
        self.left_out: list[LeftOut] = []
        self._noted: set[LeftOut] = set()  # the same, for there may be many
        self.under_way = False
        self.file_names: dict[int, str] = {}  # the name of the file in `directory` in which each episode lies
        self.journal: Path | None = None  # the file under way, or what a crash has left of it
        self.directory = self.path if self.path.is_dir() else self.path.parent  # where the files are
        self.sizes: Sizes | None = None  # of all steps; known from the first that is read
        self._loaded: tuple[str, dict[int, RawEpisode]] = "", {}
        if not self.path.exists():
            raise BagError("it does not exist", bag=self.path, remedy="Give the directory of a recorded run.")
        if self.path.is_dir():
            self._index(self._list_directory())
        else:
            self._take_facts([self.path.name])
            self._index([self.path.name])
        self._index_journal()
        for before, after in pairwise(self.episode_indices):
            if after != before + 1:
                problem = "it is missing" if after == before + 2 else f"episodes up to {after - 1} are missing"
                self.tolerate(EpisodeError(problem, bag=self.path, episode=before + 1))

    @property
    def episode_indices(self) -> list[int]:
        """Numbers of the recorded episodes, ascending."""
        return sorted(self.file_names)

    @property
    def files(self) -> dict[int, Path]:
        """The file in which each episode lies; a journal while it is not finished."""
        return {index: self.directory / name for index, name in self.file_names.items()}

    def __len__(self) -> int:
        return len(self.file_names)

    def __iter__(self) -> Iterator[Episode]:
        for index in self.episode_indices:
            with self.tolerated():
                yield self.episode(index)

    def episode(self, index: int) -> Episode:
        """Return one episode; reads the file it lies in and no other."""
        name = self.file_names.get(index)
        if name is None:
            known = self.episode_indices
            remedy = f"Choose one of {known[0]} to {known[-1]}." if known else "The run is empty."
            raise BagError("this episode is not recorded", bag=self.path, episode=index, remedy=remedy)
        path = self.directory / name
        raw = self._raw(name).get(index)
        if raw is None:
            raise EpisodeError("it is missing", bag=path, episode=index)
        cut_off = path == self.journal and raw.end is None
        episode = recovered(index, raw, self.facts, path) if cut_off else assemble(index, raw, path)
        for step in episode.steps[:1]:
            sizes = Sizes.of(step)
            self.sizes = self.sizes or sizes
            if sizes != self.sizes:
                problem = f"its steps have {sizes} and those read before have {self.sizes}"
                remedy = f"Record and load runs of different dimensions apart. {REMEDY}"
                raise EpisodeError(problem, bag=path, episode=index, remedy=remedy)
        return episode

    @contextmanager
    def tolerated(self) -> Iterator[None]:
        """Leave out what an `EpisodeError` ends, or else raise it."""
        try:
            yield
        except EpisodeError as error:
            self.tolerate(error)

    def tolerate(self, error: BagError) -> None:
        """List what is bad in `left_out` where bad episodes are to be skipped, or else raise it."""
        if not self.skip_bad:
            raise error
        note = LeftOut(error.bag, error.episode, error.problem)
        if note not in self._noted:
            self._noted.add(note)
            self.left_out.append(note)

    def _raw(self, name: str) -> dict[int, RawEpisode]:
        """Return the episodes of a file; those of the last one are kept."""
        if self._loaded[0] == name:
            return self._loaded[1]
        path = self.directory / name

        def tolerate(error: Exception) -> None:
            self.tolerate(BagError(str(error), bag=path))

        try:
            raw = read_file(path, Announced(), tolerate, journal=path == self.journal)
        except BagError as error:
            first = first_episode_of(name)
            raise EpisodeError(error.problem, bag=error.bag, episode=first, remedy=error.remedy) from error
        self._loaded = name, raw
        return raw

    def _list_directory(self) -> list[str]:
        """Take facts from metadata.yaml or else from a file, note the journal and return the finished files."""
        # The metadata first: a recorder may add files between the two, and those must not look like missing ones.
        has_metadata = (self.path / FILE_NAME).exists()
        names: list[str] = []
        stored: dict[str, Any] = {}
        if has_metadata:
            try:
                information = load_metadata(self.path)
                stored = information["custom_data"]
                self.facts = facts_from_text(stored, self.path)
                names = [str(name).rpartition("/")[2] for name in information["relative_file_paths"]]
            except BagError as error:
                self.tolerate(error)
        try:
            listing = list_run(self.path)
        except OSError as error:
            raise BagError(f"it cannot be listed ({error.strerror})", bag=self.path) from error
        if not has_metadata and not listing.finished and listing.journal is None:
            problem = f"it is no bag: there is neither {FILE_NAME} nor an .mcap file"
            remedy = "Give the directory of a recorded run, not the directory above it."
            raise BagError(problem, bag=self.path, remedy=remedy)
        for name in set(names).difference(listing.finished):
            problem = f"{FILE_NAME} names {brief(name)}, which is missing"
            self.tolerate(EpisodeError(problem, bag=self.path, episode=first_episode_of(name)))
        self.journal = None if listing.journal is None else self.path / listing.journal
        if FACTS_KEY not in stored:
            self._take_facts([*listing.finished, *([listing.journal] if listing.journal else [])])
        return listing.finished

    def _take_facts(self, names: list[str]) -> None:
        """Take facts from the newest of files that tells them undamaged."""
        try:
            self.facts = facts_of_files(self.directory / name for name in reversed(names))
        except BagError as error:
            self.tolerate(error)

    def _index(self, names: list[str]) -> None:
        """Find out which episode lies where, from names where they tell, from the file itself where they do not."""
        named = [(first, name) for name in names if (first := first_episode_of(name)) is not None]
        for (first, name), (following, _) in pairwise(named):
            for index in range(first, following):
                self.file_names[index] = name
        others = set(names).difference(name for _, name in named) if len(named) < len(names) else ()
        unclear = sorted(name for name in others if not is_tail(name))
        for name in [*unclear, *(name for _, name in named[-1:])]:
            with self.tolerated():
                self._index_by_reading(name)

    def _index_by_reading(self, name: str) -> None:
        indices = self._list(name)
        first = first_episode_of(name)
        if first is not None and first not in indices:
            self.tolerate(EpisodeError("it is missing", bag=self.directory / name, episode=first))
        for index in indices:
            other = self.file_names.setdefault(index, name)
            if other != name:
                problem = f"it is recorded in {other} too"
                self.tolerate(EpisodeError(problem, bag=self.directory / name, episode=index))

    def _list(self, name: str) -> list[int]:
        """Return the episodes of a file, from its index where it has the usual one."""
        with suppress(OSError, *NOT_ORDINARY):
            return list_episodes(file_bytes(self.directory / name, whole=False), first_episode_of(name))
        return list(self._raw(name))

    def _index_journal(self) -> None:
        if self.journal is None:
            return
        name = self.journal.name
        if (self.path / name.removesuffix(JOURNAL_SUFFIX)).exists():
            self.journal = None  # it was finished under its final name and only its removal is missing
            return
        with closing(RunLock(self.path)) as lock:
            self.under_way = lock.held_elsewhere()
        with self.tolerated():
            for index, raw in self._raw(name).items():
                if raw.end is not None or not self.under_way:
                    self.file_names.setdefault(index, name)


def read_run(path: str | Path, skip_bad: bool = False) -> list[Episode]:
    """Return all episodes of a run."""
    return list(RunReader(path, skip_bad))
