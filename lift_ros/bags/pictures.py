"""Pictures of many episodes for training: processed once, kept in memory or in a file, and taken by row."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lift_ros.array_types import IntArray, Picture
from lift_ros.bags.arrays import EpisodeArrays, offsets_of
from lift_ros.bags.chunks import NOT_ORDINARY, EpisodeChunk, episode_chunks
from lift_ros.bags.contents import seen_part
from lift_ros.bags.faults import BagError, EpisodeError
from lift_ros.bags.mcap_records import file_bytes
from lift_ros.bags.ordinary import episode_pictures
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.progress import Progress

Process = Callable[[Picture], Picture]

_WORKERS = 2  # threads that read and process episodes while another is stored
_REMEDY = (
    "Leave this episode out, record with a plant that sends a picture with every observation, or train on values "
    "(sees.augmentor: values)."
)
_CHANGED = "Load the runs again; they have changed since."


class PictureStore:
    """Processed pictures of many episodes: of each episode one per step, then the one after its last step.

    They lie in memory where they take at most `memory_limit` bytes, or else in a file without a name, of which only
    those rows are read that are taken.
    """

    def __init__(
        self, rows: int, shape: Sequence[int], dtype: Any, *, memory_limit: int, folder: Path | None = None
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.digest = hashlib.sha256().hexdigest()
        self._rows = rows
        self._row_size = math.prod(self.shape) * self.dtype.itemsize
        self._array: Picture | None = None
        self._file: BinaryIO | None = None
        if rows * self._row_size <= memory_limit:
            self._array = np.empty((rows, *self.shape), self.dtype)
        else:
            self._file = _make_file(rows * self._row_size, folder)
            self._finalizer = weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return self._rows

    @property
    def in_memory(self) -> bool:
        """Whether the pictures lie in memory and not in a file."""
        return self._array is not None

    def take(self, rows: IntArray) -> Picture:
        """Return the pictures of these rows in this order, as a new array."""
        if len(rows) and not 0 <= int(np.min(rows)) <= int(np.max(rows)) < self._rows:
            raise IndexError(f"rows from {np.min(rows)} to {np.max(rows)} of a store of {self._rows} pictures")
        if self._array is not None:
            return self._array[rows]
        if not len(rows):
            return np.empty((0, *self.shape), self.dtype)
        taken = np.empty((len(rows), *self.shape), self.dtype)
        view = taken.reshape(-1).view(np.uint8).data
        breaks = (np.flatnonzero(np.diff(rows) != 1) + 1).tolist()
        for first, last in pairwise([0, *breaks, len(rows)]):  # rows that follow one another are one piece
            self._read(int(rows[first]), view[first * self._row_size : last * self._row_size])
        return taken

    def close(self) -> None:
        """Give the memory or the file back; nothing can be taken any more."""
        self._array = None
        if self._file is not None:
            self._file.close()

    def fill(self, blocks: Iterable[Picture]) -> None:
        """Store blocks of processed pictures one after the other, and note their digest."""
        digest = hashlib.sha256()
        row = 0
        for block in blocks:
            digest.update(block.data)
            if self._array is not None:
                self._array[row : row + len(block)] = block
            else:
                self._write(row, block)
            row += len(block)
        if row != self._rows:
            raise ValueError(f"{row} pictures came for a store of {self._rows}")
        self.digest = digest.hexdigest()

    @property
    def _descriptor(self) -> int:
        if self._file is None:
            raise ValueError("the store of pictures is closed")
        return self._file.fileno()

    def _read(self, row: int, view: memoryview) -> None:
        offset, done = row * self._row_size, 0
        while done < len(view):
            count = os.preadv(self._descriptor, [view[done:]], offset + done)
            if not count:
                raise ValueError(f"row {row} of the store of pictures was never filled")
            done += count

    def _write(self, row: int, block: Picture) -> None:
        view = block.reshape(-1).view(np.uint8).data
        offset, done = row * self._row_size, 0
        try:
            while done < len(view):
                done += os.pwrite(self._descriptor, view[done:], offset + done)
        except OSError as error:
            left = self._rows * self._row_size - offset
            raise UserError(f"pictures cannot be stored ({error.strerror}): {left} bytes more are needed") from error


def _make_file(size: int, folder: Path | None) -> BinaryIO:
    """Return a file without a name for so many bytes."""
    place = Path(tempfile.gettempdir()) if folder is None else folder
    try:
        status = os.statvfs(place)
        free = status.f_bavail * status.f_frsize
        if free < size:
            raise UserError(
                f"the pictures take {size} bytes and {free} are free in {place}: free space, name a folder on another "
                "disk, or let them be smaller (picture.size, picture.grey)"
            )
        return tempfile.TemporaryFile(dir=place, prefix="lift_pictures_", buffering=0)
    except OSError as error:
        remedy = "name a folder that you may write to"
        raise UserError(f"{place} cannot hold pictures ({error.strerror}); {remedy}") from error


def store_pictures(
    paths: Sequence[str | Path],
    arrays: EpisodeArrays,
    process: Process,
    shape: Sequence[int],
    dtype: Any,
    *,
    memory_limit: int,
    folder: Path | None = None,
    progress: bool = False,
) -> PictureStore:
    """Read the pictures of the episodes of `arrays`, loaded from the runs `paths`, episode by episode.

    Step i of the e-th episode is row offsets[e] + e + i, and what was seen after its last step is row
    offsets[e + 1] + e. `process` makes of each picture one of this shape and type; threads may call it at once.
    """
    store = PictureStore(arrays.steps + len(arrays), shape, dtype, memory_limit=memory_limit, folder=folder)
    source = _Source([RunReader(path, skip_bad=True) for path in paths], arrays, _Processing(process, store))
    with Progress(len(store), "pictures", "pictures", enabled=progress) as shown, closing(source.blocks()) as blocks:
        store.fill(_counted(blocks, shown))
    return store


def store_episode_pictures(
    episodes: Sequence[Episode],
    process: Process,
    shape: Sequence[int],
    dtype: Any,
    *,
    memory_limit: int,
    folder: Path | None = None,
) -> PictureStore:
    """Return the store of episodes in memory, in the rows that `episodes_to_arrays` leads to."""
    kept = [episode for episode in map(seen_part, episodes) if episode.steps]
    rows = int(offsets_of([len(episode.steps) + 1 for episode in kept])[-1])
    store = PictureStore(rows, shape, dtype, memory_limit=memory_limit, folder=folder)
    processing = _Processing(process, store)
    store.fill(processing.block(pictures_of(episode, "in memory")) for episode in kept)
    return store


def pictures_of(episode: Episode, bag: Path | str) -> list[Picture]:
    """Return an episode's pictures, one per step and the last one; raises BagError where one is missing."""
    found = [*(step.image for step in episode.steps), episode.final_image]
    present = [picture for picture in found if picture is not None]
    if len(present) < len(found):
        number = next(number for number, picture in enumerate(found) if picture is None)
        within: dict[str, Any] = {"bag": bag, "episode": episode.index, "remedy": _REMEDY}
        if number == len(episode.steps):
            raise BagError("there is no picture after its last step", **within)
        raise BagError("this step has no picture", step=number, **within)
    return present


