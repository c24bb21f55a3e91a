"""Where each start should head: the shortcut that gains most, also beyond the ball, shortened onto it.

A shortcut longer than λ cannot be made, and where its shortened action would land was never observed, so that no critic
learns from it. Yet its direction is the straight way, while shortcuts within the ball follow the detours of the logging
policy. Since −‖s − s_W‖ is concave, a shortened shortcut gains at least its share of the whole gain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.shortcuts.pairs import Rows
from lift_ros.shortcuts.rule import Nodes

_LANDMARKS = 64  # ends looked at per episode, evenly spread; within the ball the best is known exactly


def make_aims(nodes: Nodes, rows: Rows) -> FloatArray:
    """Return the chord of sums that each start aims along, no longer than the ball allows."""
    stops = rows.node + rows.best
    first = 0
    for base, count in zip(nodes.base.tolist(), nodes.ends.tolist(), strict=True):
        stops[first : first + count] = _episode_stops(nodes, base, count, stops[first : first + count])
        first += count
    return within_ball(nodes, nodes.sums[stops] - nodes.sums[rows.node])


def within_ball(nodes: Nodes, chords: FloatArray) -> FloatArray:
    """Return chords of sums, shortened where they are longer than the ball allows."""
    lengths = np.sqrt(np.einsum("nd,nd->n", chords, chords))
    radius = np.sqrt(nodes.limit)
    shares = np.divide(radius, lengths, out=np.ones_like(lengths), where=lengths > radius)
    shortened: FloatArray = chords * shares[:, None]
    return shortened


def lengthened(nodes: Nodes, rests: FloatArray) -> Nodes:
    """Return nodes whose episodes end where their `rests` lead: what is missing to the goal where a routine stops."""
    last = nodes.base + np.diff(np.append(nodes.base, len(nodes.sums))) - 1
    known = rests.any(axis=1)
    sums, reached = nodes.sums.copy(), nodes.reached.copy()
    sums[last] += rests
    reached[last[known]] = 0.0
    return replace(nodes, sums=sums, reached=reached)


def _episode_stops(nodes: Nodes, base: int, count: int, best: IntArray) -> IntArray:
    """Return the nodes at which the shortcuts end that the starts of one episode aim at."""
    if count < 2:
        return best
    starts = np.arange(base, base + count)
    spread = base + np.unique(np.linspace(1, count, min(count, _LANDMARKS)).round().astype(np.int64))
    top = base + 1 + int(np.argmax(nodes.reached[base + 1 : base + count + 1]))
    stops = np.concatenate((np.broadcast_to(np.append(spread, top), (count, len(spread) + 1)), best[:, None]), axis=1)
    chords = nodes.sums[stops] - nodes.sums[starts][:, None]
    lengths = np.sqrt(np.einsum("nkd,nkd->nk", chords, chords))
    before = nodes.reached[starts]
    before[0] = before[1]  # nobody rewards the first state
    gains = nodes.reached[stops] - before[:, None]
    share = np.divide(np.sqrt(nodes.limit), lengths, out=np.ones_like(lengths), where=lengths**2 > nodes.limit)
    scores = np.where(stops > starts[:, None], gains * share, 0.0)
    scores[:, -1] = np.maximum(scores[:, -1], 0.0) + np.finfo(np.float64).tiny  # where nothing gains, the best stays
    chosen: IntArray = np.take_along_axis(stops, scores.argmax(axis=1)[:, None], axis=1)[:, 0]
    return chosen
