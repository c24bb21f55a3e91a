"""Shortcuts inside d3rlpy: a transition picker for its replay buffer, and batches for its `update`."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from d3rlpy.dataset import EpisodeBase, Transition, TransitionMiniBatch, TransitionPickerProtocol
from d3rlpy.dataset.utils import create_zero_observation, retrieve_observation

from lift_ros.errors import UserError
from lift_ros.seeds import generator
from lift_ros.shortcuts.pairs import make_rows
from lift_ros.shortcuts.rule import Rule, make_nodes, weights
from lift_ros.shortcuts.sampler import ShortcutBatch, ShortcutSampler

_PROPOSALS = 64  # refused as often as this, a draw looks at all candidates instead


class ShortcutPicker(TransitionPickerProtocol):  # type: ignore[misc]
    """Picks a shortcut from the asked step instead of its plain transition.

    `ReplayBuffer(…, transition_picker=ShortcutPicker(action_radius=0.3))` is all that d3rlpy needs. What a draw needs
    to know of an episode is computed when it is first asked for, and forgotten together with the episode.
    """

    def __init__(
        self,
        action_radius: float,
        gamma: float = 0.99,
        C: float = 0.0,  # noqa: N803
        strategy: str = "weighted",
        seed: int = 0,
    ) -> None:
        self._rule = Rule(gamma, C, action_radius, strategy)
        self._random = generator(seed, "shortcuts").random
        self._walks: dict[int, _Walk] = {}

    def __call__(self, episode: EpisodeBase, index: int) -> Transition:
        """Return a shortcut that begins at step `index` of the episode, drawn as Algorithm 1 does."""
        walk = self._walks.get(id(episode))
        if walk is None or not walk.describes(episode):
            walk = self._remember(episode)
        if not 0 <= index < walk.ends:
            raise UserError(f"No shortcut begins at step {index}: the episode has {walk.ends} transitions.")
        stop = index + walk.draw(index, self._random)
        observation = retrieve_observation(episode.observations, index)
        actions = episode.actions
        action = actions[index] if stop == index + 1 else walk.action(index, stop, actions.dtype)
        terminal = stop == walk.steps
        if terminal:
            next_observation = create_zero_observation(observation)
            next_action = np.zeros_like(action)
        else:
            next_observation = retrieve_observation(episode.observations, stop)
            next_action = actions[stop]
        rewards = episode.rewards
        return Transition(
            observation=observation,
            action=action,
            reward=rewards[stop - 1],
            next_observation=next_observation,
            next_action=next_action,
            terminal=float(terminal),
            interval=1,
            rewards_to_go=rewards[stop - 1 :],
        )

    def _remember(self, episode: EpisodeBase) -> _Walk:
        key, walks = id(episode), self._walks
        walk = _Walk(episode, self._rule, weakref.ref(episode, lambda _: walks.pop(key, None)))
        walks[key] = walk
        return walk


class _Walk:
    """What draws need to know of one episode, as plain numbers, which are quicker one by one than arrays are."""

    def __init__(self, episode: EpisodeBase, rule: Rule, reference: weakref.ref[EpisodeBase]) -> None:
        if np.asarray(episode.actions).dtype.kind != "f":
            raise UserError(
                f"The actions are {np.asarray(episode.actions).dtype}, but only continuous ones can be added up to a "
                "shortcut; use d3rlpy's own picker."
            )
        self.episode = reference
        self.steps = int(episode.size())
        self.terminated = bool(episode.terminated)
        self.strategy = rule.strategy
        self.nodes = make_nodes(episode.actions, episode.rewards, [0, self.steps], [episode.terminated], rule)
        self.ends = int(self.nodes.ends[0])
        rows = make_rows(self.nodes, 0)
        self.reach = math.sqrt(self.nodes.limit)
        self.points = self.nodes.sums.tolist()
        self.level = self.nodes.level.tolist()
        self.gain = self.nodes.gain.tolist()
        self.reached = self.nodes.reached.tolist()
        self.last = rows.last.tolist()
        self.low = rows.low.tolist()
        self.high = rows.high.tolist()
        self.best = rows.best.tolist()

    def describes(self, episode: EpisodeBase) -> bool:
        """Whether this is still true of the episode: one that is being recorded grows."""
        known = self.episode() is episode
        return bool(known and self.steps == episode.size() and self.terminated == episode.terminated)

    def action(self, start: int, stop: int, dtype: Any) -> Any:
        """Return the sum of the actions between two states."""
        return (self.nodes.sums[stop] - self.nodes.sums[start]).astype(dtype)

    def draw(self, start: int, random: Any) -> int:
        """Return how many steps after `start` a shortcut ends: proposed uniformly, accepted by its weight."""
        if self.strategy == "best":
            return int(self.best[start])
        last = self.last[start]
        if last == 1:
            return 1
        level, low, high, point = self.level[start], self.low[start], self.high[start], self.points[start]
        for _ in range(_PROPOSALS):
            offset = 1 + int(random() * last)
            stop = start + offset
            if offset > 1 and (self.gain[stop] < level or math.dist(point, self.points[stop]) > self.reach):
                continue
            reached = self.reached[stop]
            if self.strategy == "weighted":
                if low == high or random() * (high - low) < reached - low:
                    return offset
            elif self.strategy == "uniform" or reached == high or random() * -reached < -high:
                return offset
        return self._draw_from_all(start, random)

    def _draw_from_all(self, start: int, random: Any) -> int:
        stops = np.arange(start + 1, start + self.last[start] + 1)
        stops = stops[self.nodes.admissible(np.full_like(stops, start), stops)]
        cumulative = np.cumsum(weights(self.nodes.reached[stops], self.strategy))
        chosen = int(np.searchsorted(cumulative, random() * cumulative[-1], side="right"))
        return int(stops[min(chosen, len(stops) - 1)]) - start


def to_transition_mini_batch(batch: ShortcutBatch, sampler: ShortcutSampler) -> TransitionMiniBatch:
    """Return a batch as d3rlpy's `update` takes it, without copying; transitions are made only where asked for."""
    return TransitionMiniBatch(
        observations=batch.observations,
        actions=batch.actions,
        rewards=batch.rewards,
        next_observations=batch.next_observations,
        next_actions=batch.next_actions,
        terminals=batch.terminals,
        intervals=np.ones_like(batch.rewards),
        transitions=_Transitions(batch, sampler),
    )


class _Transitions(Sequence[Any]):
    """The single transitions of a batch; only algorithms that need returns-to-go ever look at them."""

    def __init__(self, batch: ShortcutBatch, sampler: ShortcutSampler) -> None:
        self._batch = batch
        self._sampler = sampler

    def __len__(self) -> int:
        return len(self._batch)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        batch = self._batch
        return Transition(
            observation=batch.observations[index],
            action=batch.actions[index],
            reward=batch.rewards[index],
            next_observation=batch.next_observations[index],
            next_action=batch.next_actions[index],
            terminal=float(batch.terminals[index, 0]),
            interval=1,
            rewards_to_go=self._sampler.rewards_to_go(int(batch.starts[index]), int(batch.offsets[index])),
        )
