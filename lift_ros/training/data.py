"""Recorded episodes as the flat arrays that training draws from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lift_ros.array_types import BoolArray, FloatArray, IntArray
from lift_ros.bags.arrays import EpisodeArrays
from lift_ros.bags.hindsight import label
from lift_ros.errors import UserError
from lift_ros.policies.displacement import goal_numbers
from lift_ros.policies.sight import VALUES, Sight
from lift_ros.seeds import generator
from lift_ros.shortcuts.motion import Track

FEWEST_TO_SPLIT = 10  # episodes; of fewer none can be spared
_SAME_MOVE = 0.01  # of a step, by which what is observed may change differently
_PICTURE_ROW = "picture_row"  # column of arrays


@dataclass(frozen=True)
class TrainingData:
    """All steps end to end; piece e holds the steps offsets[e] to offsets[e+1].

    A piece is an episode, or where several goals are reached in turn the part of it that approaches one of them: a
    single action cannot reach a goal in passing, so that no shortcut may lead from before it to behind it.
    """

    observations: npt.NDArray[np.float32]
    actions: FloatArray
    rewards: FloatArray
    offsets: npt.NDArray[np.int64]
    terminated: npt.NDArray[np.bool_]
    final_observations: npt.NDArray[np.float32]
    episodes: int
    labelled: int  # episodes whose rewards were found in hindsight
    left_out: dict[str, int]  # episodes that have no reward, by reason
    arrived: npt.NDArray[np.bool_]  # whether each piece reached its goal, the last one or one in passing
    places: npt.NDArray[np.float32] | None = None  # position at each step and at the end of its episode, deviation 1
    rests: FloatArray | None = None  # for each piece the action from its end to its recorded goal; zero where unknown
    picture_rows: IntArray | None = None  # where the picture of each step lies in a store of them

    def facts(self) -> dict[str, Any]:
        """Return how much there is; the same arrays give the same digest, wherever they lay."""
        total = hashlib.sha256()
        arrays = (self.observations, self.actions, self.rewards, self.offsets, self.terminated, self.final_observations)
        for array in arrays:
            total.update(f"{array.dtype.str}{array.shape}".encode())
            total.update(np.ascontiguousarray(array).tobytes())
        return {"episodes": self.episodes, "steps": len(self.rewards), "digest": total.hexdigest()}


def with_picture_rows(arrays: EpisodeArrays) -> EpisodeArrays:
    """Note at each step where its picture lies in a store of all of them, however episodes are chosen later.

    A store holds the pictures of an episode's steps and then the one that the last step led to.
    """
    episode = np.repeat(np.arange(len(arrays)), np.diff(arrays.offsets))
    return replace(arrays, columns={**arrays.columns, _PICTURE_ROW: np.arange(arrays.steps) + episode})


def picture_rows(arrays: EpisodeArrays) -> IntArray | None:
    """Return where the picture of each step lies in the store; None where there is none."""
    return arrays.columns.get(_PICTURE_ROW)


def shown(arrays: EpisodeArrays, sight: Sight) -> EpisodeArrays:
    """Return episodes with those entries of their observations that are seen."""
    entries = sight.entries
    return replace(
        arrays,
        observations=np.ascontiguousarray(arrays.observations[:, entries]),
        final_observations=np.ascontiguousarray(arrays.final_observations[:, entries]),
    )


def make_track(arrays: EpisodeArrays) -> Track | None:
    """Return where episodes went: recorded positions, or observations of the action's size; None without either."""
    known = {"positions": (arrays.positions, arrays.final_positions)}
    if arrays.observations.shape[1] == arrays.actions.shape[1]:
        known["observations"] = arrays.observations, arrays.final_observations
    for source, (steps, finals) in known.items():
        told = 0 < steps.shape[1] == finals.shape[1]
        if told and np.isfinite(steps).all() and np.isfinite(finals).all():
            return Track(steps, finals, arrays.actions, arrays.offsets, source)
    return None


def held_out(episodes: int, share: float, seed: int) -> BoolArray:
    """Return which episodes training never sees, so that a model can be judged by them: at least one of ten or more."""
    count = max(1, round(share * episodes)) if share > 0 and episodes >= FEWEST_TO_SPLIT else 0
    chosen = np.zeros(episodes, dtype=bool)
    chosen[generator(seed, "held out").permutation(episodes)[:count]] = True
    return chosen


