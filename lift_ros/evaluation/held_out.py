"""A policy's actions beside the best shortcuts of episodes that it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import BoolArray, FloatArray
from lift_ros.bags.arrays import EpisodeArrays
from lift_ros.bags.hindsight import label
from lift_ros.bags.pictures import PictureStore
from lift_ros.console import format_table
from lift_ros.evaluation.convergence import quartiles
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.policies.sight import sight_of
from lift_ros.shortcuts.sampler import ShortcutSampler
from lift_ros.training.data import make_data
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns, hash_of_first

_DRAWS = 4096  # steps at which actions are compared, at most
_RATIO = "{1:.2f} [{0:.2f}, {2:.2f}]"
_FORMS = {"angle": "{1:.0f} [{0:.0f}, {2:.0f}]", "length_ratio": _RATIO, "error": _RATIO}  # of what is measured


@dataclass(frozen=True)
class ActionComparison:
    """How far a policy's actions are from the best shortcuts, at one step per entry."""

    episodes: int
    angle: FloatArray  # in degrees
    length_ratio: FloatArray  # the policy's over the shortcut's
    error: FloatArray  # length of the difference, relative to λ
    near: BoolArray | None  # whether the goal was within λ, where that is known

    def groups(self) -> dict[str, BoolArray]:
        """Return which steps belong to the rows of the table."""
        everywhere = {"all": np.ones(len(self.angle), dtype=bool)}
        if self.near is None:
            return everywhere
        return {**everywhere, "goal within λ": self.near, "goal farther": ~self.near}

    def as_dict(self) -> dict[str, Any]:
        """Return the quartiles as JSON values."""
        return {
            "episodes": self.episodes,
            "steps": {name: int(chosen.sum()) for name, chosen in self.groups().items()},
            **{
                measure: {
                    name: list(quartiles(getattr(self, measure)[chosen]))
                    for name, chosen in self.groups().items()
                    if chosen.any()
                }
                for measure in _FORMS
            },
        }

    def table(self) -> str:
        """Return the quartiles as a table for a terminal."""
        rows = [
            [group, str(int(chosen.sum()))]
            + [form.format(*quartiles(getattr(self, name)[chosen])) for name, form in _FORMS.items()]
            for group, chosen in self.groups().items()
            if chosen.any()
        ]
        return format_table(["", "steps", "angle [°]", "length ratio", "error / λ"], rows)


def unseen_episodes(policy: LearnedPolicy, recorded: RecordedRuns, paths: Sequence[str | Path]) -> BoolArray:
    """Return which episodes the policy was not trained on, by what its model says of the bags it was trained on."""
    arrays = recorded.arrays
    bags = policy.description.get("training", {}).get("bags", [])
    unseen = np.ones(len(arrays), dtype=bool)
    for number, (source, path) in enumerate(zip(recorded.sources, paths, strict=True)):
        here = arrays.runs == number
        for bag in bags:
            if _same_beginning(bag, source, path):
                first = here & (np.cumsum(here) <= bag["episodes"])
                unseen &= ~first | np.isin(arrays.episodes, bag.get("held_out", []))
    return unseen


def _same_beginning(bag: Mapping[str, Any], source: Mapping[str, Any], path: str | Path) -> bool:
    """Whether a bag that a model was trained on is a run, or was its beginning: a run may have grown since."""
    if bag.get("sha256") is None:  # it was being written: the name is all there is
        return bool(bag.get("path") == source["path"])
    if bag["episodes"] > source["episodes"]:
        return False
    return bool(bag["sha256"] == source["sha256"] or bag["sha256"] == hash_of_first(path, bag["episodes"]))


def compare_actions(
    policy: LearnedPolicy, arrays: EpisodeArrays, seed: int = 0, pictures: PictureStore | None = None
) -> ActionComparison:
    """Compare at steps drawn from the episodes; raises UserError where they have no rewards to judge shortcuts by.

    A model that sees pictures is shown those of the store, whose rows the arrays name.
    """
    training = policy.description.get("training", {})
    options = training.get("options", {})
    defaults = TrainingOptions()
    arrays = arrays.select(~np.logical_or.reduce(list(label(arrays).unknown.values())))
    data = make_data(arrays, "hindsight", sight_of(policy))
    sampler = ShortcutSampler(
        data.observations,
        data.actions,
        data.rewards,
        data.offsets,
        data.terminated,
        data.final_observations,
        action_radius=policy.action_radius,
        gamma=options.get("gamma", defaults.gamma),
        C=options.get("C", defaults.C),
        strategy="best",
        kappa=training.get("motion", {}).get("kappa", 0.0),
        seed=seed,
    )
    batch = sampler.sample(min(_DRAWS, sampler.transitions))
    wanted = batch.actions.astype(np.float64)
    if pictures is None or data.picture_rows is None:
        given = policy.act_batch(batch.observations.astype(np.float64))
    else:
        given = policy.act_on(batch.observations, pictures.take(data.picture_rows[batch.starts]))
    wanted_length, given_length = (np.linalg.norm(actions, axis=1) for actions in (wanted, given))
    moving = wanted_length > 0  # a shortcut that stays where it is has no direction
    cosine = (wanted * given).sum(axis=1) / np.maximum(wanted_length * given_length, 1e-12)
    distances = _distances(arrays)
    return ActionComparison(
        episodes=data.episodes,
        angle=np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))[moving],
        length_ratio=(given_length / np.maximum(wanted_length, 1e-12))[moving],
        error=(np.linalg.norm(given - wanted, axis=1) / policy.action_radius)[moving],
        near=None if distances is None else (distances[batch.starts] <= policy.action_radius)[moving],
    )


def _distances(arrays: EpisodeArrays) -> FloatArray | None:
    """Return the distance to the goal before each step, the goal known or found in hindsight; None if there is none."""
    if arrays.positions.shape[1] == 0 or arrays.positions.shape[1] != arrays.final_positions.shape[1]:
        return None
    given: BoolArray = np.logical_and.reduce(np.isfinite(arrays.goals), axis=1)
    if not (given | arrays.terminated).all():
        return None
    goals = np.where(given[:, None], arrays.goals, arrays.final_positions)
    return np.asarray(np.linalg.norm(arrays.positions - np.repeat(goals, np.diff(arrays.offsets), axis=0), axis=1))
