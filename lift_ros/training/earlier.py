"""Models that were written before: whether a file holds what the same training would write again."""

from __future__ import annotations

from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.policies.learned import LearnedPolicy, load_model
from lift_ros.training.data import held_out, make_data
from lift_ros.training.options import TrainingOptions
from lift_ros.training.runs import RecordedRuns


def find_earlier(
    path: Path, recorded: RecordedRuns, options: TrainingOptions, action_radius: float
) -> LearnedPolicy | None:
    """Return the policy in a file if it comes from the same episodes, options and λ, finished or not."""
    try:
        policy = load_model(path)
    except UserError:
        return None  # there is none, or none that is whole
    training = policy.description.get("training", {})
    if training.get("options") != options.as_dict() or policy.action_radius != action_radius:
        return None
    pictures = None if recorded.preprocessing is None else recorded.preprocessing.description()
    if policy.sight != recorded.sight or policy.description.get("picture") != pictures:
        return None
    spared = held_out(len(recorded.arrays), options.held_out, options.seed)
    facts = make_data(recorded.arrays.select(~spared), options.reward, recorded.sight).facts()
    return policy if facts.items() <= training.get("data", {}).items() else None
