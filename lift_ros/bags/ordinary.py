"""Finding the episodes of a file that `RunWriter` has written, without decoding message by message.

Steps of a run have one layout up to the fields that training needs, so these bytes are gathered as they are and
decoded later for all episodes at once. Whatever looks different from what `RunWriter` writes is left to `RunReader`,
which reads anything and names what is wrong.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import IntArray, Picture
from lift_ros.bags.chunks import INT64, EpisodeChunk, Unusual, end_of, episode_chunks
from lift_ros.bags.contents import Sizes
from lift_ros.bags.mcap_records import HEAD, MESSAGE_HEAD
from lift_ros.collection.records import Episode, Step
from lift_ros.messages.layout import Kind, parts, prefix_dtype
from lift_ros.messages.records import decode_episode, decode_step
from lift_ros.positioning.pictures import PictureFormat

_PICTURE_HEAD = struct.Struct("<II8sII")  # before pixels: width, length of the encoding, encoding, row, pixels' size
_LONGEST_END = 2**14  # bytes of an end that are kept; what follows are the pixels of its picture
_NO_PICTURE = struct.pack("<III4sII", 0, 0, 1, b"", 0, 0)  # height and width 0, an empty encoding, no pixels


@lru_cache(maxsize=64)
def layout_of(message: str, upto: str, **sizes: int) -> np.dtype[Any]:
    """Return how the first fields of a message lie."""
    return prefix_dtype(message, sizes, upto)


@dataclass(slots=True)
class EpisodeBytes:
    """An episode's messages: of its steps the first bytes, laid out as `layout` says, and of its end all but pixels."""

    index: int
    steps: npt.NDArray[np.void]
    layout: np.dtype[Any]
    end: bytes
    images: Picture | None


class Locator:
    """Gathers the bytes of episodes; how steps are laid out is known from the first that is seen."""

    def __init__(self, columns: Sequence[str], images: bool) -> None:
        self.sizes: Sizes | None = None
        self.layout: np.dtype[Any] | None = None
        self._columns = columns
        self._images = images
        self._picture: PictureFormat | None = None  # of the steps' pictures, where they have some

    def locate(
        self, data: memoryview, wanted: Collection[int] | None = None, mapping: Callable[..., Iterable[Any]] = map
    ) -> Iterator[EpisodeBytes]:
        """Yield the episodes of a file, only the wanted ones if some are named.

        `mapping` maps the check of a chunk over chunks. Raises NOT_ORDINARY where the file is anything but ordinary.
        """
        chunks = episode_chunks(data, wanted)
        for chunk, content in zip(chunks, mapping(EpisodeChunk.checked, chunks), strict=True):
            if wanted is None or chunk.end(content)[0] in wanted:
                yield self._take(chunk, content)
            chunk.let_go()

    def _take(self, chunk: EpisodeChunk, records: memoryview) -> EpisodeBytes:
        index, end = chunk.end(records)
        starts = chunk.starts()
        layout = self.layout or self._learn_layout(records, int(starts[0]))
        steps = _windows(records, layout.itemsize, MESSAGE_HEAD.size)[starts]
        images = self._pictures(records, starts) if self._images else None
        begin = end + MESSAGE_HEAD.size
        message = bytes(records[begin : min(end_of(records, end), begin + _LONGEST_END)])
        return EpisodeBytes(index, steps, layout, message, images)

    def _learn_layout(self, data: memoryview, start: int) -> np.dtype[Any]:
        step = decode_step(data[start + MESSAGE_HEAD.size : end_of(data, start)])
        sizes: dict[str, int] = {}
        for name in Step.__slots__:
            value = getattr(step, name)
            if isinstance(value, str) and name in self._columns:
                raise Unusual  # texts have no place in a table of numbers
            if isinstance(value, str | np.ndarray):
                sizes[name] = len(value.encode()) + 1 if isinstance(value, str) else value.size
        layouts = [layout_of("Step", name, **sizes) for name in ("source", *self._columns)]
        if self._images and parts("Step")[-1].kind is not Kind.PICTURE:
            raise Unusual  # below, pictures are what ends a record
        self.sizes = Sizes.of(step)
        self._picture = None if step.image is None else PictureFormat.of(step.image)
        self.layout = max(layouts, key=lambda layout: layout.itemsize)
        return self.layout

    def _pictures(self, records: memoryview, starts: IntArray) -> Picture | None:
        """Return the pictures of steps as one array; all are of the format that the first has, or there is none."""
        kind = self._picture
        places = _pixels(records, starts, kind)
        if kind is None:
            return None
        pixels = _windows(records, _size_of(kind))[places].view(kind.dtype.newbyteorder("<"))
        pictures = pixels.reshape(len(starts), *kind.shape).astype(kind.dtype, copy=False)
        return _finite(pictures)


def episode_pictures(chunk: EpisodeChunk, content: memoryview) -> tuple[Episode, list[Picture]]:
    """Return the end of the episode in a chunk, without steps, and its steps' pictures; bytes are not copied."""
    starts, (_, end) = chunk.starts(), chunk.end(content)
    first = decode_step(content[int(starts[0]) + MESSAGE_HEAD.size : end_of(content, int(starts[0]))])
    if first.image is None or parts("Step")[-1].kind is not Kind.PICTURE:
        raise Unusual
    kind = PictureFormat.of(first.image)
    stored, count = kind.dtype.newbyteorder("<"), math.prod(kind.shape)
    aligned = kind.dtype.itemsize == 1
    pixels = [np.frombuffer(content, stored, count, place) for place in _pixels(content, starts, kind).tolist()]
    pictures = [_finite(each.reshape(kind.shape).astype(kind.dtype, copy=not aligned)) for each in pixels]
    return decode_episode(content[end + MESSAGE_HEAD.size : end_of(content, end)]).episode, pictures


def _finite(pictures: Picture) -> Picture:
    if pictures.dtype.kind == "f" and not np.isfinite(pictures).all():
        raise Unusual
    return pictures


def _size_of(kind: PictureFormat) -> int:
    return math.prod(kind.shape) * kind.dtype.itemsize


def _pixels(records: memoryview, starts: IntArray, kind: PictureFormat | None) -> IntArray:
    """Return where the pixels of steps begin, which end their records; Unusual where one is not of this format."""
    ends = starts + HEAD.size + _windows(records, 8, 1)[starts].view(INT64)
    if kind is None:
        expected, size = _NO_PICTURE, 0
    else:
        size = _size_of(kind)
        encoding = kind.encoding.encode()
        expected = _PICTURE_HEAD.pack(kind.width, len(encoding) + 1, encoding, size // kind.height, size)
    heads = _windows(records, len(expected))[ends - size - len(expected)]
    if (heads != np.frombuffer(expected, heads.dtype)).any():
        raise Unusual
    return np.asarray(ends - size, dtype=np.int64)


def _windows(data: memoryview, width: int, offset: int = 0) -> npt.NDArray[np.void]:
    """Return what lies in `width` bytes from `offset` bytes behind each place in the data on, without copying."""
    return np.ndarray((len(data) - width - offset + 1,), np.dtype((np.void, width)), data, offset, (1,))
