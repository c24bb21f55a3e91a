"""Whole mini-batches of shortcuts as the arrays that training takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import Float32Array, FloatArray, IntArray
from lift_ros.errors import UserError
from lift_ros.seeds import generator
from lift_ros.shortcuts.aims import lengthened, make_aims, within_ball
from lift_ros.shortcuts.draws import Draws
from lift_ros.shortcuts.pairs import make_rows
from lift_ros.shortcuts.rule import PLAIN, STRATEGIES, Rule, make_nodes

_BLOCK = 4096  # transitions drawn ahead: the price of a call into numpy is shared by several batches
_BLOCK_BYTES = 1 << 23  # fewer of them where observations are images


@dataclass(slots=True)
class ShortcutBatch:
    """A mini-batch of transitions as contiguous arrays of its own, one row per transition; all intervals are 1."""

    observations: Float32Array  # [batch, ...]
    actions: Float32Array  # [batch, action size]
    aims: Float32Array  # [batch, action size] the actions to imitate: those above, or of shortcuts beyond the ball
    rewards: Float32Array  # [batch, 1]
    next_observations: Float32Array  # [batch, ...]
    next_actions: Float32Array  # [batch, action size] what was done next; zero after the last step of an episode
    terminals: Float32Array  # [batch, 1]
    starts: IntArray  # [batch] the flat step i at which each shortcut begins
    offsets: IntArray  # [batch] j − i
    step_returns: Float32Array  # [steps] G_i of all that can be drawn, shared by all batches

    def __len__(self) -> int:
        return len(self.actions)

    def part(self, begin: int, end: int) -> ShortcutBatch:
        """Return the transitions from begin to end, sharing memory."""
        return ShortcutBatch(*[*(getattr(self, name)[begin:end] for name in _PER_ROW), self.step_returns])

    @property
    def returns(self) -> Float32Array:
        """G_i, what the recorded episodes still collected from each start on, as a column; few algorithms ask."""
        return np.take(self.step_returns, self.starts)[:, None]


_PER_ROW = ShortcutBatch.__slots__[:-1]


class ShortcutSampler:
    """Draws mini-batches of shortcuts from episodes given as flat arrays.

    Episode e holds the steps offsets[e] to offsets[e+1]. The start is uniform over all transitions or, with
    `episodes_first`, over episodes and then over the transitions of the chosen one. Pairs are computed beforehand if
    they take at most `memory_limit_bytes`, else each draw decides on the fly, with the same distribution. The strategy
    `none` draws plain transitions. The last step of an episode that did not terminate is a transition only where
    `final_observations` say what it led to. With `far`, batches tell where to aim beyond the ball; `rests` are actions
    that would have led from the ends of episodes to their goals, and nobody but aims and ways left reckons with them.
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
        kappa: float = 0.0,
        episodes_first: bool = False,
        far: bool = False,
        rests: FloatArray | None = None,
        memory_limit_bytes: int = 1 << 29,
        seed: int = 0,
        rng: np.random.Generator | None = None,
    ) -> None:
        if strategy not in (*STRATEGIES, PLAIN):
            raise UserError(f"strategy is {strategy!r}, but must be one of {', '.join(STRATEGIES)} or {PLAIN}.")
        if memory_limit_bytes < 0:
            raise UserError(f"memory_limit_bytes is {memory_limit_bytes}, but must not be negative; 0 stores no pairs.")
        self.strategy = strategy
        self.episodes_first = episodes_first
        self._rng = generator(seed, "shortcuts") if rng is None else rng
        rule = Rule(gamma, C, action_radius, "uniform" if strategy == PLAIN else strategy, kappa)
        self._terminated = np.asarray(terminated, dtype=bool).reshape(-1)
        closed = self._terminated if final_observations is None else np.ones_like(self._terminated)
        nodes = make_nodes(actions, rewards, offsets, closed, rule)
        self._nodes = nodes
        self._whole_ways = nodes if rests is None else lengthened(nodes, rests)
        self._actions = _float32(np.asarray(actions).reshape(-1, nodes.sums.shape[1]))
        self._rewards = _float32(np.asarray(rewards).reshape(-1))
        self._returns = _float32(nodes.returns)
        self._observations = _kept(observations, len(self._actions))
        self._finals = self._checked_finals(final_observations, len(nodes.ends))
        self._offsets = np.asarray(offsets, dtype=np.int64)
        self._ends = nodes.ends
        self._row_base = np.cumsum(nodes.ends) - nodes.ends
        self._episodes = np.flatnonzero(nodes.ends)
        self._row_episode = np.repeat(np.arange(len(nodes.ends)), nodes.ends)
        self._row_step = np.arange(len(self._row_episode)) + (self._offsets[:-1] - self._row_base)[self._row_episode]
        if not len(self._episodes):
            raise UserError("There is no transition to draw from; give at least one episode with two steps.")
        self.transitions = len(self._row_step)
        self.pairs = self.transitions
        self.precomputed = True
        self._draws: Draws | None = None
        self._aims: Float32Array | None = None
        if strategy != PLAIN:
            rows = make_rows(nodes, 0 if strategy == "best" else memory_limit_bytes)
            self.pairs = int(rows.count.sum())
            self.precomputed = rows.table is not None or strategy == "best"
            self._draws = Draws(nodes, rows, strategy)
            if far:
                self._aims = _float32(nodes.actions(make_aims(self._whole_ways, rows)))
        self._ahead: ShortcutBatch | None = None
        self._before_ahead = self._rng.bit_generator.state
        self._used = 0

    def ways_left(self) -> Float32Array:
        """Return for every step the one action that would lead to the end of its episode, however long it is.

        With `rests` it leads on to the goal.
        """
        steps = np.diff(self._offsets)
        episode = np.repeat(np.arange(len(steps)), steps)
        last = self._offsets[1:] + np.arange(len(steps))
        sums = self._whole_ways.sums
        chords = sums[last[episode]] - sums[np.arange(len(episode)) + episode]
        return _float32(self._nodes.actions(chords))

    def sample(self, batch: int) -> ShortcutBatch:
        """Return the next mini-batch."""
        if batch < 1:
            raise UserError(f"batch is {batch}, but must be at least 1.")
        if self._ahead is None or self._used + batch > len(self._ahead):
            self._draw_ahead(batch * max(1, self._block() // batch))
        assert self._ahead is not None
        begin, self._used = self._used, self._used + batch
        return self._ahead.part(begin, self._used)

    def state(self) -> dict[str, Any]:
        """Return where the random draws stand, to continue a training as if it had never stopped; fits into JSON."""
        ahead = 0 if self._ahead is None else len(self._ahead)
        return {"generator": self._before_ahead, "ahead": ahead, "used": self._used}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue where an earlier `state` of a sampler of the same episodes stood."""
        self._rng.bit_generator.state = state["generator"]
        self._before_ahead = self._rng.bit_generator.state
        self._ahead = None
        if state["ahead"]:
            self._draw_ahead(int(state["ahead"]))
        self._used = int(state["used"])

    def _block(self) -> int:
        numbers = 2 * self._observations[0].size + 2 * self._actions.shape[1] + 7
        return min(_BLOCK, _BLOCK_BYTES // (4 * int(numbers)))

    def _draw_ahead(self, count: int) -> None:
        self._before_ahead = self._rng.bit_generator.state
        row = self._draw_rows(count)
        offset = np.ones(count, dtype=np.int64) if self._draws is None else self._draws.offsets(row, self._rng)
        self._ahead = self._gather(row, offset)
        self._used = 0

    def _draw_rows(self, count: int) -> IntArray:
        if not self.episodes_first:
            return (self._rng.random(count) * self.transitions).astype(np.int64)
        draws = self._rng.random((2, count))
        episode = np.take(self._episodes, (draws[0] * len(self._episodes)).astype(np.int64))
        within = (draws[1] * np.take(self._ends, episode)).astype(np.int64)
        row: IntArray = np.take(self._row_base, episode) + within
        return row

    def _gather(self, row: IntArray, offset: IntArray) -> ShortcutBatch:
        start = np.take(self._row_step, row)
        stop = start + offset
        episode = np.take(self._row_episode, row)
        last = stop == np.take(self._offsets, episode + 1)
        ended = np.flatnonzero(last)
        after = stop - last  # any step; what belongs after the last one is filled in below
        actions = _lines(self._actions, start)
        nodes = start + episode  # an episode has one node more than steps
        if self._draws is not None:
            long = np.flatnonzero(offset > 1)
            node = np.take(nodes, long)
            sums = self._nodes.sums
            actions[long] = self._nodes.actions(_lines(sums, node + np.take(offset, long)) - _lines(sums, node))
        next_actions = _lines(self._actions, after)
        next_actions[ended] = 0
        next_observations = self._seen(after)
        next_observations[ended] = 0 if self._finals is None else self._finals[episode[ended]]
        terminals = last.astype(np.float32)
        terminals[ended] = self._terminated[episode[ended]]
        return ShortcutBatch(
            observations=self._seen(start),
            actions=actions,
            aims=_lines(self._aims, row) if self._aims is not None else self._led_on(actions, nodes, offset, ended),
            rewards=np.take(self._rewards, stop - 1)[:, None],
            next_observations=next_observations,
            next_actions=next_actions,
            terminals=terminals[:, None],
            starts=start,
            offsets=offset,
            step_returns=self._returns,
        )

    def _led_on(self, actions: Float32Array, nodes: IntArray, offset: IntArray, ended: IntArray) -> Float32Array:
        """Return drawn actions as aims; those that end with their episode lead on to its goal, where that is known."""
        aims = actions.copy()
        if self._whole_ways is not self._nodes:
            first, sums = nodes[ended], self._whole_ways.sums
            chords = sums[first + offset[ended]] - sums[first]
            aims[ended] = self._nodes.actions(within_ball(self._nodes, chords))
        return aims

    def _seen(self, step: IntArray) -> Float32Array:
        return _lines(self._observations, step).astype(np.float32, copy=False)

    def _checked_finals(self, finals: npt.ArrayLike | None, episodes: int) -> npt.NDArray[Any] | None:
        if finals is None:
            return None
        checked = _kept(finals, episodes, "final_observations", "episodes")
        if checked.shape[1:] != self._observations.shape[1:]:
            raise UserError(
                f"final_observations have the shape {checked.shape[1:]}, but observations "
                f"{self._observations.shape[1:]}; both must be the same."
            )
        return checked


def _lines(values: npt.NDArray[Any], index: IntArray) -> npt.NDArray[Any]:
    """Return values[index] for indices known to be valid, so that numpy takes its quickest way."""
    return np.take(values, index, axis=0, mode="clip")


def _float32(values: npt.NDArray[Any]) -> Float32Array:
    return np.ascontiguousarray(values, dtype=np.float32)


def _kept(values: npt.ArrayLike, count: int, name: str = "observations", unit: str = "steps") -> npt.NDArray[Any]:
    """Return observations as they are kept: images as bytes, everything else as float32."""
    given = np.asarray(values)
    if len(given) != count:
        raise UserError(f"There are {len(given)} {name} for {count} {unit}, but there must be one for each.")
    kept = np.ascontiguousarray(given) if given.dtype == np.uint8 else _float32(given)
    return kept[:, None] if kept.ndim == 1 else kept
