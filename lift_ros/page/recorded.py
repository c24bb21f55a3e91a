"""A recorded run as one looks back at it: what is shown is read when it is shown, and a list of ends beside."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.bags.ends import read_end
from lift_ros.bags.hindsight import hindsight
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Outcome, Rejection, Source, Step
from lift_ros.errors import UserError
from lift_ros.evaluation.paths import distances, goal_of, positions
from lift_ros.evaluation.run_facts import threshold_of, units_of
from lift_ros.evaluation.shortcut_summary import shortcut_settings
from lift_ros.page.live import EpisodeRow, PlantWords
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.policies.sight import look
from lift_ros.shortcuts.rule import candidates

REJECTIONS = {
    Rejection.NONE: "",
    Rejection.MISSING: "it did not answer",
    Rejection.LATE: "it answered too late",
    Rejection.NOT_FINITE: "its action is not finite",
    Rejection.WRONG_SIZE: "its action has another size",
    Rejection.TOO_LONG: "its action is longer than allowed",
    Rejection.OUTSIDE_WORKSPACE: "its action would leave the workspace",
    Rejection.STALE: "it answered another question",
    Rejection.CANCELLING: "its last moves undid one another",
    Rejection.TOO_SHORT: "it hardly moves any more",
    Rejection.UNCOVERED: "its data do not cover what is seen",
    Rejection.BUDGET_USED: "its moves are used up",
    Rejection.LEASH: "the episode takes too long, so it does not act any more",
}


class RecordedRun:
    """One run: rows of its table as far as they are known, and single episodes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = RunReader(path)
        facts = self._reader.facts
        self.words = PlantWords(str(facts.get("scenario") or path.name), units_of(facts), threshold_of(facts))
        self.gamma, self.constant = shortcut_settings(facts)
        plant = (facts.get("parameters") or {}).get("plant") or {}
        self._radius = plant.get("action_radius")
        self.indices = self._reader.episode_indices
        self.rows: dict[int, EpisodeRow] = {}
        self.trouble = ""
        self._lock = threading.Lock()
        self._kept: tuple[int, RecordedEpisode] | None = None

    def row(self, index: int) -> EpisodeRow:
        """Return a line of the table, read now where it is not known yet."""
        if index not in self.rows:
            with self._lock:
                self.rows[index] = EpisodeRow.of(read_end(self._reader, index))
        return self.rows[index]

    def page(self, first: int, count: int, key: str = "index", *, descending: bool = False) -> list[EpisodeRow]:
        """Return a part of the table; sorted by anything but the number, it has what is listed so far."""
        if key == "index":
            indices = self.indices[::-1] if descending else self.indices
            return [self.row(index) for index in indices[first : first + count]]
        rows = sorted(self.rows.copy().values(), key=lambda row: _sortable(row, key), reverse=descending)
        return rows[first : first + count]

    @property
    def is_listed(self) -> bool:
        """Whether all ends are known, so that the table can be sorted by anything."""
        return bool(self.trouble) or len(self.rows) == len(self.indices)

    def list_all(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Read all ends, in a thread that gives way: what is shown meanwhile is read at once."""
        try:
            for index in self.indices:
                if ended():
                    return
                self.row(index)
        except (UserError, OSError) as error:
            self.trouble = str(error)

    def episode(self, index: int) -> RecordedEpisode:
        """Read an episode, with all checks."""
        if self._kept is None or self._kept[0] != index:
            with self._lock:
                found = self._reader.episode(index)
            self._kept = index, RecordedEpisode(self, found)
        return self._kept[1]

    def shortcuts(self, episode: Episode, step: int) -> list[int]:
        """Return the states to which Algorithm 1 would lead from a step in one action, as training takes them."""
        rewards = [each.reward for each in episode.steps]
        if self._radius is None or not np.isfinite(rewards).all():
            return []
        stops, _ = candidates(
            [each.action for each in episode.steps],
            rewards,
            step,
            gamma=self.gamma,
            C=self.constant,
            action_radius=float(self._radius),
            terminated=episode.outcome is Outcome.REACHED,
        )
        return [int(stop) for stop in stops if stop > step + 1]


class RecordedEpisode:
    """One episode, with what is drawn of it."""

    def __init__(self, run: RecordedRun, episode: Episode) -> None:
        labelled, _ = hindsight([episode])
        self._run = run
        self.episode = labelled[0] if labelled else episode
        known = positions(episode)
        self.known = len(known) > 0
        moves = [step.action for step in episode.steps]
        self.path: FloatArray = known if self.known else np.vstack([np.zeros_like(moves[:1]), np.cumsum(moves, axis=0)])
        self.goal = goal_of(episode) if self.known else np.empty(0)
        self.distances = distances(self.episode)

    @property
    def steps(self) -> list[Step]:
        """What was done."""
        return self.episode.steps

    def picture(self, place: int) -> Picture | None:
        """Return what was seen before a step, or after the last."""
        return self.episode.final_image if place == len(self.steps) else self.steps[place].image

    def shortcuts(self, step: int) -> list[int]:
        """Return the states to which a shortcut leads from a step."""
        return self._run.shortcuts(self.episode, step)

    def proposal(self, model: LearnedPolicy, step: int) -> FloatArray:
        """Return what a model proposes for what was seen before a step; UserError where it sees something else."""
        seen = self.steps[step]
        return np.asarray(model.act(look(model, seen.observation, seen.image)), dtype=np.float64)


def decision_of(step: Step) -> str:
    """Return in words who acted in a step and why."""
    drawn = f"u = {step.draw:.3f} {'≤' if step.draw <= step.p else '>'} p = {step.p:g}"
    words = [drawn] if step.draw == step.draw else [f"p = {step.p:g}, nothing was drawn"]
    actor = "the augmentor acted" if step.source is Source.AUGMENTOR else "the routine acted"
    words.append(actor)
    if step.rejection is not Rejection.NONE:
        words.append(f"the augmentor's proposal was refused: {REJECTIONS[step.rejection]}")
    words.append(f"{step.augmentations_left} augmentations left")
    return "; ".join(words)


def _sortable(row: EpisodeRow, key: str) -> tuple[Any, int]:
    values = {
        "outcome": row.outcome.name,
        "who": row.phase.value,
        "steps": row.steps,
        "augmented": row.augmentations,
        "seconds": row.seconds,
    }
    return values[key], row.index
