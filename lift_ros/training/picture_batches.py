"""Mini-batches of pictures: drawn rows of a store, shifted at random, as the numbers that networks see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lift_ros.array_types import Float32Array, IntArray, Picture
from lift_ros.policies.preprocessing import Preprocessing
from lift_ros.training.compositions import Composition, compose
from lift_ros.training.options import TrainingOptions

_BLOCK = 256  # pictures that are encoded at once where all are


class Pictures(Protocol):
    """Pictures as training keeps them, by row; one per step of an episode, and one after its last step."""

    def __len__(self) -> int: ...

    def take(self, rows: IntArray) -> Picture:
        """Return the pictures of these rows."""


@dataclass(frozen=True)
class Changes:
    """How pictures are changed at random in training."""

    shift: int = 0  # pixels
    jitter: float = 0.0  # share of brightness and contrast
    noise: float = 0.0  # deviation

    @classmethod
    def of(cls, options: TrainingOptions) -> Changes:
        """Return what the options ask for."""
        return cls(options.shift, options.jitter, options.pixel_noise)


class PictureBatches:
    """Gives the pictures before and after shortcuts; `rows` says where the picture of each step lies in the store."""

    def __init__(self, store: Pictures, rows: IntArray, preprocessing: Preprocessing, changes: Changes) -> None:
        self._store, self._rows = store, rows
        self.preprocessing = preprocessing
        self._changes = changes

    def rows(self, starts: IntArray, offsets: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the pictures lie that were seen at these steps, and so many steps later.

        Behind each step's picture lies the one that it led to.
        """
        return self._rows[starts], self._rows[starts + offsets - 1] + 1

    def before(
        self, starts: IntArray, rng: np.random.Generator, composition: Composition | None = None
    ) -> Float32Array:
        """Return what was seen at these steps, or would have been where it is composed, changed at random."""
        kept = self._store.take(self._rows[starts])
        if composition is not None:
            goals, firsts = (self._store.take(self._rows[part]) for part in (composition.goals, composition.starts))
            kept[composition.entries] = compose(goals, kept[composition.entries], firsts)
        return self._changed(kept, rng)

    def after(self, starts: IntArray, offsets: IntArray, rng: np.random.Generator) -> Float32Array:
        """Return what was seen so many steps later, changed at random."""
        return self._changed(self._store.take(self.rows(starts, offsets)[1]), rng)

    def every(self) -> Iterator[Float32Array]:
        """Yield all pictures of the store as they are, in blocks."""
        for begin in range(0, len(self._store), _BLOCK):
            rows = np.arange(begin, min(begin + _BLOCK, len(self._store)))
            yield self.preprocessing.scaled(self._store.take(rows))

    def some(self, most: int) -> Iterator[tuple[IntArray, Float32Array]]:
        """Yield at most so many steps, evenly spread, in blocks, with what was seen there."""
        steps = np.unique(np.linspace(0, len(self._rows) - 1, min(most, len(self._rows))).round().astype(np.int64))
        for begin in range(0, len(steps), _BLOCK):
            block = steps[begin : begin + _BLOCK]
            yield block, self.preprocessing.scaled(self._store.take(self._rows[block]))

    def _changed(self, kept: Picture, rng: np.random.Generator) -> Float32Array:
        """Return pictures that are lit otherwise, noisy and shifted, which mean the same.

        So networks learn from hundreds of pictures what things are, instead of the pictures by heart.
        """
        changes = self._changes
        pictures = self.preprocessing.scaled(self._shifted(kept, rng) if changes.shift else kept)
        if changes.jitter:
            contrast, light = changes.jitter * rng.uniform(-1.0, 1.0, (2, len(pictures), 1, 1, 1)).astype(np.float32)
            pictures *= 1.0 + contrast
            pictures += 0.5 * light
        if changes.noise:
            pictures += np.float32(changes.noise) * rng.standard_normal(pictures.shape, dtype=np.float32)
        return pictures

    def _shifted(self, kept: Picture, rng: np.random.Generator) -> Picture:
        """Return pictures, each view of each moved by up to `shift` pixels; what comes in repeats the border."""
        shift, views = self._changes.shift, self.preprocessing.settings.views
        count, height, width, channels = kept.shape
        split = kept.reshape(count, height, views, width // views, channels)
        border = ((0, 0), (shift, shift), (0, 0), (shift, shift), (0, 0))
        padded = np.pad(split, border, mode="edge")
        places = rng.integers(0, 2 * shift + 1, size=(count, views, 2)).tolist()
        moved = np.empty_like(split)
        for number in range(count):
            for view, (down, right) in enumerate(places[number]):
                moved[number, :, view] = padded[number, down : down + height, view, right : right + width // views]
        return moved.reshape(kept.shape)
