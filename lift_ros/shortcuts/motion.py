"""Whether a run moves as M·a‖a‖^κ with κ ≠ 0: what adds up to a shortcut depends on it.

Stretches of a few steps are predicted from all others of their episode, with a matrix M of its own for each episode.
κ ≠ 0 is believed only where it predicts them clearly better than any linear motion, be it one whose gain changes with
the distance to the episode's end: routines take short steps there, so that one is easily taken for the other.
Stretches instead of single steps, since measurement noise does not grow with their length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lift_ros.array_types import FloatArray, IntArray
from lift_ros.errors import UserError

MOTIONS = ("auto", "linear", "power")

KAPPAS = tuple(eighths / 8 for eighths in range(-4, 17))  # the best of them is refined
_GAINS = tuple(halves / 2 for halves in range(-4, 5))  # exponents of the rivals' gain over the distance to the end
_RATIO = 0.7  # of the linear error: κ ≠ 0 has to come below
_SIGNIFICANCE = 2.0  # standard deviations of tossed coins by which more than half of the episodes have to say so
_CLOSE_ENOUGH = 0.02  # linear errors below this leave nothing to gain
_FEWEST_EPISODES = 5
_SPREAD = 0.01  # standard deviation of log‖a‖ below which all steps are equally long
_FOLDS = 3
_LONGEST_STRETCH = 16
_STRETCHES = 8  # per entry of the action that an episode of usual length has at least
_STEPS = 40_000  # episodes with so many steps in all are looked at: more cost time and tell little
_RIDGE = 0.03  # in stretches: how much an episode's own matrix is drawn to that of all episodes
_FEWEST_REPEATS = 20  # repeated actions from which the noise is estimated
_MEDIAN_TO_DEVIATION = 1.4826


class Track(NamedTuple):
    """Where episodes went, before each step and after the last of each episode, and by which actions."""

    positions: FloatArray  # [steps, position size]
    finals: FloatArray  # [episodes, position size]
    actions: FloatArray  # [steps, action size]
    offsets: IntArray  # [episodes + 1]
    source: str  # what tells the positions


@dataclass(frozen=True, slots=True)
class Evidence:
    """Errors of predicted stretches relative to how far they go: the median of all episodes."""

    best_kappa: float  # of the candidates other than 0
    error: float  # with it, without what measurement noise explains
    linear_error: float  # of the best linear motion, likewise
    noise: float  # what measurement noise explains
    better: float  # share of episodes in which the best κ is better than the best linear motion
    candidates: tuple[tuple[float, float], ...]  # each κ that was tried, with its error over all episodes, noisy


@dataclass(frozen=True, slots=True)
class Motion:
    """The κ that shortcuts use, why, and what that rests on."""

    kappa: float
    reason: str
    source: str = ""  # what told the positions
    episodes: int = 0  # that were looked at
    steps: int = 0
    evidence: Evidence | None = None  # None where nothing can be estimated


def choose_motion(option: str, track: Track | None) -> Motion:
    """Return the motion that shortcuts are to use.

    `auto` takes κ ≠ 0 where it stands the test, `linear` never, and `power` the best κ ≠ 0 without the test.
    """
    if option == "linear":
        return Motion(0.0, "motion is linear, as told")
    estimate = estimate_motion(track)
    if option == "auto":
        return estimate
    if estimate.evidence is None:
        raise UserError(f"motion is power, but κ cannot be estimated: {estimate.reason}; choose auto or linear")
    return replace(estimate, kappa=estimate.evidence.best_kappa, reason="motion is power, as told")


def estimate_motion(track: Track | None) -> Motion:
    """Estimate κ, and keep 0 unless another one stands the test."""
    if track is None:
        return Motion(0.0, "no positions are recorded, and observations are not of the action's size")
    track = _subsample(track)
    lengths = np.linalg.norm(track.actions, axis=1)
    basis = Motion(0.0, "", track.source, len(track.finals), len(lengths))
    if len(track.finals) < _FEWEST_EPISODES:
        return replace(basis, reason=f"fewer than {_FEWEST_EPISODES} episodes tell too little")
    if not lengths.any() or np.log(lengths[lengths > 0]).std() < _SPREAD:
        return replace(basis, reason="all actions are about equally long")
    stretches = _Stretches(track)
    if not stretches.totals.any():
        return replace(basis, reason="nothing moved")
    evidence = _gather(track, lengths, stretches)
    kappa, reason = _judge(evidence, basis.episodes)
    return replace(basis, kappa=kappa, reason=reason, evidence=evidence)


def _gather(track: Track, lengths: FloatArray, stretches: _Stretches) -> Evidence:
    """Let all candidates and their linear rivals predict."""
    safe = np.where(lengths > 0, lengths, 1.0)  # an action of length zero adds nothing, whatever it is multiplied with
    tried = {kappa: stretches.errors(safe**kappa) for kappa in KAPPAS}
    refined = _vertex([tried[kappa].sum() for kappa in KAPPAS])
    tried[refined] = stretches.errors(safe**refined)
    best = min((kappa for kappa in tried if kappa), key=lambda kappa: tried[kappa].sum())
    distances = np.linalg.norm(track.positions - np.repeat(track.finals, np.diff(track.offsets), axis=0), axis=1)
    distances += distances.mean()  # what is near is a matter of scale, and none may be zero
    linear = min((stretches.errors(distances**exponent) for exponent in _GAINS), key=stretches.usual)
    return Evidence(
        best_kappa=best,
        error=stretches.usual(tried[best] - stretches.noise),
        linear_error=stretches.usual(linear - stretches.noise),
        noise=stretches.usual(stretches.noise),
        better=float(np.mean(tried[best] < linear)),
        candidates=tuple(
            (kappa, math.sqrt(errors.sum() / stretches.totals.sum())) for kappa, errors in sorted(tried.items())
        ),
    )


def _judge(evidence: Evidence, episodes: int) -> tuple[float, str]:
    """Return the best κ if its error is clearly below the linear one, and in clearly most episodes, else 0; and why."""
    error, linear = evidence.error, evidence.linear_error
    if linear < _CLOSE_ENOUGH:
        return 0.0, f"a linear motion is {linear:.1%} off, which leaves nothing to gain"
    share = f"κ = {evidence.best_kappa:.2f} leaves {error / linear:.2f} of the linear error"
    if error >= _RATIO * linear:
        return 0.0, f"{share}, not below {_RATIO:g}"
    if evidence.better < 0.5 * (1 + _SIGNIFICANCE / math.sqrt(episodes)):
        return 0.0, f"{share}, but in no more than {evidence.better:.0%} of {episodes} episodes"
    return evidence.best_kappa, f"{share}, below {_RATIO:g}"


def _subsample(track: Track) -> Track:
    """Return some of the episodes, evenly chosen, where they have too many steps, and none without steps."""
    counts = np.diff(track.offsets)
    chosen = np.flatnonzero(counts)
    if counts.sum() > _STEPS:
        some = max(_FEWEST_EPISODES, int(len(chosen) * _STEPS / counts.sum()))
        chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, min(some, len(chosen))).round().astype(int))]
    keep = np.zeros(len(counts), dtype=bool)
    keep[chosen] = True
    rows = np.repeat(keep, counts)
    offsets = np.concatenate(([0], np.cumsum(counts[keep])))
    return Track(track.positions[rows], track.finals[keep], track.actions[rows], offsets, track.source)


class _Stretches:
    """Stretches of neighbouring steps, and how well a motion predicts the ones that its fit has not seen."""

    def __init__(self, track: Track) -> None:
        counts = np.diff(track.offsets)
        length = int(np.clip(np.median(counts) // (_STRETCHES * track.actions.shape[1]), 1, _LONGEST_STRETCH))
        episode = np.repeat(np.arange(len(counts)), counts)
        step = np.arange(len(episode)) - track.offsets[:-1][episode]
        self._first = np.flatnonzero(step % length == 0)
        self._actions = track.actions
        self._episode = episode[self._first]
        self._episodes = len(counts)
        ends = np.empty((len(self._first), track.positions.shape[1]))
        ends[:-1] = track.positions[self._first[1:]]
        ends[np.searchsorted(self._first, track.offsets[1:]) - 1] = track.finals
        moved = ends - track.positions[self._first]
        weight = self._weights(moved)
        self._roots = np.sqrt(weight)[:, None]
        self._moved = moved * self._roots
        # per episode: what there is to predict, and what nobody can; a stretch has two noisy ends
        self.totals = self._per_episode((self._moved**2).sum(axis=1))
        self.noise = 2 * _noise(track, episode) * self._per_episode(weight)
        fold = step[self._first] // length % _FOLDS
        self._group = self._episode * _FOLDS + fold
        self._order = np.argsort(self._group, kind="stable")
        ordered = self._group[self._order]
        self._begin = np.flatnonzero(np.diff(ordered, prepend=-1))
        self._present = ordered[self._begin]

    def errors(self, gains: FloatArray) -> FloatArray:
        """Return each episode's sum of squared errors where every action counts with its gain."""
        drives = np.add.reduceat(self._actions * gains[:, None], self._first) * self._roots
        drives /= np.sqrt((drives**2).sum() / len(drives)) or 1.0
        size = drives.shape[1]
        squares, products = self._moments(drives, drives), self._moments(drives, self._moved)
        pooled = np.linalg.solve(squares.sum(axis=0) + 1e-9 * np.eye(size), products.sum(axis=0))
        own = np.linalg.solve(squares + _RIDGE * np.eye(size), products + _RIDGE * pooled)
        predicted = np.einsum("nd,ndp->np", drives, own.reshape(-1, *own.shape[2:])[self._group])
        return self._per_episode(((self._moved - predicted) ** 2).sum(axis=1))

    def usual(self, squares: FloatArray) -> float:
        """Return the median of the episodes' relative errors: borders and mishaps spoil a few, and not the median."""
        moved = self.totals > 0
        return math.sqrt(max(0.0, float(np.median(squares[moved] / self.totals[moved]))))

    def _per_episode(self, values: FloatArray) -> FloatArray:
        sums: FloatArray = np.bincount(self._episode, values, minlength=self._episodes).astype(np.float64)
        return sums

    def _moments(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return Σ x·yᵀ per episode over all stretches that are not of a fold, for each fold."""
        summed: FloatArray = np.zeros((self._episodes, _FOLDS, left.shape[1], right.shape[1]))
        outer = left[self._order, :, None] * right[self._order, None, :]
        summed.reshape(-1, *outer.shape[1:])[self._present] = np.add.reduceat(outer, self._begin)
        others: FloatArray = summed.sum(axis=1, keepdims=True) - summed
        return others

    def _weights(self, moved: FloatArray) -> FloatArray:
        """Return weights with which short and long stretches matter alike: one over the usual squared displacement."""
        path = np.add.reduceat(np.linalg.norm(self._actions, axis=1), self._first)
        kind = np.unique(np.round(2 * np.log2(np.maximum(path, 1e-12))), return_inverse=True)[1]
        usual = (np.bincount(kind, (moved**2).sum(axis=1)) / np.bincount(kind))[kind]
        return np.divide(1.0, usual, out=np.zeros_like(usual), where=(usual > 0) & (path > 0))


def _noise(track: Track, episode: IntArray) -> float:
    """Estimate the variance of measured positions, all axes together, where an action is repeated; 0 without any.

    Two equal steps go equally far, so that s'' − 2s' + s holds nothing but noise, six times its variance.
    """
    again = np.flatnonzero((np.diff(episode) == 0) & (np.diff(track.actions, axis=0) == 0).all(axis=1)) + 1
    again = again[(track.actions[again] != 0).any(axis=1)]
    if len(again) < _FEWEST_REPEATS:
        return 0.0
    after = np.empty_like(track.positions)
    after[:-1] = track.positions[1:]
    after[track.offsets[1:] - 1] = track.finals
    bends = after[again] - 2 * track.positions[again] + track.positions[again - 1]
    deviations = _MEDIAN_TO_DEVIATION * np.median(np.abs(bends), axis=0)
    return float((deviations**2).sum() / 6)


def _vertex(errors: list[float]) -> float:
    """Return where a parabola through the errors of the best κ and its neighbours is lowest."""
    middle = int(np.clip(np.argmin(errors), 1, len(KAPPAS) - 2))
    low, best, high = errors[middle - 1 : middle + 2]
    curvature = low - 2 * best + high
    shift = 0.5 * (low - high) / curvature if curvature > 0 else 0.0
    step = KAPPAS[1] - KAPPAS[0]
    return round(KAPPAS[middle] + step * float(np.clip(shift, -1, 1)), 4)
