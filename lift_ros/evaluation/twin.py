"""The twin of a plant, made from bags alone: recorded starts and fitted motion, in which a policy can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lift_ros.array_types import BoolArray, FloatArray, IntArray
from lift_ros.bags.arrays import EpisodeArrays
from lift_ros.evaluation.convergence import DEFAULT_STEPS, BatchPolicy, Convergence
from lift_ros.evaluation.motion_fit import MotionFit, Movements, fit_motion
from lift_ros.seeds import generator
from lift_ros.shortcuts.motion import Track, estimate_motion

MOTION_LIMIT = 0.1  # relative error of predicted displacements up to which a twin is trusted
NOISE_LIMIT = 0.25  # of displacements, up to which its error is known well enough
VIEW_LIMIT = 0.5  # of θ: error of the fitted observations up to which a twin is built
FEWEST_EPISODES = 5
_VARIED = 1.5  # ratio of long to short recorded actions from which on an effect of length is seen
_SOME = 20  # actions that must be as short, or as long, for their length to count as recorded
_WIDELY_VARIED = 4.0  # from which on a power of the length is told from other effects
_BORDER_TOUCHES = 5  # recorded positions exactly at an extreme, to take it for a border
_SAME_TARGET = 0.2  # spread of last observations, relative to that of first ones, up to which they are one target
_RUNS = 600  # of a policy in the twin, at least


class NoTwin(Exception):
    """The bags do not tell enough to build a twin; the sentence says what is missing."""


@dataclass(frozen=True)
class View:
    """What is observed at a position: o = slope·s + an offset of the episode."""

    slope: FloatArray  # [observation size, d]
    offsets: FloatArray  # [episodes, observation size]
    error: float  # of the fit, in units of position


@dataclass(frozen=True)
class Twin:
    """Starts, goals, view and motion of recorded episodes."""

    motion: MotionFit
    view: View
    starts: FloatArray  # [episodes, d]
    goals: FloatArray  # [episodes, d]
    threshold: float  # θ
    low: FloatArray  # [d] the borders that were seen, or far outside
    high: FloatArray
    lengths: tuple[float, float]  # of short and of long recorded actions

    def __len__(self) -> int:
        return len(self.starts)

    def doubts(self) -> list[str]:
        """Return why the twin cannot be trusted; nothing where it can."""
        reasons = []
        if len(self) < FEWEST_EPISODES:
            reasons.append(f"it rests on {len(self)} episodes, fewer than {FEWEST_EPISODES}")
        if self.motion.depends_on_length or (self.motion.kappa and self._reach < _WIDELY_VARIED):
            reasons.append("how far a step goes depends on its length, in a way that the recorded lengths do not tell")
        if self.motion.error > MOTION_LIMIT:
            reasons.append(f"its displacements are {self.motion.error:.0%} off, more than {MOTION_LIMIT:.0%}")
        if self.motion.noise > NOISE_LIMIT:
            reasons.append(f"noise makes up {self.motion.noise:.0%} of the displacements, more than {NOISE_LIMIT:.0%}")
        return reasons

    def condition(self) -> str | None:
        """Return what had to be assumed, since no recorded step tells it."""
        if self.motion.kappa:
            return f"if long steps, too, go as far as the power {1 + self.motion.kappa:.2f} of their length"
        return f"if steps longer than {self.lengths[1]:.2g} go as far in proportion" if self._reach < _VARIED else None

    @property
    def _reach(self) -> float:
        short, long = self.lengths
        return long / short

    def run(self, policy: BatchPolicy, *, steps: int = DEFAULT_STEPS, seed: int = 0) -> Convergence:
        """Let a policy act under the map of each episode, from its start and from those of others.

        Maps are drawn as the recorded movements leave them possible. Row r belongs to the map of episode r modulo the
        number of episodes.
        """
        rng = generator(seed, "twin")
        copies = max(1, -(-_RUNS // len(self)))
        maps = np.concatenate(list(self.motion.draw(copies, rng)))
        # Start and context are independent, so that a map may also begin where another episode did.
        others = [rng.permutation(len(self)) for _ in range(copies - 1)]
        begin = np.concatenate([np.arange(len(self)), *others])
        position, goal, offset = self.starts[begin], self.goals[begin], self.view.offsets[begin]
        distances = np.empty((len(begin), steps + 1))
        distances[:, 0] = np.linalg.norm(position - goal, axis=1)
        arrivals = np.full(len(begin), np.nan)
        for step in range(1, steps + 1):
            action = policy.act_batch(position @ self.view.slope.T + offset)
            moved = self.motion.displacement(maps, position - goal, action) * np.isnan(arrivals)[:, None]
            position = np.clip(position + moved, self.low, self.high)
            distances[:, step] = np.linalg.norm(position - goal, axis=1)
            arrivals[np.isnan(arrivals) & (distances[:, step] <= self.threshold)] = step
        return Convergence(distances, arrivals)


def build_twin(arrays: EpisodeArrays, threshold: float | None = None) -> Twin:
    """Fit a twin to all episodes that tell their positions; raises `NoTwin` where that cannot be done.

    Where no `threshold` θ is given, it is where episodes ended that separates near enough from not yet.
    """
    if min(arrays.positions.shape[1], arrays.final_positions.shape[1]) == 0:
        raise NoTwin("no positions are recorded")
    paths = [_path(arrays.positions, arrays.final_positions, arrays, number) for number in range(len(arrays))]
    episodes = np.flatnonzero([bool(np.isfinite(path).all()) for path in paths]).astype(np.int64)
    if not len(episodes):
        raise NoTwin("no episode has all of its positions recorded")
    view = _fit_view(arrays, episodes, [paths[number] for number in episodes])
    goals, known = _goals(arrays, episodes, view)
    if not known.any():
        raise NoTwin("no goal is recorded, and no episode reached one")
    episodes, goals, view = episodes[known], goals[known], View(view.slope, view.offsets[known], view.error)
    paths = [paths[number] for number in episodes]
    if threshold is None:
        threshold = _threshold(paths, goals, arrays.terminated[episodes])
    if view.error > VIEW_LIMIT * threshold:
        raise NoTwin(
            "what is observed does not follow from the position by a linear map "
            f"(off by {view.error / threshold:.1f} θ; pictures, other sensors, or several goals)"
        )
    low, high = _borders(np.concatenate(paths))
    actions = [arrays.actions[arrays.rows(number)] for number in episodes.tolist()]
    movements = _movements(actions, paths, goals, low, high)
    if len(movements.action) <= movements.action.shape[1]:
        raise NoTwin(f"{len(movements.action)} movements are too few to fit a map")
    lengths = np.sort(np.linalg.norm(movements.action, axis=1))
    some = min(_SOME, len(lengths) // 10)
    starts = np.stack([path[0] for path in paths])
    kappa = estimate_motion(_track(arrays, episodes)).kappa
    return Twin(
        fit_motion(movements, kappa), view, starts, goals, threshold, low, high, (lengths[some], lengths[-1 - some])
    )


def _path(values: FloatArray, finals: FloatArray, arrays: EpisodeArrays, number: int) -> FloatArray:
    return np.concatenate([values[arrays.rows(number)], finals[number][None]])


def _track(arrays: EpisodeArrays, episodes: IntArray) -> Track:
    chosen = arrays.select(np.isin(np.arange(len(arrays)), episodes))
    return Track(chosen.positions, chosen.final_positions, chosen.actions, chosen.offsets, "positions")


def _fit_view(arrays: EpisodeArrays, episodes: IntArray, paths: Sequence[FloatArray]) -> View:
    seen = [_path(arrays.observations, arrays.final_observations, arrays, number) for number in episodes.tolist()]
    place, sight = (np.concatenate([part - part.mean(axis=0) for part in parts]) for parts in (paths, seen))
    slope = np.linalg.lstsq(place, sight, rcond=1e-9)[0].T
    offsets = np.stack([part.mean(axis=0) - slope @ path.mean(axis=0) for part, path in zip(seen, paths, strict=True)])
    missed = float(np.sqrt(((sight - place @ slope.T) ** 2).sum(axis=1).mean()))
    return View(slope, offsets, missed / max(float(np.linalg.norm(slope, 2)), 1e-12))


def _goals(arrays: EpisodeArrays, episodes: IntArray, view: View) -> tuple[FloatArray, BoolArray]:
    """Return the goal of each episode, recorded or in hindsight, and which episodes have one.

    The last position misses the goal by up to θ. Where all arrivals look alike, their mean is what is observed at the
    goal, and tells where the goal of each episode was.
    """
    goals = arrays.goals[episodes]
    given: BoolArray = np.logical_and.reduce(np.isfinite(goals), axis=1)
    arrived = arrays.terminated[episodes]
    if given.all() or not arrived.any():
        return goals, given
    last = arrays.final_observations[episodes][arrived]
    first = arrays.observations[arrays.offsets[:-1]][episodes][arrived]
    spread, wide = (float(np.linalg.norm(part - part.mean(axis=0), axis=1).max()) for part in (last, first))
    found = arrays.final_positions[episodes]
    if len(last) > 1 and spread < _SAME_TARGET * wide and np.linalg.matrix_rank(view.slope) == goals.shape[1]:
        found = (last.mean(axis=0) - view.offsets) @ np.linalg.pinv(view.slope).T
    return np.where(given[:, None], goals, found), given | arrived


def _threshold(paths: Sequence[FloatArray], goals: FloatArray, arrived: BoolArray) -> float:
    """Return the distance that best separates where episodes ended from where they went on."""
    far = [np.linalg.norm(path - goal, axis=1) for path, goal in zip(paths, goals, strict=True)]
    ends = np.sort([line[-1] for line, there in zip(far, arrived, strict=True) if there])
    if not len(ends):
        raise NoTwin("no episode arrived, so that nobody knows how near is near enough")
    on = np.sort(np.concatenate([line[:-1] if there else line for line, there in zip(far, arrived, strict=True)]))
    wrong = len(ends) - 1 - np.arange(len(ends)) + np.searchsorted(on, ends, side="right")
    inside = float(ends[int(np.argmin(wrong))])
    outside = on[np.searchsorted(on, inside, side="right") :]
    return (inside + float(outside[0])) / 2 if len(outside) else inside


def _borders(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the borders that recorded positions lie on, and places far outside where there is none."""
    low, high = points.min(axis=0), points.max(axis=0)
    touched = [(points == extreme).sum(axis=0) >= _BORDER_TOUCHES for extreme in (low, high)]
    return np.where(touched[0], low, 2 * low - high), np.where(touched[1], high, 2 * high - low)


def _movements(
    actions: Sequence[FloatArray], paths: Sequence[FloatArray], goals: FloatArray, low: FloatArray, high: FloatArray
) -> Movements:
    counts = [len(path) - 1 for path in paths]
    owner = np.repeat(np.arange(len(paths)), counts)
    before, after = np.concatenate([path[:-1] for path in paths]), np.concatenate([path[1:] for path in paths])
    action = np.concatenate(actions)
    acted = np.linalg.norm(action, axis=1) > 0
    return Movements(
        offset=(before - goals[owner])[acted],
        action=action[acted],
        moved=(after - before)[acted],
        episode=owner[acted],
        step=np.concatenate([np.arange(count) for count in counts])[acted],
        free=np.logical_and.reduce((after > low) & (after < high), axis=1)[acted],
        episodes=len(paths),
    )
