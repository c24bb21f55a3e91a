"""Loading thousands of episodes at the speed of reading their bytes."""

from __future__ import annotations

import mmap
import os
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import BoolArray, IntArray
from lift_ros.bags.arrays import EpisodeArrays, gather, join
from lift_ros.bags.cdr import decode_episode
from lift_ros.bags.faults import EpisodeError, Malformed
from lift_ros.bags.reader import LeftOut, RunReader
from lift_ros.bags.seen import seen_part
from lift_ros.bags.tables import (
    EPISODE_CHANNEL,
    LITTLE_ENDIAN,
    STEP_CHANNEL,
    Content,
    Found,
    Shape,
    Unusual,
    end_table,
    find_episodes,
    step_table,
    strided,
)
from lift_ros.collection.records import Episode, Mode, Outcome, Source
from lift_ros.errors import UserError

_THREADED_SIZE = 128 * 1024  # bytes per episode; below, it costs mostly Python's own work, which threads do not share
_MAX_WORKERS = 8
_COLUMNS = ("observation", "position", "action", "reward", "source")
_CDR = 31  # where a message's bytes begin in its record


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
    skip_bad: bool = False,
) -> EpisodeArrays:
    """Load episodes of one or several runs into contiguous arrays, in the order of runs and episodes.

    `episodes` names those to load from each run; the others are not read. `workers` threads read files; by default as
    many as pay. The checks are those of `RunReader`, and so are the errors.
    """
    if workers is not None and workers < 1:
        raise UserError(f"workers is {workers}; it takes at least 1.")
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    readers = [RunReader(path, skip_bad) for path in paths]
    wanted = [item for run, reader in enumerate(readers) for item in _wanted_files(run, reader, episodes)]
    loaded = _load_files(wanted, workers, images)
    result = _Assembly(readers, images).assemble(wanted, loaded)
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
    return [
        _Wanted(run, f"{directory}/{name}", indices, len(indices) == sizes[name]) for name, indices in files.items()
    ]


def _load_files(
    wanted: list[_Wanted], workers: int | None, images: bool
) -> list[tuple[list[Found], Shape | None] | None]:
    """Return what lies in each file; None where a file is for `RunReader`."""
    if workers is None:
        workers = _useful_workers(wanted)
    if workers == 1:
        return [_load_file(item, images) for item in wanted]
    with ThreadPoolExecutor(workers) as pool:
        if len(wanted) < 2 * workers:  # threads share what costs most in large files, their checksums
            return [_load_file(item, images, pool) for item in wanted]
        return list(pool.map(lambda item: _load_file(item, images), wanted))


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


