"""All pairs of all episodes in one pass: what a draw needs to know of each start, and the pairs where they fit.

Starts are taken in strips of neighbours. Bounding boxes of the prefix sums tell how far a strip can reach at all, and
a matrix product gives all squared lengths of a strip at once, which together cost a few nanoseconds per pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.shortcuts.rule import Nodes

_STRIP = 32  # starts per strip
_TILE = 1 << 17  # pairs looked at together, so that they stay in the cache
_FAR = 1e4  # starts of a strip further apart than √this times the action radius would lose digits in the product
_BOXES = 1 << 20  # numbers per comparison of bounding boxes


@dataclass(slots=True)
class Rows:
    """Per start: its node and facts about its candidates. A candidate lies `offset` steps after its start."""

    node: IntArray
    count: IntArray  # how many candidates
    last: IntArray  # the largest offset
    low: FloatArray  # the smallest reward
    high: FloatArray  # the largest reward
    best: IntArray  # the first offset with the largest reward
    first: IntArray  # where the offsets of this start begin in `table`
    table: npt.NDArray[np.unsignedinteger] | None  # offsets of all candidates, start by start, where they fit


def make_rows(nodes: Nodes, memory_limit_bytes: int) -> Rows:
    """Return the facts of all starts, with the table of pairs if it takes no more than the given memory."""
    total = int(nodes.ends.sum())
    row_base = np.concatenate(([0], np.cumsum(nodes.ends)))
    node = np.arange(total) + np.repeat(nodes.base - row_base[:-1], nodes.ends)
    rows = Rows(
        node=node,
        count=np.zeros(total, dtype=np.int64),
        last=np.zeros(total, dtype=np.int64),
        low=np.empty(total),
        high=np.empty(total),
        best=np.zeros(total, dtype=np.int64),
        first=np.zeros(total, dtype=np.int64),
        table=None,
    )
    longest = int(nodes.ends.max(initial=0))
    offset_type = np.uint16 if longest <= np.iinfo(np.uint16).max else np.uint32
    every_pair = int((nodes.ends * (nodes.ends + 1) // 2).sum())
    room = min(every_pair, memory_limit_bytes // np.dtype(offset_type).itemsize)
    # Untouched pages of an empty array take no memory, so the room may be generous.
    table: npt.NDArray[np.unsignedinteger] | None = np.empty(room, dtype=offset_type)
    used = 0
    for strips in _strips(nodes, row_base):
        row, counts, offsets, reached = _look(nodes, strips, offset_type)
        begin = np.cumsum(counts) - counts
        rows.count[row] = counts
        rows.last[row] = offsets[begin + counts - 1]
        rows.low[row] = np.minimum.reduceat(reached, begin)
        rows.high[row] = np.maximum.reduceat(reached, begin)
        tops = np.flatnonzero(reached == np.repeat(rows.high[row], counts))
        rows.best[row] = offsets[tops[np.searchsorted(tops, begin)]]
        rows.first[row] = used + begin
        if table is not None and used + len(offsets) <= room:
            table[used : used + len(offsets)] = offsets
        else:
            table = None
        used += len(offsets)
    if table is not None:
        table.resize(used, refcheck=False)
    rows.table = table
    return rows


@dataclass(slots=True)
class _Strips:
    """Neighbouring starts: first node, first row and number of starts of each strip, and how many ends to look at."""

    node: IntArray
    row: IntArray
    starts: IntArray
    width: IntArray


def _strips(nodes: Nodes, row_base: IntArray) -> Iterator[_Strips]:
    """Yield strips of all episodes, those of similar width together."""
    blocks = -(-nodes.ends // _STRIP)
    episode = np.repeat(np.arange(len(blocks)), blocks)
    block_base = np.cumsum(blocks) - blocks
    block = np.arange(len(episode)) - block_base[episode]
    left = nodes.ends[episode] - block * _STRIP
    node = nodes.base[episode] + block * _STRIP
    reach = _reach(nodes, blocks, block_base, episode, block, node, np.minimum(left, _STRIP))
    width = np.minimum(left, reach * _STRIP)
    order = np.argsort(-width, kind="stable")
    row = row_base[:-1][episode] + block * _STRIP
    position = 0
    while position < len(order):
        together = max(1, _TILE // (_STRIP * int(width[order[position]])))
        chosen = order[position : position + together]
        yield _Strips(node[chosen], row[chosen], np.minimum(left, _STRIP)[chosen], width[chosen])
        position += together


def _reach(
    nodes: Nodes,
    blocks: IntArray,
    block_base: IntArray,
    episode: IntArray,
    block: IntArray,
    node: IntArray,
    starts: IntArray,
) -> IntArray:
    """Return how many blocks of ends each strip has to look at: up to the last whose bounding box is near enough."""
    reach = np.ones(len(node), dtype=np.int64)
    padded = np.concatenate((nodes.sums, nodes.sums[-1:]))
    from_low, from_high = _boxes(padded, node, node + starts)
    to_low, to_high = _boxes(padded, node + 1, node + 1 + starts)
    for size in np.unique(blocks[blocks > 1]).tolist():
        members = np.flatnonzero(blocks[episode] == size)
        chunk = max(1, _BOXES // (size * padded.shape[1]))
        for begin in range(0, len(members), chunk):
            some = members[begin : begin + chunk]
            others = block_base[episode[some], None] + np.arange(size)
            gap = np.maximum(to_low[others] - from_high[some, None], from_low[some, None] - to_high[others])
            np.maximum(gap, 0, out=gap)
            near = np.einsum("sbd,sbd->sb", gap, gap) <= nodes.limit
            last = size - 1 - np.argmax(near[:, ::-1], axis=1)
            reach[some] = np.maximum(last - block[some] + 1, 1)
    return reach


def _boxes(sums: FloatArray, begin: IntArray, end: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the bounding boxes of the nodes from begin to end of each strip."""
    edges = np.stack((begin, end), axis=1).ravel()
    return np.minimum.reduceat(sums, edges)[::2], np.maximum.reduceat(sums, edges)[::2]


