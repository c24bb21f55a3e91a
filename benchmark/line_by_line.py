"""Algorithm 1 as the paper prints it, as a picker of d3rlpy: what one writes who has nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from lift_ros.lazy import quietly

with quietly():
    from d3rlpy.dataset import EpisodeBase, Transition, TransitionPickerProtocol

GAMMA, C = 0.99, 0.0


class LineByLinePicker(TransitionPickerProtocol):  # type: ignore[misc]
    """Looks at every later step for each draw; actions longer than 1 are none."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, episode: EpisodeBase, index: int) -> Transition:
        """Draw a shortcut from a step."""
        rewards = episode.rewards[:, 0]
        returns = np.zeros(len(rewards) + 1)
        for step in range(len(rewards) - 1, -1, -1):
            returns[step] = rewards[step] + GAMMA * returns[step + 1]
        found: list[tuple[int, Any]] = []
        action, length = np.zeros_like(episode.actions[0]), 0.0
        for stop in range(index + 1, len(rewards) + bool(episode.terminated)):
            action = action + episode.actions[stop - 1]
            length += float(np.linalg.norm(episode.actions[stop - 1]))
            pays = GAMMA * returns[stop] - returns[index] + rewards[stop - 1] >= C * length
            if stop == index + 1 or (pays and np.linalg.norm(action) <= 1.0):
                found.append((stop, action))
        gained = np.array([rewards[stop - 1] for stop, _ in found])
        mass = gained - gained.min()
        share = mass / mass.sum() if mass.sum() > 0 else np.full(len(found), 1 / len(found))
        stop, action = found[self._rng.choice(len(found), p=share)]
        ended = stop == len(rewards)
        return Transition(
            observation=episode.observations[index],
            action=action,
            reward=episode.rewards[stop - 1],
            next_observation=np.zeros_like(episode.observations[0]) if ended else episode.observations[stop],
            next_action=np.zeros_like(action) if ended else episode.actions[stop],
            terminal=float(ended),
            interval=1,
            rewards_to_go=episode.rewards[index:],
        )
