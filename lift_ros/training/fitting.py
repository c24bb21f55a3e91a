"""The uncertainty model's data from recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.policies.augmentations import UncertaintyModel
from lift_ros.training.runs import load_runs


def fit_to_runs(model: UncertaintyModel, runs: Sequence[str | Path], episodes: int = 0) -> None:
    """Fit to all steps of these runs, or to those of each run's first `episodes` episodes."""
    if not runs:
        raise UserError("the uncertainty model needs the runs whose actions count as seen, but none is named")
    arrays = load_runs(runs, episodes=episodes or None).arrays
    model.fit(arrays.observations, arrays.actions)
