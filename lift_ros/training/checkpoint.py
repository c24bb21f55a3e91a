"""Checkpoints: all that a training needs to continue bit for bit, in the format of the model file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from lift_ros.errors import UserError
from lift_ros.policies.model_file import read_tensor_file, write_tensor_file
from lift_ros.shortcuts.sampler import ShortcutSampler
from lift_ros.training.learners import Learner

CHECKPOINT_KIND = "checkpoint"


@dataclass
class Progressed:
    """How far a training is and what it measured on the way."""

    done: int = 0
    losses: dict[str, float] = field(default_factory=dict)  # averages over the last updates
    evaluations: list[dict[str, float]] = field(default_factory=list)


def checkpoint_path(model: str | Path) -> Path:
    """Return where the checkpoint of the training that writes `model` lies."""
    path = Path(model)
    return path.with_name(f"{path.stem}.checkpoint{path.suffix}")


def save_checkpoint(
    path: Path, identity: dict[str, Any], learner: Learner, sampler: ShortcutSampler, progressed: Progressed
) -> None:
    """Write learner, sampler and measurements; `identity` says which training they belong to."""
    tensors, facts = learner.state()
    description = {"kind": CHECKPOINT_KIND, "identity": identity, "learner": facts, "sampler": sampler.state()}
    write_tensor_file(path, tensors, {**description, **asdict(progressed)})


def load_checkpoint(path: Path, identity: dict[str, Any], learner: Learner, sampler: ShortcutSampler) -> Progressed:
    """Bring learner and sampler to where the checkpoint was written."""
    file = read_tensor_file(path, CHECKPOINT_KIND)
    found = file.description.get("identity")
    if found != identity:
        raise UserError(
            f"{path} belongs to another training ({_difference(found, identity)}); train with the same data and "
            "options to resume it, or without --resume to begin anew"
        )
    try:
        learner.restore(file.tensors, file.description["learner"])
        sampler.set_state(file.description["sampler"])
        return Progressed(*(file.description[entry.name] for entry in fields(Progressed)))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"the checkpoint {path} is incomplete ({error}); train without --resume") from error


def _difference(found: Any, wanted: dict[str, Any], where: str = "") -> str:
    if not isinstance(found, dict):
        return f"{where or 'identity'} is {found!r}"
    for name, value in wanted.items():
        if found.get(name) != value:
            if isinstance(value, dict):
                return _difference(found.get(name), value, name)
            return f"{name} was {found.get(name)!r} and is {value!r}"
    return "it holds options that are unknown now"