def _counted(blocks: Iterable[Picture], shown: Progress) -> Iterator[Picture]:
    for block in blocks:
        yield block
        shown.advance(len(block))


@dataclass(frozen=True)
class _Processing:
    """Makes blocks for a store."""

    process: Process
    store: PictureStore

    def block(self, pictures: Sequence[Picture]) -> Picture:
        """Return pictures as they are stored."""
        shape, dtype = self.store.shape, self.store.dtype
        block = np.empty((len(pictures), *shape), dtype)
        for row, picture in zip(block, pictures, strict=True):
            processed = self.process(picture)
            if processed.shape != shape or processed.dtype != dtype:
                found = f"{processed.dtype} of shape {processed.shape}"
                raise ValueError(f"a picture was made {found}, and {dtype} of shape {shape} are stored")
            row[...] = processed
        return block


@dataclass(frozen=True)
class _Stretch:
    """Episodes that follow one another in one file, with the number of their steps."""

    reader: RunReader
    name: str
    steps: dict[int, int]

    def follows(self, reader: RunReader, name: str | None, episode: int) -> bool:
        """Whether an episode of a file comes after these."""
        return reader is self.reader and name == self.name and episode > max(self.steps)


@dataclass(frozen=True)
class _Source:
    """Reads episodes in order, some ahead by threads; what is unusual comes from the readers."""

    readers: list[RunReader]
    arrays: EpisodeArrays
    processing: _Processing

    def blocks(self) -> Generator[Picture, None, None]:
        """Yield a block for each episode."""
        under_way: _Stretch | None = None
        left: deque[int] = deque()
        for stretch, found in self._looks():
            if stretch is not under_way:
                under_way, left = stretch, deque(stretch.steps)
            if found is None:
                yield from (self._read(stretch, episode) for episode in left)
            elif left and found[0] == left[0]:
                left.popleft()
                yield found[1]

    def _looks(self) -> Iterator[tuple[_Stretch, tuple[int, Picture] | None]]:
        """Yield episodes and their blocks as far as they are found the fast way, then None for each stretch's end."""
        waiting: deque[tuple[_Stretch, Future[tuple[int, Picture] | None] | None]] = deque()
        with ThreadPoolExecutor(_WORKERS) as pool:
            for stretch in self._stretches():
                for chunk in _chunks_of(stretch):
                    waiting.append((stretch, pool.submit(self._look, stretch, chunk)))
                    while len(waiting) > _WORKERS:
                        yield from _looked(*waiting.popleft())
                waiting.append((stretch, None))
            while waiting:
                yield from _looked(*waiting.popleft())

    def _stretches(self) -> Iterator[_Stretch]:
        under_way: _Stretch | None = None
        counts = np.diff(self.arrays.offsets)
        for run, episode, count in zip(self.arrays.runs, self.arrays.episodes.tolist(), counts.tolist(), strict=True):
            reader = self.readers[run]
            name = reader.file_names.get(episode)
            if under_way is not None and under_way.follows(reader, name, episode):
                under_way.steps[episode] = count
                continue
            if under_way is not None:
                yield under_way
            under_way = _Stretch(reader, name or "", {episode: count})
        if under_way is not None:
            yield under_way

    def _look(self, stretch: _Stretch, chunk: EpisodeChunk) -> tuple[int, Picture] | None:
        """Return number and block of the episode in a chunk; None where it is none of the stretch, or unusual."""
        try:
            content = chunk.checked()
            number, _ = chunk.end(content)
            if number not in stretch.steps:
                return None
            episode, pictures = episode_pictures(chunk, content)
        except NOT_ORDINARY:
            return None
        if episode.final_observation.size:  # or else what was seen last comes with the last step
            pictures += [] if episode.final_image is None else [episode.final_image]
        if len(pictures) != stretch.steps[number] + 1:
            return None
        block = self.processing.block(pictures)
        chunk.let_go()
        return number, block

    def _read(self, stretch: _Stretch, number: int) -> Picture:
        """Return the block of an episode as its reader reads it, which tells what is wrong."""
        reader, bag = stretch.reader, stretch.reader.directory / stretch.name
        try:
            episode = seen_part(reader.episode(number))
        except EpisodeError as error:
            faults = [entry.reason for entry in reader.left_out if entry.bag == str(bag)]  # of its file
            raise EpisodeError("; ".join([error.problem, *faults]), bag=bag, episode=number) from error
        if len(episode.steps) != stretch.steps[number]:
            problem = f"it has {len(episode.steps)} steps to learn from, and {stretch.steps[number]} were loaded"
            raise BagError(problem, bag=bag, episode=number, remedy=_CHANGED)
        return self.processing.block(pictures_of(episode, bag))


def _chunks_of(stretch: _Stretch) -> list[EpisodeChunk]:
    """Return the chunks of a file in which episodes may lie; none where it is for its reader."""
    try:
        data = file_bytes(stretch.reader.directory / stretch.name, whole=False)
        return episode_chunks(data, stretch.steps)
    except (OSError, *NOT_ORDINARY):
        return []


def _looked(
    stretch: _Stretch, look: Future[tuple[int, Picture] | None] | None
) -> Iterator[tuple[_Stretch, tuple[int, Picture] | None]]:
    found = None if look is None else look.result()
    if look is None or found is not None:
        yield stretch, found
