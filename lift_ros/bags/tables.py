"""Decoding the bytes of thousands of ordinary episodes at once, with the checks that `RunReader` makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import BoolArray, IntArray
from lift_ros.bags.arrays import OF_EPISODE, OF_STEP, EpisodeArrays, offsets_of
from lift_ros.bags.contents import Sizes
from lift_ros.bags.ordinary import EpisodeBytes, layout_of
from lift_ros.collection.records import Mode, Outcome, Source
from lift_ros.messages.layout import prefix_dtype

_LITTLE_ENDIAN = 0x100
_REASON = prefix_dtype("Episode", {}, "outcome").itemsize  # where the length of an end's reason lies
_REASON += -_REASON % 4
_OF_END = [*OF_EPISODE.values(), "goal", "episode", "steps", "augmentations"]


def decode(
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
    shapes = [None if picture is None else picture.shape[1:] for picture in pictures]
    good &= [shape == shapes[0] for shape in shapes]
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
            ends.setdefault(name, np.zeros(len(found), layout[name]))[numbers] = table[name]
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