def _load_file(
    item: _Wanted, images: bool, pool: ThreadPoolExecutor | None = None
) -> tuple[list[Found], Shape | None] | None:
    try:
        descriptor = os.open(item.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            if item.whole:
                return _find(os.read(descriptor, size), item, images, pool)
            # Pages that nobody looks at are not read.
            with mmap.mmap(descriptor, size, prot=mmap.PROT_READ) as content:
                return _find(content, item, images, pool)
        finally:
            os.close(descriptor)
    except (OSError, ValueError, BufferError):
        return None  # RunReader says what is wrong


def _find(
    content: Content, item: _Wanted, images: bool, pool: ThreadPoolExecutor | None
) -> tuple[list[Found], Shape | None] | None:
    wanted = None if item.whole else item.indices
    try:
        found, shape = find_episodes(content, images=images, wanted=wanted, verify=pool.map if pool else map)
    except (Unusual, struct.error):
        return None
    if [episode.index for episode in found] != sorted(item.indices):
        return None
    return found, shape


class _Assembly:
    """Decodes what was found and puts it in order; what is unusual comes from the readers."""

    def __init__(self, readers: list[RunReader], images: bool) -> None:
        self._readers = readers
        self._images = images
        self._shape: Shape | None = None

    def assemble(self, wanted: list[_Wanted], loaded: list[tuple[list[Found], Shape | None] | None]) -> EpisodeArrays:
        self._shape = next((result[1] for result in loaded if result is not None and result[1] is not None), None)
        ordinary: list[Found] = []
        runs: list[int] = []
        places: list[int] = []
        unusual: list[tuple[int, int, int]] = []  # place, run, episode
        place = 0
        for item, result in zip(wanted, loaded, strict=True):
            found = {episode.index: episode for episode in result[0]} if result is not None else {}
            usual = result is not None and result[1] in (None, self._shape)
            for index in item.indices:
                if usual:
                    ordinary.append(found[index])
                    runs.append(item.run)
                    places.append(place)
                else:
                    unusual.append((place, item.run, index))
                place += 1
        arrays, good, present = self._decode(ordinary, np.array(runs, dtype=np.int64))
        unusual += [(places[number], runs[number], ordinary[number].index) for number in np.flatnonzero(~good).tolist()]
        if not unusual:
            return arrays
        slow, slow_runs, slow_places = self._read(sorted(unusual))
        if not slow:
            return arrays
        part = gather(slow, slow_runs, images=self._images)
        if not len(arrays):
            return part
        kept = np.array(places, dtype=np.int64)[present]
        return join([arrays, part], [kept, np.array(slow_places, dtype=np.int64)])

    def _read(self, unusual: list[tuple[int, int, int]]) -> tuple[list[Episode], list[int], list[int]]:
        """Return episodes with steps, their runs and places, from the readers."""
        kept: list[tuple[Episode, int, int]] = []
        for place, run, index in unusual:
            reader = self._readers[run]
            try:
                episode = seen_part(reader.episode(index))
                self._check_shape(episode, reader)
            except EpisodeError as error:
                if not reader.skip_bad:
                    raise
                reader.left_out.append(LeftOut(error.bag, error.episode, error.problem))
                continue
            if episode.steps:
                kept.append((episode, run, place))
        return [entry[0] for entry in kept], [entry[1] for entry in kept], [entry[2] for entry in kept]

    def _check_shape(self, episode: Episode, reader: RunReader) -> None:
        """Refuse an episode of another plant."""
        if not episode.steps:
            return
        step = episode.steps[0]
        shape = Shape(step.observation.size, step.position.size, step.action.size)
        self._shape = self._shape or shape
        if shape != self._shape:
            raise EpisodeError(
                f"its steps have {shape} and those loaded before have {self._shape}",
                bag=reader.path,
                episode=episode.index,
                remedy="Load runs of one plant together.",
            )

    def _decode(self, found: list[Found], runs: IntArray) -> tuple[EpisodeArrays, BoolArray, BoolArray]:
        """Return the arrays, which episodes keep all rules, and which of these have steps and so are in the arrays."""
        shape = self._shape or Shape(0, 0, 0)
        counts = np.array([episode.count for episode in found], dtype=np.int64)
        indices = np.array([episode.index for episode in found], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        ends = _Ends(found, shape)
        table = _packed(found, shape, offsets)
        steps = {name: np.ascontiguousarray(table[name]) for name in _COLUMNS}
        sources = steps["source"]
        bad = _bad_rows(table, steps, shape)
        bad |= table["episode"] != np.repeat(indices, counts)
        bad |= table["step"] != np.arange(len(table)) - np.repeat(offsets[:-1], counts)
        augmentations = _sums(sources == int(Source.AUGMENTOR), offsets)
        good = ends.good & (_sums(bad, offsets) == 0)
        good &= (ends.steps == counts) & (ends.augmentations == augmentations) & (ends.episodes == indices)
        images, image_rows = self._decode_images(found, counts)
        good &= image_rows
        keep = np.repeat(good, counts)
        # A recovered episode ends with the observation before its last step.
        cut = good & ends.cut & (counts > 0)
        last = offsets[1:][cut] - 1
        ends.final_observations[cut] = steps["observation"][last]
        ends.final_positions[cut] = steps["position"][last]
        keep[last] = False
        left = np.where(cut, counts - 1, counts)
        present = good & (left > 0)
        whole = bool(keep.all())

        def kept(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return values if whole else values[keep]

        arrays = EpisodeArrays(
            observations=kept(steps["observation"]),
            actions=kept(steps["action"]),
            rewards=kept(steps["reward"]),
            positions=kept(steps["position"]),
            sources=kept(sources),
            images=None if images is None else kept(images),
            offsets=np.concatenate([[0], np.cumsum(left[present])]).astype(np.int64),
            final_observations=ends.final_observations[present],
            final_positions=ends.final_positions[present],
            goals=ends.goals[present],
            outcomes=ends.outcomes[present],
            modes=ends.modes[present],
            seeds=ends.seeds[present],
            episodes=indices[present],
            runs=runs[present],
        )
        return arrays, good, present

    def _decode_images(self, found: list[Found], counts: IntArray) -> tuple[npt.NDArray[np.uint8] | None, BoolArray]:
        """Return all images, and whose are of the size that the first has."""
        fits = np.ones(len(found), dtype=bool)
        sizes = [episode.image_shape for episode in found if episode.count]
        if not self._images or not sizes or sizes[0] == (0, 0):
            if self._images:
                fits = np.array([episode.image_shape == (0, 0) for episode in found], dtype=bool)
            return None, fits
        height, width = sizes[0]
        images = np.empty((int(counts.sum()), height, width, 3), dtype=np.uint8)
        start = 0
        for number, episode in enumerate(found):
            fits[number] = not episode.count or episode.image_shape == sizes[0]
            if fits[number] and episode.count:
                pixels = np.frombuffer(episode.images, np.uint8).reshape(episode.count, height, width, 3)
                images[start : start + episode.count] = pixels
            start += episode.count
        return images, fits


def _packed(found: list[Found], shape: Shape, offsets: IntArray) -> npt.NDArray[Any]:
    """Return the records of all steps next to each other, cut off behind what is needed of them."""
    layout = step_table(shape)
    packed = np.empty(int(offsets[-1]), f"V{layout.itemsize}")
    start = 0
    for episode in found:
        if episode.count:
            stop = start + episode.count
            packed[start:stop] = np.frombuffer(episode.steps, strided(layout, episode.stride))["head"]
            start = stop
    return packed.view(layout)


def _bad_rows(table: npt.NDArray[Any], columns: dict[str, npt.NDArray[Any]], shape: Shape) -> BoolArray:
    """Return which step records are laid out otherwise than expected or hold what they must not hold."""
    bad = (table["opcode"] != 5) | (table["channel"] != STEP_CHANNEL) | (table["encoding"] != LITTLE_ENDIAN)
    bad |= table["frame_size"] != 1
    bad |= table["observation_size"] != shape.observation
    bad |= table["position_size"] != shape.position
    bad |= table["action_size"] != shape.action
    for name in ("observation", "position", "action"):
        finite = np.isfinite(columns[name])
        if not finite.all():
            bad |= ~finite.all(axis=1)
    bad |= np.isinf(columns["reward"])
    bad |= (columns["source"] != int(Source.LOGGING_POLICY)) & (columns["source"] != int(Source.AUGMENTOR))
    return np.asarray(bad, dtype=bool)


def _sums(values: BoolArray, offsets: IntArray) -> IntArray:
    """Return how many of each episode's rows are true."""
    total = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(total[offsets[1:]] - total[offsets[:-1]], dtype=np.int64)


class _Ends:
    """The ends of episodes, decoded together where they have no reason, which most have not."""

    def __init__(self, found: list[Found], shape: Shape) -> None:
        count = len(found)
        layout = end_table(shape)
        width = layout.itemsize
        records = [episode.end[:width] for episode in found]
        table = np.frombuffer(b"".join([record.ljust(width, b"\0") for record in records]), layout)
        self.episodes = table["episode"].astype(np.int64)
        self.steps = table["steps"].astype(np.int64)
        self.augmentations = table["augmentations"].astype(np.int64)
        self.outcomes = table["outcome"].copy()
        self.modes = table["mode"].copy()
        self.seeds = table["seed"].astype(np.uint64)
        self.final_observations = table["final_observation"].copy()
        self.final_positions = table["final_position"].copy()
        known = table["goal_size"] == shape.position
        self.goals = np.where(known[:, None], table["goal"], np.nan)
        self.cut = np.zeros(count, dtype=bool)
        usual = (table["opcode"] == 5) & (table["channel"] == EPISODE_CHANNEL) & (table["encoding"] == LITTLE_ENDIAN)
        usual &= (table["frame_size"] == 1) & (table["reason_size"] == 1)
        usual &= (table["final_observation_size"] == shape.observation) & (
            table["final_position_size"] == shape.position
        )
        usual &= (self.outcomes >= min(Outcome)) & (self.outcomes <= max(Outcome)) & (self.modes <= max(Mode))
        usual &= np.isfinite(self.final_observations).all(axis=1) & np.isfinite(self.final_positions).all(axis=1)
        self.good = np.asarray(usual, dtype=bool)
        for number in np.flatnonzero(~usual).tolist():
            self._decode(number, found[number].end, shape)

    def _decode(self, number: int, record: bytes, shape: Shape) -> None:
        try:
            end = decode_episode(memoryview(record)[_CDR:])
        except Malformed:
            return
        episode = end.episode
        self.cut[number] = cut = episode.outcome == Outcome.RECOVERED and not episode.final_observation.size
        fits = (episode.final_observation.size, episode.final_position.size) == (shape.observation, shape.position)
        if not cut and not (fits and np.isfinite([*episode.final_observation, *episode.final_position]).all()):
            return
        self.episodes[number], self.steps[number], self.augmentations[number] = (
            episode.index,
            end.steps,
            end.augmentations,
        )
        self.outcomes[number], self.modes[number], self.seeds[number] = episode.outcome, episode.mode, episode.seed
        self.goals[number] = episode.goal if episode.goal.size == shape.position else np.nan
        if not cut:
            self.final_observations[number] = episode.final_observation
            self.final_positions[number] = episode.final_position
        self.good[number] = True