def make_data(arrays: EpisodeArrays, reward: str, sight: Sight = VALUES) -> TrainingData:
    """Return episodes as training data of what is seen of them.

    `reward` is the option of this name and decides about missing rewards.
    """
    labels = label(arrays)
    missing = np.logical_or.reduce([labels.labelled, *labels.unknown.values()])
    if reward == "recorded" and missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise UserError(
            f"{int(missing.sum())} of {len(missing)} episodes have steps without reward, the first is episode "
            f"{arrays.episodes[first]}; label them with the option reward=hindsight (`lift train --reward hindsight`)"
        )
    left_out = {reason: int(episodes.sum()) for reason, episodes in labels.unknown.items() if episodes.any()}
    keep = ~missing | labels.labelled
    if not keep.any():
        reasons = [f"{count} {reason}" for reason, count in left_out.items()]
        raise UserError(f"there is no episode with a step to train on ({', '.join(reasons) or 'none was recorded'})")
    counts = np.diff(arrays.offsets)
    rows = np.repeat(keep, counts)
    observations = arrays.observations[rows].astype(np.float32)
    ends = np.cumsum(counts[keep])
    cuts = _cuts(observations, ends, arrays.actions.shape[1])
    places = np.searchsorted(ends, cuts, side="right")  # episodes that are cut; the pieces before their last come first
    observations, finals = (values[:, sight.entries] for values in (observations, arrays.final_observations[keep]))
    pictures = picture_rows(arrays)
    offsets = np.concatenate([[0], np.sort(np.concatenate([cuts, ends]))]).astype(np.int64)
    data = TrainingData(
        observations=observations,
        actions=arrays.actions[rows],
        rewards=labels.rewards[rows],
        offsets=offsets,
        terminated=np.insert(arrays.terminated[keep], places, False),
        final_observations=np.insert(finals.astype(np.float32), places, observations[cuts], axis=0),
        episodes=int(keep.sum()),
        labelled=int(labels.labelled.sum()),
        left_out=left_out,
        arrived=np.insert(arrays.terminated[keep], places, True),
        places=_places(arrays, rows),
        rests=_rests(arrays, keep, cuts, offsets),
        picture_rows=None if pictures is None else pictures[rows],
    )
    for name in ("observations", "actions", "rewards", "final_observations"):
        if not np.isfinite(getattr(data, name)).all():
            raise UserError(f"the {name} hold NaN or infinity; leave the damaged episodes out")
    return data


def _places(arrays: EpisodeArrays, rows: BoolArray) -> npt.NDArray[np.float32] | None:
    """Return where the plant was at each step and where its episode ended; None where positions are not recorded."""
    if not 0 < arrays.positions.shape[1] == arrays.final_positions.shape[1]:
        return None
    ends = np.repeat(arrays.final_positions, np.diff(arrays.offsets), axis=0)
    both = np.concatenate([arrays.positions, ends], axis=1)[rows]
    if not np.isfinite(both).all():
        return None
    scaled: npt.NDArray[np.float32] = ((both - both.mean(axis=0)) / max(float(both.std()), 1e-12)).astype(np.float32)
    return scaled


def _rests(arrays: EpisodeArrays, keep: BoolArray, cuts: IntArray, offsets: IntArray) -> FloatArray:
    """Return for each piece the action that would lead from its end to its goal; zero where nobody knows.

    Routines stop as soon as they are within the threshold, always on the side from which they come. How far an action
    moves is what all episodes, each from its start to its end, have in common. `cuts` are the steps at which the next
    of several goals begins, `offsets` those at which any piece does.
    """
    nothing = np.zeros((len(offsets) - 1, arrays.actions.shape[1]))
    track = make_track(arrays)
    if track is None or track.source != "positions" or track.finals.shape[1] != nothing.shape[1]:
        return nothing
    starts = arrays.offsets[:-1]
    whole = arrays.final_positions - arrays.positions[starts]
    motion, *_ = np.linalg.lstsq(np.add.reduceat(arrays.actions, starts), whole, rcond=None)
    if np.linalg.matrix_rank(motion) < len(motion):
        return nothing
    known = np.isfinite(arrays.goals).all(axis=1) & arrays.terminated
    missing = np.where(known[:, None], arrays.goals - arrays.final_positions, 0.0)[keep]
    rows = np.repeat(keep, np.diff(arrays.offsets))
    in_passing = np.isin(offsets[1:], cuts)
    first = offsets[:-1][in_passing]
    everything = nothing.copy()
    everything[in_passing] = _missing_in_passing(arrays.observations[rows], arrays.positions[rows], cuts, first)
    everything[~in_passing] = missing
    rests: FloatArray = np.linalg.solve(motion.T, everything.T).T
    return rests


def _missing_in_passing(observations: FloatArray, positions: FloatArray, cuts: IntArray, first: IntArray) -> FloatArray:
    """Return what is missing to each goal that is reached in passing, where its displacement was observed until then.

    It was where it changed as much as the position in the last step before; `first` are the steps with which the
    pieces before the cuts begin.
    """
    size = positions.shape[1]
    missing = np.zeros((len(cuts), size))
    if not len(cuts) or observations.shape[1] % size:
        return missing
    blocks = observations.reshape(len(observations), -1, size)
    last, before = cuts - 1, np.maximum(cuts - 2, 0)
    number = goal_numbers(observations[last], size)
    displacements = blocks[last, number]
    moved = positions[last] - positions[before]
    off = np.linalg.norm(displacements - blocks[before, number] - moved, axis=1)
    observed = (off <= _SAME_MOVE * np.linalg.norm(moved, axis=1)) & (last > first)
    missing[observed] = (positions[last] - displacements - positions[cuts])[observed]
    return missing


def _cuts(observations: npt.NDArray[np.float32], ends: IntArray, action_size: int) -> IntArray:
    """Return the steps that begin with the next of several goals, of episodes whose goals follow each other."""
    if observations.ndim != 2:
        return np.empty(0, dtype=np.int64)
    numbers = goal_numbers(observations, action_size)
    changes = np.zeros_like(numbers)
    changes[1:] = numbers[1:] - numbers[:-1]
    changes[ends[:-1]] = 0  # from one episode to the next
    backwards = np.unique(np.searchsorted(ends, np.flatnonzero(changes < 0), side="right"))
    cuts = np.flatnonzero(changes > 0)
    # Where they do not, the zeros of some other sensor look like a goal that was reached.
    return cuts[~np.isin(np.searchsorted(ends, cuts, side="right"), backwards)]
