"""Loading thousands of episodes at the speed of reading their bytes, with the checks that `RunReader` makes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import BoolArray, IntArray
from lift_ros.bags.arrays import OF_EPISODE, OF_STEP, EpisodeArrays, episodes_to_arrays, join, offsets_of
from lift_ros.bags.chunks import NOT_ORDINARY
from lift_ros.bags.contents import Sizes, seen_part
from lift_ros.bags.mcap_records import file_bytes
from lift_ros.bags.ordinary import EpisodeBytes, Locator, layout_of
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step
from lift_ros.configuration import nearest
from lift_ros.errors import UserError
from lift_ros.messages.layout import prefix_dtype

_THREADED_SIZE = 128 * 1024  # bytes per episode; below, it costs mostly Python's own work, which threads do not share
_MAX_WORKERS = 8
_LITTLE_ENDIAN = 0x100
_REASON = prefix_dtype("Episode", {}, "outcome").itemsize  # where the length of an end's reason lies
_REASON += -_REASON % 4
_OF_END = [*OF_EPISODE.values(), "goal", "episode", "steps", "augmentations"]


@dataclass(slots=True)
class _Wanted:
    """A file, and the episodes of it that are asked for."""

    run: int
    path: str
    indices: list[int]
    whole: bool  # all its episodes are asked for


def load_arrays(
    paths: str | Path | Sequence[str | Path],
    episodes: Sequence[int] | None = None,
    workers: int | None = None,
    *,
    images: bool = False,
    columns: Sequence[str] = (),
    skip_bad: bool = False,
) -> EpisodeArrays:
    """Load episodes of one or several runs into contiguous arrays, in the order of runs and episodes.

    `episodes` names those to load from each run; the others are not read. `workers` threads read files; by default as
    many as pay. `columns` names further fields of `Step` to load as they were recorded; a vector that a step does not
    have is a row of NaN. The checks are those of `RunReader`, and so are the errors.
    """
    if workers is not None and workers < 1:
        raise UserError(f"workers is {workers}; it takes at least 1.")
    known = [name for name in Step.__slots__ if name != "image"]
    for name in columns:
        if name not in known:
            raise UserError(f"a step has no column {name}; {nearest(name, known)}")
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    readers = [RunReader(path, skip_bad) for path in paths]
    wanted = [item for run, reader in enumerate(readers) for item in _wanted_files(run, reader, episodes)]
    loader = _Loader(readers, columns, images)
    result = loader.assemble(wanted, loader.load(wanted, workers))
    result.left_out = [entry for reader in readers for entry in reader.left_out]
    return result


def _wanted_files(run: int, reader: RunReader, episodes: Sequence[int] | None) -> Iterable[_Wanted]:
    known = reader.file_names
    sizes = Counter(known.values())
    files: dict[str, list[int]] = {}
    directory = str(reader.directory)
    for index in sorted(known) if episodes is None else episodes:
        if index not in known:
            reader.episode(index)  # raises and says what is there
        files.setdefault(known[index], []).append(index)
    return [_Wanted(run, f"{directory}/{name}", each, len(each) == sizes[name]) for name, each in files.items()]


def _useful_workers(wanted: list[_Wanted]) -> int:
    cores = min(_MAX_WORKERS, os.cpu_count() or 1)
    if cores == 1 or not wanted:
        return 1
    sample = wanted[:: -(-len(wanted) // 16)]
    try:
        episodes = sum(len(item.indices) for item in sample)
        mean = sum(os.stat(item.path).st_size for item in sample) / episodes
    except OSError:
        return 1
    return cores if mean > _THREADED_SIZE and episodes > 1 else 1


class _Loader:
    """Loads ordinary files at once and puts episodes in order; what is unusual comes from the readers."""

    def __init__(self, readers: list[RunReader], columns: Sequence[str], images: bool) -> None:
        self._readers = readers
        self._columns = columns
        self._images = images
        self._locator = Locator(columns, images)
        self._sizes: Sizes | None = None

    def load(self, wanted: list[_Wanted], workers: int | None) -> list[dict[int, EpisodeBytes]]:
        """Return the episodes of each file; none where a file is for `RunReader`."""
        if workers is None:
            workers = _useful_workers(wanted)
        if workers == 1:
            return [self._load_file(item) for item in wanted]
        with ThreadPoolExecutor(workers) as pool:
            if len(wanted) < 2 * workers:  # threads share what costs most in large files, their checksums
                return [self._load_file(item, pool) for item in wanted]
            return list(pool.map(self._load_file, wanted))

    def _load_file(self, item: _Wanted, pool: ThreadPoolExecutor | None = None) -> dict[int, EpisodeBytes]:
        try:
            data = file_bytes(item.path, whole=item.whole)
            found = list(self._locator.locate(data, None if item.whole else item.indices, pool.map if pool else map))
        except (OSError, *NOT_ORDINARY):
            return {}  # RunReader says what is wrong
        complete = [episode.index for episode in found] == sorted(item.indices)
        return {episode.index: episode for episode in found} if complete else {}

    def assemble(self, wanted: list[_Wanted], loaded: list[dict[int, EpisodeBytes]]) -> EpisodeArrays:
        """Return all wanted episodes in order."""
        order = [(item.run, index) for item in wanted for index in item.indices]
        located = [found.get(index) for item, found in zip(wanted, loaded, strict=True) for index in item.indices]
        layout = self._locator.layout
        ordinary = [(p, e) for p, e in enumerate(located) if e is not None and len(e.steps) and e.layout == layout]
        missing = np.ones(len(order), dtype=bool)
        arrays = None
        if ordinary and self._locator.sizes is not None:
            places = np.array([place for place, _ in ordinary], dtype=np.int64)
            runs = np.array([order[place][0] for place, _ in ordinary], dtype=np.int64)
            arrays, good = _decode([episode for _, episode in ordinary], runs, self._locator.sizes, self._columns)
            missing[places[good]] = False
            self._sizes = self._locator.sizes if good.any() else None
        slow = list(self._read([(place, *order[place]) for place in np.flatnonzero(missing).tolist()]))
        if arrays is not None and not slow:
            return arrays
        episodes, numbers = [episode for _, _, episode in slow], [run for _, run, _ in slow]
        part = episodes_to_arrays(episodes, numbers, images=self._images, columns=self._columns)
        if arrays is None or not len(arrays):
            return part
        places = np.array([place for place, _, _ in slow], dtype=np.int64)
        return join([arrays, part], [np.flatnonzero(~missing), places])

    def _read(self, unusual: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, Episode]]:
        """Yield place, run and episode of those that have steps, from the readers."""
        for place, run, index in unusual:
            reader = self._readers[run]
            reader.sizes = self._sizes  # runs of one plant only
            with reader.tolerated():
                episode = seen_part(reader.episode(index))
                if episode.steps:
                    self._sizes = reader.sizes
                    yield place, run, episode


def _decode(
    found: Sequence[EpisodeBytes], runs: IntArray, sizes: Sizes, columns: Sequence[str]
) -> tuple[EpisodeArrays, BoolArray]:
    """Return those episodes that keep all rules, and which they are; at least one, and each has steps of one layout."""
    counts = np.array([len(episode.steps) for episode in found], dtype=np.int64)
    indices = np.array([episode.index for episode in found], dtype=np.int64)
    offsets = offsets_of(counts)
    table = np.concatenate([episode.steps for episode in found]).view(found[0].layout)
    steps = {name: np.ascontiguousarray(table[field]) for name, field in OF_STEP.items()}
    bad = ~_fits(table)
    bad |= table["episode"] != np.repeat(indices, counts)
    bad |= table["step"] != np.arange(len(table)) - np.repeat(offsets[:-1], counts)
    bad |= ~_finite(steps["observations"]) | ~_finite(steps["positions"]) | ~_finite(steps["actions"])
    bad |= np.isinf(steps["rewards"])
    augmented = steps["sources"] == int(Source.AUGMENTOR)
    bad |= ~augmented & (steps["sources"] != int(Source.LOGGING_POLICY))
    ends, good = _decode_ends(found, sizes)
    good &= (_sums(bad, offsets) == 0) & (ends["augmentations"] == _sums(augmented, offsets))
    good &= (ends["steps"] == counts) & (ends["episode"] == indices)
    pictures = [episode.images for episode in found]
    kinds = [None if picture is None else (picture.dtype, picture.shape[1:]) for picture in pictures]
    good &= [kind == kinds[0] for kind in kinds]
    rows = slice(None) if good.all() else np.repeat(good, counts)
    fields: dict[str, Any] = {name: column[rows] for name, column in steps.items()}
    fields |= {name: np.ascontiguousarray(ends[field][good]) for name, field in OF_EPISODE.items()}
    kept = [picture for picture, fine in zip(pictures, good, strict=True) if picture is not None and fine]
    arrays = EpisodeArrays(
        **fields,
        goals=np.ascontiguousarray(ends["goal"][good]),
        images=np.concatenate(kept) if kept else None,
        offsets=offsets_of(counts[good]),
        episodes=indices[good],
        runs=runs[good],
        columns={name: np.ascontiguousarray(table[name][rows]) for name in columns},
    )
    return arrays, good


def _decode_ends(found: Sequence[EpisodeBytes], sizes: Sizes) -> tuple[dict[str, npt.NDArray[Any]], BoolArray]:
    """Return the ends of episodes and which are as they should be; those with reasons of one length go together."""
    groups: dict[int, list[int]] = {}
    for number, episode in enumerate(found):
        groups.setdefault(int.from_bytes(episode.end[_REASON : _REASON + 4], "little"), []).append(number)
    ends: dict[str, npt.NDArray[Any]] = {}
    good = np.zeros(len(found), dtype=bool)
    for length, numbers in groups.items():
        final = {"final_observation": sizes.observation, "final_position": sizes.position, "goal": sizes.position}
        layout = layout_of("Episode", "goal", reason=length, **final)
        size = layout.itemsize
        # Without a goal an end may be shorter than with one.
        whole = [len(found[number].end) >= size - layout["goal"].itemsize for number in numbers]
        table = np.frombuffer(b"".join([found[number].end[:size].ljust(size, b"\0") for number in numbers]), layout)
        for name in _OF_END:
            ends.setdefault(name, np.zeros((len(found), *layout[name].shape), layout[name].base))[numbers] = table[name]
        unknown = table["goal_size"] != sizes.position
        ends["goal"][np.array(numbers)[unknown]] = np.nan
        fits = _fits(table) & _finite(table["final_observation"]) & _finite(table["final_position"])
        fits &= unknown | _finite(table["goal"])
        fits &= (table["outcome"] >= min(Outcome)) & (table["outcome"] <= max(Outcome)) & (table["mode"] <= max(Mode))
        good[numbers] = fits & whole
    return ends, good


def _fits(table: npt.NDArray[Any]) -> BoolArray:
    """Return which messages are laid out as their table assumes: they state the lengths of their vectors and texts."""
    layout = table.dtype
    fits = table["encapsulation"] == _LITTLE_ENDIAN
    for name in layout.names or ():
        if f"{name}_size" in (layout.names or ()) and name != "goal":  # a goal may be unknown
            fits &= table[f"{name}_size"] == layout[name].shape[0]
    return np.asarray(fits, dtype=bool)


def _finite(matrix: npt.NDArray[Any]) -> BoolArray:
    finite = np.isfinite(matrix)
    return np.ones(len(matrix), dtype=bool) if finite.all() else np.asarray(finite.all(axis=1), dtype=bool)


def _sums(values: BoolArray, offsets: IntArray) -> IntArray:
    """Return how many of each episode's rows are true."""
    return np.add.reduceat(values, offsets[:-1], dtype=np.int64)
