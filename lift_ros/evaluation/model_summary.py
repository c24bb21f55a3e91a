"""What a model file says of itself: network, inputs, training and the bags that it was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lift_ros.console import fold, format_table, shown
from lift_ros.policies.learned import load_model
from lift_ros.training.options import TrainingOptions


@dataclass(frozen=True)
class ModelSummary:
    """One model; what older versions, or other programs, did not write into it is missing."""

    model: str
    hash: str
    lift_ros: str | None  # version that wrote it
    algorithm: str
    observation_size: int
    action_size: int
    action_radius: float
    actor: list[int]  # width of its input, its layers and its output
    critics: int
    sees: str  # what of an observation
    picture: str | None  # that it needs, and what becomes of it
    scaled: bool
    switches: list[int]  # entries whose zero has an input of its own
    knows_coverage: bool
    training: dict[str, Any]

    def text(self) -> str:
        """Return everything for a terminal."""
        written = "" if self.lift_ros is None else f", written by lift_ros {self.lift_ros}"
        rows: list[tuple[str, object]] = [
            ("algorithm", f"{self.algorithm}{written}"),
            ("hash", self.hash[:16]),
            ("sees", self.sees if self.picture is None else f"{self.sees}: {self.picture}"),
            ("maps", f"observations of size {self.observation_size} to actions of size {self.action_size}"),
            ("longest action λ", shown(self.action_radius)),
            ("inputs", self._inputs()),
            ("actor, critics", f"{' → '.join(map(str, self.actor))}, {self.critics}"),
            ("knows its coverage", "yes" if self.knows_coverage else "no"),
            *self._training_rows(),
        ]
        return f"{self.model}\n{format_table(('model', 'says'), rows)}\n{self._bags()}".rstrip()

    def _inputs(self) -> str:
        scaled = "observations scaled" if self.scaled else "observations as they are"
        if not self.switches:
            return scaled
        return f"{scaled}; an input of its own where entry {', '.join(map(str, self.switches))} is exactly 0"

    def _training_rows(self) -> list[tuple[str, object]]:
        training = self.training
        rows: list[tuple[str, object]] = []
        if data := training.get("data"):
            rows.append(("trained on", f"{data['episodes']} episodes, {data['steps']} steps"))
        if "updates" in training:
            rows.append(("updates", training["updates"]))
        if "options" in training:
            rows.append(("options", _differing(training["options"])))
        if motion := training.get("motion"):
            law = f"‖a‖^{1 + motion['kappa']:.2f}" if motion["kappa"] else "linear"
            rows.append(("motion", f"{law}: {motion['reason']}" if motion["reason"] else law))
        if losses := training.get("losses"):
            rows.append(("losses", ", ".join(f"{name} {shown(value)}" for name, value in losses.items())))
        if evaluations := training.get("evaluations"):
            last = evaluations[-1]
            rows.append(("success", f"{shown(last.get('success'))} after {last.get('update')} updates"))
        return rows

    def _bags(self) -> str:
        header = ("bag", "episodes", "held out", "hash")
        rows = [
            (bag["path"], bag["episodes"], len(bag.get("held_out", [])), (bag.get("sha256") or "–")[:16])
            for bag in self.training.get("bags") or []
        ]
        hint = fold(f"How it will do: lift evaluate {self.model} --run RUN … (from bags), or --scenario NAME.", "  ")
        return f"\n{format_table(header, rows)}\n\n{hint}" if rows else f"\n{hint}"


def summarise_model(path: Path) -> ModelSummary:
    """Read a model file whole, check it, and sum it up."""
    policy = load_model(path)
    description = policy.description
    layers = policy.actor_layers
    return ModelSummary(
        model=str(path),
        hash=policy.hash,
        lift_ros=description.get("lift_ros"),
        algorithm=policy.algorithm,
        observation_size=policy.observation_size,
        action_size=policy.action_size,
        action_radius=policy.action_radius,
        actor=[len(layers[0][0]), *(len(bias) for _, bias in layers)],
        critics=int(description["critics"]),
        sees=str(policy.sight),
        picture=None if policy.preprocessing is None else policy.preprocessing.words(),
        scaled=policy.inputs.is_scaled,
        switches=[int(entry) for entry in policy.inputs.switches],
        knows_coverage=policy.knows_coverage,
        training=dict(description.get("training") or {}),
    )


def _differing(options: dict[str, Any]) -> str:
    """Return the options that differ from today's defaults."""
    defaults = TrainingOptions().as_dict()
    changed = [f"{name}={value}" for name, value in options.items() if name not in defaults or defaults[name] != value]
    missing = [name for name in defaults if name not in options]
    words = ", ".join(changed) or "the defaults"
    return words + (f"; not known to the version that wrote it: {', '.join(missing)}" if missing else "")