def _look(
    nodes: Nodes, strips: _Strips, offset_type: type[np.unsignedinteger]
) -> tuple[IntArray, IntArray, npt.NDArray[np.unsignedinteger], FloatArray]:
    """Return the rows of the strips, their numbers of candidates, and the offsets and rewards of all of these."""
    width = int(strips.width.max())
    top = len(nodes.gain) - 1
    start = np.arange(_STRIP)
    starts = np.minimum(strips.node[:, None] + start, top)
    stops = np.minimum(strips.node[:, None] + 1 + np.arange(width), top)
    real = start < strips.starts[:, None]
    level = np.where(real, nodes.level[starts], np.inf)
    gain = np.where(np.arange(width) < strips.width[:, None], nodes.gain[stops], -np.inf)
    found = _minus_half_squares(nodes, starts, stops) >= -nodes.limit / 2
    found &= gain[:, None, :] >= level[:, :, None]
    square = min(_STRIP, width)
    found[:, :, :square] &= np.arange(square) >= start[:, None]  # ends lie after their start
    diagonal = np.arange(square)
    found[:, diagonal, diagonal] = real[:, :square]
    counts = np.count_nonzero(found, axis=2)
    offset = (np.arange(width) - start[:, None] + 1).astype(offset_type)
    offsets = np.broadcast_to(offset, found.shape)[found]
    reached = np.broadcast_to(nodes.reached[stops][:, None, :], found.shape)[found]
    return (strips.row[:, None] + start)[real], counts[real], offsets, reached


def _minus_half_squares(nodes: Nodes, starts: IntArray, stops: IntArray) -> FloatArray:
    """Return −‖y − x‖²/2 = x·y − ‖x‖²/2 − ‖y‖²/2 for all starts x and stops y of each strip, as one product."""
    origin = nodes.sums[starts[:, :1]]
    x = nodes.sums[starts] - origin
    y = nodes.sums[stops] - origin
    squares = np.einsum("sxd,sxd->sx", x, x)
    if squares.max() > _FAR * nodes.limit:
        return _differences(x, y)
    size = x.shape[2]
    left = np.empty((*starts.shape, size + 2))
    left[..., :size] = x
    left[..., size] = -0.5 * squares
    left[..., size + 1] = 1
    right = np.empty((len(stops), size + 2, stops.shape[1]))
    right[:, :size] = y.transpose(0, 2, 1)
    right[:, size] = 1
    right[:, size + 1] = -0.5 * np.einsum("syd,syd->sy", y, y)
    product: FloatArray = left @ right
    return product


def _differences(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the same one axis after the other: slower, but true to the last digit."""
    total = np.zeros((len(x), x.shape[1], y.shape[1]))
    for axis in range(x.shape[2]):
        total -= 0.5 * (y[:, None, :, axis] - x[:, :, None, axis]) ** 2
    return total
