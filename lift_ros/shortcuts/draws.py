"""Draws of candidates at a cost that does not grow with the episodes.

A candidate is proposed uniformly and accepted with its weight relative to the largest of its start. That needs a few
facts per start and no cumulative sums, is exact, and works alike on precomputed pairs and on the fly.
"""

from __future__ import annotations

import numpy as np

from lift_ros.array_types import BoolArray, FloatArray, IntArray
from lift_ros.shortcuts.pairs import Rows
from lift_ros.shortcuts.rule import Nodes

_ROUNDS = (1, 2, 4, 8, 16, 32, 64)  # proposals per start and round; whoever is left is drawn from all its candidates
_TOGETHER = 1 << 20  # candidates enumerated at once


class Draws:
    """Draws for each of many starts one of its candidates by the strategy."""

    def __init__(self, nodes: Nodes, rows: Rows, strategy: str) -> None:
        self._rows = rows
        self._nodes = nodes
        self._strategy = strategy
        # What one draw needs lies side by side, since a look at memory far away costs more than all arithmetic.
        span = rows.last if rows.table is None else rows.count
        self._facts: FloatArray = np.column_stack((rows.node, rows.first, span, rows.low, rows.high))
        if rows.table is None:
            self._record: FloatArray = np.column_stack((nodes.sums, nodes.level, nodes.gain, nodes.reached))

    def offsets(self, row: IntArray, rng: np.random.Generator) -> IntArray:
        """Return how many steps after its start the candidate drawn for each row lies."""
        if self._strategy == "best":
            return np.take(self._rows.best, row)
        result = np.empty(len(row), dtype=np.int64)
        facts = np.take(self._facts, row, axis=0)
        pending = np.arange(len(row))
        for proposals in _ROUNDS:
            draws = rng.random((2, len(pending), proposals))
            offset, accepted = self._propose(facts, draws[0], draws[1])
            flat = accepted.argmax(axis=1)
            flat += np.arange(0, accepted.size, proposals)
            result[pending] = np.take(offset, flat)
            refused = np.flatnonzero(~np.take(accepted, flat))
            if not len(refused):
                return result
            pending = np.take(pending, refused)
            facts = np.take(facts, refused, axis=0)
        result[pending] = self._enumerate(row[pending], rng)
        return result

    def _propose(self, facts: FloatArray, place: FloatArray, draw: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return one or more proposals per start, and whether they are accepted."""
        node, first, span, low, high = (column[:, None] for column in facts.T)
        place *= span
        offset = place.astype(np.int64)
        start = node.astype(np.int64)
        if self._rows.table is None:
            offset += 1
            return offset, self._accepted_on_the_fly(start, offset, low, high, draw)
        offset += first.astype(np.int64)
        offset = np.take(self._rows.table, offset).astype(np.int64)
        if self._strategy == "uniform":
            return offset, np.ones(offset.shape, dtype=bool)
        return offset, self._accepted(np.take(self._nodes.reached, start + offset), low, high, draw)

    def _accepted_on_the_fly(
        self, start: IntArray, offset: IntArray, low: FloatArray, high: FloatArray, draw: FloatArray
    ) -> BoolArray:
        size = self._nodes.sums.shape[1]
        begin = np.take(self._record, start, axis=0)
        end = np.take(self._record, start + offset, axis=0)
        chord = end[..., :size] - begin[..., :size]
        accepted: BoolArray = np.einsum("...d,...d->...", chord, chord) <= self._nodes.limit
        accepted &= end[..., size + 1] >= begin[..., size]
        accepted |= offset == 1
        if self._strategy != "uniform":
            accepted &= self._accepted(end[..., size + 2], low, high, draw)
        return accepted

    def _accepted(self, reached: FloatArray, low: FloatArray, high: FloatArray, draw: FloatArray) -> BoolArray:
        """Whether a draw from [0, 1) lies below the candidate's weight relative to the largest of its start."""
        accepted: BoolArray
        if self._strategy == "inverse_distance":
            accepted = draw * reached > high
            accepted |= reached == high
        else:
            accepted = draw * (high - low) < reached - low
            accepted |= low == high
        return accepted

    def _enumerate(self, row: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw from all candidates of each row; for the few whose proposals keep being refused."""
        span = self._facts[row, 2].astype(np.int64)
        offsets = np.empty(len(row), dtype=np.int64)
        begin = 0
        while begin < len(row):
            end = begin + max(1, int(np.searchsorted(np.cumsum(span[begin:]), _TOGETHER)))
            offsets[begin:end] = self._enumerate_together(row[begin:end], span[begin:end], rng)
            begin = end
        return offsets

    def _enumerate_together(self, row: IntArray, span: IntArray, rng: np.random.Generator) -> IntArray:
        rows = self._rows
        owner = np.repeat(np.arange(len(row)), span)
        stop = np.cumsum(span)
        index = np.arange(len(owner)) - (stop - span)[owner]
        start = rows.node[row][owner]
        if rows.table is not None:
            offset = rows.table[rows.first[row][owner] + index].astype(np.int64)
            mass = np.ones(len(owner))
        else:
            offset = index + 1
            mass = self._nodes.admissible(start, start + offset).astype(np.float64)
        mass *= self._mass(self._nodes.reached[start + offset], rows.low[row][owner], rows.high[row][owner])
        cumulative = np.concatenate(([0.0], np.cumsum(mass)))
        before, after = cumulative[stop - span], cumulative[stop]
        target = before + rng.random(len(row)) * (after - before)
        chosen = np.searchsorted(cumulative, target, side="right") - 1
        result: IntArray = offset[np.clip(chosen, stop - span, stop - 1)]
        return result

    def _mass(self, reached: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the weights of candidates relative to the largest of their start."""
        if self._strategy == "uniform":
            return np.ones_like(reached)
        if self._strategy == "inverse_distance":
            return np.where(reached == high, 1.0, high / np.where(reached == 0, -1.0, reached))
        equal = low == high
        return np.where(equal, 1.0, (reached - low) / np.where(equal, 1.0, high - low))
