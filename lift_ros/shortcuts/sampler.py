"""Whole mini-batches of shortcuts at a cost per draw that does not grow with the episodes.

A candidate is proposed uniformly and accepted with its weight relative to the largest of its start. That needs a few
facts per start and no cumulative sums, is exact, and works alike on precomputed pairs and on the fly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.errors import UserError
from lift_ros.seeds import generator
from lift_ros.shortcuts.pairs import Rows, make_rows
from lift_ros.shortcuts.rule import STRATEGIES, BoolArray, FloatArray, IntArray, Rule, make_nodes

Float32Array = npt.NDArray[np.float32]

_ROUNDS = (2, 8, 32, 128)  # proposals per start and round; whoever is left then is drawn from all its candidates
_RAGGED = 1 << 20  # candidates enumerated together


@dataclass(slots=True)
class ShortcutBatch:
    """A mini-batch of transitions as contiguous float32 arrays, one row per transition; all intervals are 1."""

    observations: Float32Array  # [batch, ...]
    actions: Float32Array  # [batch, action size]
    rewards: Float32Array  # [batch, 1]
    next_observations: Float32Array  # [batch, ...]
    next_actions: Float32Array  # [batch, action size] what was done next; zero after a terminal state
    terminals: Float32Array  # [batch, 1]
    starts: IntArray  # [batch] the flat step i at which each shortcut begins
    offsets: IntArray  # [batch] j − i

    def __len__(self) -> int:
        return len(self.actions)


class ShortcutSampler:
    """Draws mini-batches of shortcuts from episodes given as flat arrays.

    Episode e holds the steps offsets[e] to offsets[e+1]. The start is uniform over all transitions or, with
    `episodes_first`, over episodes and then over the transitions of the chosen one. Pairs are computed beforehand if
    they take at most `memory_limit_bytes`, else each draw decides on the fly, with the same distribution. The strategy
    `none` draws plain transitions.
    """

    def __init__(
        self,
        observations: npt.ArrayLike,
        actions: npt.ArrayLike,
        rewards: npt.ArrayLike,
        offsets: npt.ArrayLike,
        terminated: npt.ArrayLike,
        final_observations: npt.ArrayLike | None = None,
        *,
        action_radius: float,
        gamma: float = 0.99,
        C: float = 0.0,  # noqa: N803
        strategy: str = "weighted",
        episodes_first: bool = False,
        memory_limit_bytes: int = 1 << 29,
        seed: int = 0,
        rng: np.random.Generator | None = None,
    ) -> None:
        if strategy not in (*STRATEGIES, "none"):
            raise UserError(f"strategy is {strategy!r}, but must be one of {', '.join(STRATEGIES)} or none.")
        if memory_limit_bytes < 0:
            raise UserError(f"memory_limit_bytes is {memory_limit_bytes}, but must not be negative; 0 stores no pairs.")
        self.strategy = strategy
        self.episodes_first = episodes_first
        self._rng = generator(seed, "shortcuts") if rng is None else rng
        rule = Rule(gamma, C, action_radius, "uniform" if strategy == "none" else strategy)
        self._nodes = make_nodes(actions, rewards, offsets, terminated, rule)
        self._actions = _float32(np.asarray(actions).reshape(-1, self._nodes.sums.shape[1]))
        self._rewards = _float32(np.asarray(rewards).reshape(-1))
        self._observations = _kept(observations, len(self._actions))
        self._finals = self._checked_finals(final_observations)
        self._episodes = np.flatnonzero(self._nodes.ends)
        if not len(self._episodes):
            raise UserError("There is no transition to draw from; give at least one episode with two steps.")
        self._row_base = np.cumsum(self._nodes.ends) - self._nodes.ends
        self._rows = self._make_rows(memory_limit_bytes)
        # One node more than steps per episode, so that a node minus its episode is its step.
        self._row_episode = np.repeat(np.arange(len(self._nodes.ends)), self._nodes.ends)
        self._offsets = np.asarray(offsets, dtype=np.int64)
        steps = np.diff(self._offsets)
        self._is_terminal = np.zeros(len(self._nodes.level), dtype=bool)
        self._is_terminal[(self._nodes.base + steps)[np.asarray(terminated, dtype=bool).reshape(-1)]] = True

    @property
    def precomputed(self) -> bool:
        """Whether the pairs are in memory, so that draws only look them up."""
        return self.strategy in ("none", "best") or self._rows.table is not None

    @property
    def transitions(self) -> int:
        """How many starts there are."""
        return len(self._rows.node)

    @property
    def pairs(self) -> int:
        """How many shortcuts there are to draw from."""
        return self.transitions if self.strategy == "none" else int(self._rows.count.sum())

    def state(self) -> dict[str, Any]:
        """Return the state of the random numbers, to continue a training where it stopped."""
        return dict(self._rng.bit_generator.state)

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue with the random numbers of an earlier `state`."""
        self._rng.bit_generator.state = state

    def draw(self, batch: int) -> tuple[IntArray, IntArray]:
        """Return rows, the starts, and how many steps after them the shortcuts end."""
        if batch < 1:
            raise UserError(f"batch is {batch}, but must be at least 1.")
        if self.episodes_first:
            draws = self._rng.random((2, batch))
            episodes = self._episodes[(draws[0] * len(self._episodes)).astype(np.int64)]
            row = self._row_base[episodes] + (draws[1] * self._nodes.ends[episodes]).astype(np.int64)
        else:
            row = (self._rng.random(batch) * self.transitions).astype(np.int64)
        return row, self._draw_offsets(row)

    def sample(self, batch: int, out: ShortcutBatch | None = None) -> ShortcutBatch:
        """Return a mini-batch of new arrays, or in those of an earlier batch of this size given as `out`."""
        row, offset = self.draw(batch)
        out = self._empty(batch) if out is None else out
        start = self._rows.node[row]
        stop = start + offset
        episode = self._row_episode[row]
        terminal = self._is_terminal[stop]
        out.starts[:] = start - episode
        out.offsets[:] = offset
        after = np.subtract(stop, episode)
        reached = after - 1
        after -= terminal  # any valid step; what belongs there is filled in below
        if self.strategy == "none":
            np.take(self._actions, out.starts, axis=0, out=out.actions, mode="clip")
        else:
            np.subtract(self._nodes.sums[stop], self._nodes.sums[start], out=out.actions, casting="same_kind")
        np.take(self._rewards, reached, out=out.rewards[:, 0], mode="clip")
        np.take(self._actions, after, axis=0, out=out.next_actions, mode="clip")
        out.terminals[:, 0] = terminal
        self._take_observations(out.starts, out.observations)
        self._take_observations(after, out.next_observations)
        ended = np.flatnonzero(terminal)
        out.next_actions[ended] = 0
        out.next_observations[ended] = 0 if self._finals is None else self._finals[episode[ended]]
        return out

    def rewards_to_go(self, start: int, offset: int) -> Float32Array:
        """Return the reward of a shortcut and all that was collected after it, as a column."""
        episode = int(np.searchsorted(self._offsets, start, side="right")) - 1
        return self._rewards[start + offset - 1 : self._offsets[episode + 1], None]

    def _make_rows(self, memory_limit_bytes: int) -> Rows:
        if self.strategy != "none":
            return make_rows(self._nodes, 0 if self.strategy == "best" else memory_limit_bytes)
        alone = self._nodes.ends
        node = np.arange(int(alone.sum())) + np.repeat(self._nodes.base - self._row_base, alone)
        ones = np.ones(len(node), dtype=np.int64)
        reward = self._nodes.reached[node + 1]
        return Rows(node, ones, ones, reward, reward, ones, ones, None)

    def _draw_offsets(self, row: IntArray) -> IntArray:
        if self.strategy in ("none", "best"):
            return self._rows.best[row]
        offsets = np.empty(len(row), dtype=np.int64)
        pending = np.arange(len(row))
        for proposals in (1,) if self.strategy == "uniform" and self.precomputed else _ROUNDS:
            some = row[pending]
            draws = self._rng.random((2, len(some), proposals))
            offset, accepted = self._propose(some, draws[0], draws[1])
            which = accepted.argmax(axis=1)
            flat = np.arange(0, accepted.size, proposals) + which
            offsets[pending] = offset.ravel()[flat]
            pending = pending[~accepted.ravel()[flat]]
            if not len(pending):
                return offsets
        offsets[pending] = self._enumerate(row[pending])
        return offsets

    def _propose(self, row: IntArray, place: FloatArray, accept: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return proposed offsets, uniform over the candidates of each row, and whether they are accepted."""
        rows = self._rows
        start = rows.node[row][:, None]
        if rows.table is not None:
            index = (place * rows.count[row][:, None]).astype(np.int64)
            index += rows.first[row][:, None]
            offset = rows.table[index].astype(np.int64)
            accepted = np.ones(offset.shape, dtype=bool)
        else:
            offset = (place * rows.last[row][:, None]).astype(np.int64) + 1
            accepted = self._nodes.admissible(start, start + offset)
        if self.strategy != "uniform":
            low, high = rows.low[row][:, None], rows.high[row][:, None]
            accepted &= _accepted(self._nodes.reached[start + offset], low, high, accept, self.strategy)
        return offset, accepted

    def _enumerate(self, row: IntArray) -> IntArray:
        """Draw from all candidates of each row; for the few whose proposals keep being refused."""
        rows = self._rows
        counts = rows.last[row] if rows.table is None else rows.count[row]
        offsets = np.empty(len(row), dtype=np.int64)
        begin = 0
        while begin < len(row):
            end = begin + max(1, int(np.searchsorted(np.cumsum(counts[begin:]), _RAGGED)))
            offsets[begin:end] = self._enumerate_together(row[begin:end], counts[begin:end])
            begin = end
        return offsets

    def _enumerate_together(self, row: IntArray, counts: IntArray) -> IntArray:
        rows = self._rows
        owner = np.repeat(np.arange(len(row)), counts)
        stop = np.cumsum(counts)
        index = np.arange(len(owner)) - (stop - counts)[owner]
        start = rows.node[row][owner]
        if rows.table is not None:
            offset = rows.table[rows.first[row][owner] + index].astype(np.int64)
            mass = np.ones(len(owner))
        else:
            offset = index + 1
            mass = self._nodes.admissible(start, start + offset).astype(np.float64)
        reached = self._nodes.reached[start + offset]
        mass *= _mass(reached, rows.low[row][owner], rows.high[row][owner], self.strategy)
        cumulative = np.concatenate(([0.0], np.cumsum(mass)))
        before, total = cumulative[stop - counts], cumulative[stop]
        target = before + self._rng.random(len(row)) * (total - before)
        chosen = np.searchsorted(cumulative, target, side="right") - 1
        result: IntArray = offset[np.clip(chosen, stop - counts, stop - 1)]
        return result

    def _take_observations(self, step: IntArray, out: Float32Array) -> None:
        if self._observations.dtype == np.float32:
            np.take(self._observations, step, axis=0, out=out, mode="clip")
        else:
            out[:] = self._observations[step]

    def _empty(self, batch: int) -> ShortcutBatch:
        seen, done = self._observations.shape[1:], self._actions.shape[1:]
        return ShortcutBatch(
            observations=np.empty((batch, *seen), dtype=np.float32),
            actions=np.empty((batch, *done), dtype=np.float32),
            rewards=np.empty((batch, 1), dtype=np.float32),
            next_observations=np.empty((batch, *seen), dtype=np.float32),
            next_actions=np.empty((batch, *done), dtype=np.float32),
            terminals=np.empty((batch, 1), dtype=np.float32),
            starts=np.empty(batch, dtype=np.int64),
            offsets=np.empty(batch, dtype=np.int64),
        )

    def _checked_finals(self, finals: npt.ArrayLike | None) -> npt.NDArray[Any] | None:
        if finals is None:
            return None
        checked = _kept(finals, len(self._nodes.ends), "final_observations", "episodes")
        if checked.shape[1:] != self._observations.shape[1:]:
            raise UserError(
                f"final_observations have the shape {checked.shape[1:]}, but observations "
                f"{self._observations.shape[1:]}; both must be the same."
            )
        return checked


def _accepted(reached: FloatArray, low: FloatArray, high: FloatArray, draw: FloatArray, strategy: str) -> BoolArray:
    """Whether a draw from [0, 1) lies below the candidate's weight relative to the largest of its start."""
    accepted: BoolArray
    if strategy == "inverse_distance":
        accepted = (draw * -reached < -high) | (reached == high)
    else:
        accepted = (draw * (high - low) < reached - low) | (low == high)
    return accepted


def _mass(reached: FloatArray, low: FloatArray, high: FloatArray, strategy: str) -> FloatArray:
    """Return the weight of candidates relative to the largest of their start."""
    if strategy == "uniform":
        return np.ones_like(reached)
    if strategy == "inverse_distance":
        return np.where(reached == high, 1.0, high / np.where(reached == 0, -1.0, reached))
    return np.where(low == high, 1.0, (reached - low) / np.where(low == high, 1.0, high - low))


def _float32(values: npt.NDArray[Any]) -> Float32Array:
    return np.ascontiguousarray(values, dtype=np.float32)


def _kept(values: npt.ArrayLike, count: int, name: str = "observations", unit: str = "steps") -> npt.NDArray[Any]:
    """Return observations as they are kept: images as bytes, everything else as float32."""
    given = np.asarray(values)
    if len(given) != count:
        raise UserError(f"There are {len(given)} {name} for {count} {unit}, but there must be one for each.")
    kept = np.ascontiguousarray(given) if given.dtype == np.uint8 else _float32(given)
    return kept[:, None] if kept.ndim == 1 else kept
