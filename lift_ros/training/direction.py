"""Whether observations tell which way to go: the aims of held-out episodes, predicted from observations alone.

A learned policy has no memory. Where the same observation goes with any direction, as it does when encoders count
from an arbitrary zero, no training can help, and this is known before anything is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.seeds import generator

FEWEST_EPISODES = 5  # fewer cannot be split into some to learn from and some to judge by
# Mean cosines from which on a direction is told, and told in part. The shipped scenarios have 0.80 (12 episodes in d=5)
# to 0.99; encoders that count from an arbitrary zero 0.0, from the start of each episode 0.3.
CLEAR, FAINT = 0.7, 0.4
_FOLDS = 5
_STEPS = 3000  # looked at, at most; as many of each episode as of any other
_BEGINNING = 1 / 3  # share of an episode's steps: a policy has to set out before it can arrive
_RIDGE = 1e-3
_NEIGHBOURS = 10
_FEATURES = 300
_WIDTHS = (1.0, 3.0)  # of the waves, in units of the deviation of all inputs together

Predictor = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]  # inputs, directions, inputs to answer


@dataclass(frozen=True, slots=True)
class Direction:
    """How well the direction to the goal is predicted on held-out episodes, as mean cosines; NaN where nobody can."""

    episodes: int
    steps: int
    cosine: float
    at_beginning: float  # in the first third of each episode
    constant: float  # of an answer that looks at nothing

    @property
    def score(self) -> float:
        """What counts: a policy must know the way from the beginning on, unless it is always the same."""
        return max(self.constant, min(self.cosine, self.at_beginning))

    @property
    def is_told(self) -> bool | None:
        """Whether observations tell it, at least in part; None where nobody knows."""
        return None if np.isnan(self.score) else self.score >= FAINT

    def sentence(self) -> str:
        """Return what was measured."""
        if self.is_told is None:
            return f"cannot be judged by {self.episodes} episodes with known rewards; {FEWEST_EPISODES} are needed"
        verdict = "do not tell it" if not self.is_told else "tell it" if self.score >= CLEAR else "tell it in part"
        return (
            f"observations {verdict}: mean cosine {self.cosine:.2f} on held-out episodes, {self.at_beginning:.2f} at "
            f"their beginnings, {self.constant:.2f} for a constant answer"
        )

    def warning(self) -> str:
        """Return what it means for training where observations do not tell it."""
        return (
            f"observations do not tell the direction to the goal (mean cosine {self.cosine:.2f}, at the "
            f"beginnings of episodes {self.at_beginning:.2f}), and a policy without "
            "memory cannot learn this: observe something that depends on where the goal is, or keep p and the budget "
            "of augmentations small"
        )


def measure_direction(inputs: FloatArray, aims: FloatArray, episodes: IntArray, seed: int = 0) -> Direction:
    """Predict the directions of the aims from inputs of mean 0 and deviation 1, one row per step in order of time."""
    lengths = np.linalg.norm(aims, axis=1)
    moving = lengths > 0  # who stays has no direction
    rows = _spread(np.flatnonzero(moving), episodes[moving])
    names, episode, counts = np.unique(episodes[rows], return_inverse=True, return_counts=True)
    if len(names) < FEWEST_EPISODES:
        return Direction(len(names), len(rows), np.nan, np.nan, np.nan)
    wanted = aims[rows] / lengths[rows, None]
    fold = generator(seed, "direction").permutation(len(names))[episode] % _FOLDS
    within = np.arange(len(rows)) - (np.cumsum(counts) - counts)[episode]
    early = within < np.maximum(1, _BEGINNING * counts)[episode]
    weight = 1.0 / counts[episode]  # an episode counts as much as any other
    predictors = [_ridge, _nearest, *(_random_features(width, seed) for width in _WIDTHS)]
    answers = np.zeros((1 + len(predictors), *wanted.shape))
    for number in range(_FOLDS):
        here = fold == number
        known, shown = inputs[rows][~here], wanted[~here]
        answers[0, here] = np.average(shown, axis=0, weights=weight[~here])
        for place, predict in enumerate(predictors, start=1):
            answers[place, here] = predict(known, shown, inputs[rows][here])
    norms = np.maximum(np.linalg.norm(answers, axis=2), 1e-12)
    cosines = (answers * wanted).sum(axis=2) / norms
    means = [float(np.average(values, weights=weight)) for values in cosines]
    best = 1 + int(np.argmax(means[1:]))
    return Direction(
        episodes=len(names),
        steps=len(rows),
        cosine=means[best],
        at_beginning=float(np.average(cosines[best, early], weights=weight[early])),
        constant=means[0],
    )


def _spread(rows: IntArray, episodes: IntArray) -> IntArray:
    """Return at most so many of the rows, evenly spread over the episodes and over each of them."""
    _, starts, counts = np.unique(episodes, return_index=True, return_counts=True)
    each = max(1, _STEPS // max(1, len(starts)))
    chosen = [
        start + np.unique(np.linspace(0, count - 1, min(count, each)).round().astype(np.int64))
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
    ]
    kept: IntArray = rows[np.concatenate(chosen)] if chosen else rows
    return kept


def _ridge(inputs: FloatArray, directions: FloatArray, asked: FloatArray) -> FloatArray:
    known, asked = (np.column_stack([values, np.ones(len(values))]) for values in (inputs, asked))
    square = known.T @ known + _RIDGE * len(known) * np.eye(known.shape[1])
    answer: FloatArray = asked @ np.linalg.solve(square, known.T @ directions)
    return answer


def _nearest(inputs: FloatArray, directions: FloatArray, asked: FloatArray) -> FloatArray:
    squares = (asked**2).sum(axis=1)[:, None] + (inputs**2).sum(axis=1) - 2 * asked @ inputs.T
    count = min(_NEIGHBOURS, len(inputs))
    answer: FloatArray = directions[np.argpartition(squares, count - 1, axis=1)[:, :count]].mean(axis=1)
    return answer


def _random_features(width: float, seed: int) -> Predictor:
    """Return a ridge regression on random waves: smooth functions of the inputs, as networks are."""

    def predict(inputs: FloatArray, directions: FloatArray, asked: FloatArray) -> FloatArray:
        rng = generator(seed, "random features")
        size = inputs.shape[1]
        waves = rng.normal(scale=1 / (width * np.sqrt(size)), size=(size, _FEATURES))
        phases = rng.uniform(0, 2 * np.pi, _FEATURES)
        known, wanted = (np.cos(values @ waves + phases) for values in (inputs, asked))
        return _ridge(known, directions, wanted)

    return predict
