"""Shortcuts inside d3rlpy: a transition picker for its replay buffer."""

from __future__ import annotations

import math
import weakref
from array import array
from typing import Any

import numpy as np

from lift_ros.errors import UserError
from lift_ros.lazy import quietly
from lift_ros.seeds import generator
from lift_ros.shortcuts.pairs import make_rows
from lift_ros.shortcuts.rule import Rule, make_nodes, weights

with quietly():
    from d3rlpy.dataset import EpisodeBase, Transition, TransitionPickerProtocol
    from d3rlpy.dataset.utils import create_zero_observation, retrieve_observation

_PROPOSALS = 64  # refused as often as this, a draw looks at all candidates instead
_POOL = 4096  # random numbers fetched at once; at least two per proposal and one more


class ShortcutPicker(TransitionPickerProtocol):  # type: ignore[misc]
    """Picks a shortcut from the asked step instead of its plain transition.

    `ReplayBuffer(…, transition_picker=ShortcutPicker(action_radius=0.3))` is all that d3rlpy needs. What a draw needs
    to know of an episode is computed when it is first asked for, and forgotten together with the episode; pairs of
    all episodes together are kept while they take at most `memory_limit_bytes`. d3rlpy's episodes have no observation
    after their last step, so that this step is a transition only where it terminated the episode; `ShortcutSampler`
    knows more.
    """

    def __init__(
        self,
        action_radius: float,
        gamma: float = 0.99,
        C: float = 0.0,  # noqa: N803
        strategy: str = "weighted",
        seed: int = 0,
        memory_limit_bytes: int = 1 << 29,
        kappa: float = 0.0,
    ) -> None:
        self._rule = Rule(gamma, C, action_radius, strategy, kappa)
        self._rng = generator(seed, "shortcuts")
        self._pool: list[float] = []
        self._walks: dict[int, _Walk] = {}
        self._room = 0 if strategy == "best" else memory_limit_bytes

    def __call__(self, episode: EpisodeBase, index: int) -> Transition:
        """Return a shortcut that begins at step `index` of the episode, drawn as Algorithm 1 does."""
        walk = self._walks.get(id(episode))
        if walk is None or not walk.describes(episode):
            walk = self._remember(episode)
        if not 0 <= index < walk.ends:
            raise UserError(f"No shortcut begins at step {index}: the episode has {walk.ends} transitions.")
        pool = self._pool
        if len(pool) <= 2 * _PROPOSALS:
            pool.extend(self._rng.random(_POOL).tolist())
        stop = index + walk.draw(index, pool)
        observations, actions, rewards = episode.observations, episode.actions, episode.rewards
        observation = retrieve_observation(observations, index)
        action = actions[index] if stop == index + 1 else walk.action(index, stop)
        terminal = stop == walk.steps
        if terminal:
            next_observation = create_zero_observation(observation)
            next_action = np.zeros_like(action)
        else:
            next_observation = retrieve_observation(observations, stop)
            next_action = actions[stop]
        return Transition(
            observation=observation,
            action=action,
            reward=rewards[stop - 1],
            next_observation=next_observation,
            next_action=next_action,
            terminal=float(terminal),
            interval=1,
            rewards_to_go=rewards[index:],
        )

    def _remember(self, episode: EpisodeBase) -> _Walk:
        key = id(episode)
        self._forget(key)
        picker = weakref.ref(self)

        def forget(_: object) -> None:
            alive = picker()
            if alive is not None:
                alive._forget(key)

        walk = _Walk(episode, self._rule, weakref.ref(episode, forget), self._room)
        self._room -= walk.table_bytes
        self._walks[key] = walk
        return walk

    def _forget(self, key: int) -> None:
        walk = self._walks.pop(key, None)
        if walk is not None:
            self._room += walk.table_bytes


class _Walk:
    """What draws need to know of one episode, as plain numbers, which are quicker one by one than numpy's."""

    def __init__(self, episode: EpisodeBase, rule: Rule, reference: weakref.ref[EpisodeBase], room: int) -> None:
        self.dtype = np.asarray(episode.actions).dtype
        if self.dtype.kind != "f":
            raise UserError(
                f"The actions are {self.dtype}, but only continuous ones can be added up to a shortcut; use d3rlpy's "
                "own picker."
            )
        self.episode = reference
        self.steps = int(episode.size())
        self.terminated = bool(episode.terminated)
        self.strategy = rule.strategy
        self.nodes = make_nodes(episode.actions, episode.rewards, [0, self.steps], [episode.terminated], rule)
        self.ends = int(self.nodes.ends[0])
        self.reach = math.sqrt(self.nodes.limit)
        rows = make_rows(self.nodes, room)
        self.table: array[int] | None = None
        self.table_bytes = 0
        span = rows.last
        if rows.table is not None:
            span = rows.count
            self.table = array(rows.table.dtype.char, rows.table.tobytes())
            self.table_bytes = rows.table.nbytes
        columns = (rows.first, span, rows.low, rows.high)
        self.facts = list(zip(*(column.tolist() for column in columns), strict=True))
        self.reached = array("d", self.nodes.reached.tobytes())
        self.best = array("q", rows.best.tobytes())

    def describes(self, episode: EpisodeBase) -> bool:
        """Whether this is still true of the episode: one that is being recorded grows."""
        known = self.episode() is episode
        return bool(known and self.steps == episode.size() and self.terminated == episode.terminated)

    def action(self, start: int, stop: int) -> Any:
        """Return the action that leads from one state to another at once."""
        return self.nodes.actions(self.nodes.sums[stop] - self.nodes.sums[start]).astype(self.dtype)

    def draw(self, start: int, pool: list[float]) -> int:
        """Return how many steps after `start` a shortcut ends: proposed uniformly, accepted by its weight."""
        if self.strategy == "best":
            return self.best[start]
        first, span, low, high = self.facts[start]
        table, strategy, reached = self.table, self.strategy, self.reached
        for _ in range(_PROPOSALS):
            offset = int(pool.pop() * span)
            offset = offset + 1 if table is None else table[first + offset]
            reward = reached[start + offset]
            if strategy == "weighted":
                accepted = low == high or pool.pop() * (high - low) < reward - low
            else:
                accepted = strategy == "uniform" or reward == high or pool.pop() * reward > high
            if accepted and (table is not None or self._admissible(start, offset)):
                return offset
        return self._draw_from_all(start, pool)

    def _admissible(self, start: int, offset: int) -> bool:
        nodes, stop = self.nodes, start + offset
        if offset == 1:
            return True
        if nodes.gain.item(stop) < nodes.level.item(start):
            return False
        return math.dist(nodes.sums[start].tolist(), nodes.sums[stop].tolist()) <= self.reach

    def _draw_from_all(self, start: int, pool: list[float]) -> int:
        stops = np.arange(start + 1, self.ends + 1)
        stops = stops[self.nodes.admissible(np.full_like(stops, start), stops)]
        cumulative = np.cumsum(weights(self.nodes.reached[stops], self.strategy))
        chosen = int(np.searchsorted(cumulative, pool.pop() * cumulative[-1], side="right"))
        return int(stops[min(chosen, len(stops) - 1)]) - start
