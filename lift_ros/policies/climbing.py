"""A routine for rigs that can only tell better from worse: it climbs one score after another, axis by axis."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from lift_ros.array_types import FloatArray

Climb = Generator[FloatArray, FloatArray, FloatArray]


def climb(
    observation: FloatArray, axes: Sequence[int], scores: Sequence[int], steps: Sequence[float], size: int
) -> Generator[FloatArray, FloatArray, None]:
    """Move each of `axes` in turn to where its entry of the observation, named by `scores`, is highest.

    The length of a move is taken from `steps`, the last of them again and again.
    """
    rounds = 0
    while True:
        step = steps[min(rounds, len(steps) - 1)]
        for axis, score in zip(axes, scores, strict=True):
            move = np.zeros(size)
            move[axis] = step
            observation = yield from _climb_axis(observation, move, score)
        rounds += 1


def _climb_axis(observation: FloatArray, move: FloatArray, score: int) -> Climb:
    """Go on while it gets better, first one way, and the other way where the first step already made it worse."""
    for direction in (1.0, -1.0):
        went = 0
        while True:
            before = observation[score]
            observation = yield direction * move
            if observation[score] <= before:
                observation = yield -direction * move
                break
            went += 1
        if went:
            break
    return observation
