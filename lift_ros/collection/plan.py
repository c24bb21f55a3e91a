"""How a run is collected: what the scenario answers where the user left it open, in words and as the run's facts."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lift_ros
from lift_ros.collection.records import Mode
from lift_ros.configuration import check_value
from lift_ros.errors import UserError
from lift_ros.policies.augmentations import LEARNED, RANDOM_NAMES, UNCERTAINTY
from lift_ros.scenario import ASSIST_KEYS, GUARD_KEYS, AssistSettings, GuardSettings, Scenario

MODES = {mode.name.lower(): mode for mode in Mode}
ON, OFF = "on", "off"  # of the guard


@dataclass(frozen=True)
class CollectionPlan:
    """Who acts in which episodes of a run; the same for the loop in process and for the graph."""

    mode: Mode
    episodes: int  # 0 for no end
    p: float
    budget: int
    assist: AssistSettings
    guard: GuardSettings  # of this kind of plant
    augmentation: str  # learned, a random one, or a policy of the user's own
    model: Path | None  # of a learned augmentor that is there from the start
    data: tuple[Path, ...]  # runs in which the uncertainty model has seen its actions
    train_after: int  # the augmentor is trained on, or fitted to, so many first episodes of the run; 0: on none of them
    has_augmentor: bool  # whether anybody is asked besides the logging policy

    @classmethod
    def make(
        cls,
        scenario: Scenario,
        *,
        mode: str = "collect",
        episodes: int | None = None,
        p: float | None = None,
        budget: int | None = None,
        assist: Mapping[str, Any] | None = None,
        guard: Mapping[str, Any] | None = None,
        hardware: bool = False,
        augmentation: str | None = None,
        model: Path | None = None,
        data: Sequence[Path] = (),
        train_after: int | None = None,
    ) -> CollectionPlan:
        """Complete what the user says by what the scenario says; None leaves it to the scenario.

        In mode assist `budget` is that of the section of this name.
        """
        settings = scenario.collection
        if mode not in MODES:
            raise UserError(f"mode is {mode!r}; allowed: {', '.join(MODES)}")
        chosen = augmentation or (settings.augmentation if model is None else LEARNED)
        probability = float(settings.p if p is None else p)
        collects = MODES[mode] is Mode.COLLECT
        learns = chosen in (LEARNED, UNCERTAINTY) and model is None and not data and probability > 0 and collects
        by_default = settings.train_after if learns else 0
        wishes = {**asdict(scenario.assist), **(assist or {})}
        guarded = {**asdict(scenario.guard), **(guard or {})}
        if MODES[mode] is Mode.ASSIST and budget is not None:
            wishes["budget"] = budget
        plan = cls(
            mode=MODES[mode],
            episodes=settings.episodes if episodes is None else episodes,
            p=probability,
            budget=settings.augmentation_budget if budget is None else budget,
            assist=AssistSettings(**{name: check_value(name, wishes[name], key) for name, key in ASSIST_KEYS.items()}),
            guard=GuardSettings(
                **{name: check_value(f"guard_{name}", guarded[name], key) for name, key in GUARD_KEYS.items()}
            ).on(hardware or scenario.plant.kind == "hardware"),
            augmentation=chosen,
            model=model,
            data=tuple(data),
            train_after=by_default if train_after is None else train_after,
            has_augmentor=not collects or probability > 0 or bool(model or data or train_after or augmentation),
        )
        plan._check(train_after)
        return plan

    def _check(self, train_after: int | None) -> None:
        for name, value in (("episodes", self.episodes), ("budget", self.budget), ("train_after", self.train_after)):
            if value < 0:
                raise UserError(f"{name} is {value}; allowed: 0 or more")
        if not 0 <= self.p <= 1:
            raise UserError(f"p is {self.p:g}; allowed: between 0 and 1, it is a probability")
        if self.model is not None and self.augmentation != LEARNED:
            raise UserError(f"a model and the augmentation {self.augmentation} exclude each other: give one of them")
        if self.data and self.augmentation != UNCERTAINTY:
            raise UserError(
                f"data belong to the augmentation {UNCERTAINTY}, the only one that learns from seen actions, "
                f"not to {self.augmentation}"
            )
        if train_after and (self.data or self.augmentation not in (LEARNED, UNCERTAINTY)):
            raise UserError(
                f"train_after is {train_after}, but the augmentation {self.augmentation}"
                f"{' learns from the given data' if self.data else ' is never trained'}: leave one of them out"
            )
        trained = self.mode is Mode.SHADOW and self.train_after  # on the way
        if self.mode is not Mode.COLLECT and self.augmentation == LEARNED and self.model is None and not trained:
            raise UserError(f"mode {self.mode.name.lower()} needs a model; give one with --model FILE")
        fitted = self.data or self.train_after or not self.has_augmentor
        if self.augmentation == UNCERTAINTY and not fitted:
            raise UserError(
                f"the augmentation {UNCERTAINTY} needs the runs whose actions count as seen: give --data RUN …, or "
                "with --train-after the number of this run's first episodes"
            )

    @property
    def trains(self) -> bool:
        """Whether a model is trained while the run is collected, and episodes are left in which it can act."""
        return self.augmentation == LEARNED and self.train_after > 0 and self._goes_on

    @property
    def is_guarded(self) -> bool:
        """Whether a guard decides on p and budget."""
        return self.guard.enabled and self.mode is Mode.COLLECT and self.p > 0 and self.budget > 0

    @property
    def model_hash(self) -> str:
        """SHA-256 of the given model; empty where none is given."""
        if self.model is None:
            return ""
        from lift_ros.policies.model_file import file_hash  # here, since few runs need safetensors

        return file_hash(self.model)

    @property
    def is_random(self) -> bool:
        """Whether the augmentor is a random augmentation."""
        return self.augmentation in RANDOM_NAMES

    @property
    def _goes_on(self) -> bool:
        return self.episodes == 0 or self.episodes > self.train_after

    def describe(self) -> str:
        """Return in one line what will happen."""
        count = f"{self.episodes} episodes" if self.episodes else "episodes without end"
        augmentor, alone = self._augmentor(), "the logging policy alone"
        if self.mode is Mode.EVALUATE:
            return f"{count}: {augmentor} alone"
        if self.mode is Mode.ASSIST:
            limit = f"at most {self.assist.budget} moves"
            return f"{count}: {augmentor} until it stalls, {limit}; then the logging policy finishes"
        if self.mode is Mode.SHADOW:
            return f"{count}: {alone}; {augmentor} is asked and recorded, but never acts"
        if not self.p:
            return f"{count}: {alone}"
        if self.model is not None or not self.train_after:
            return f"{count}: the logging policy with {augmentor}, p={self.p:g}"
        if not self._goes_on:
            return f"{count}: {alone}; {augmentor} would come after {self.train_after} episodes"
        return f"{count}: {alone} until episode {self.train_after}, then with {augmentor}, p={self.p:g}"

    def _augmentor(self) -> str:
        if self.model is not None:
            return f"the model {self.model.name}"
        if self.augmentation == LEARNED:
            return "the model trained on them" if self.train_after else "an augmentor that waits for a model"
        if self.augmentation == UNCERTAINTY:
            seen = ", ".join(path.name for path in self.data) if self.data else "them"
            return f"the uncertainty model fitted to {seen}"
        return f"the augmentation {self.augmentation}"

    def facts(self, scenario: Scenario, *, seed: int, made_by: str) -> dict[str, Any]:
        """Return what a run's metadata say of how it was made."""
        versions = {"lift_ros": lift_ros.__version__, "numpy": np.__version__, "python": platform.python_version()}
        return {
            "scenario": scenario.name,
            "parameters": scenario.as_dict(),
            "seed": seed,
            "mode": self.mode.name.lower(),
            "p": self.p,
            "budget": self.budget,
            "assist": asdict(self.assist) if self.mode is Mode.ASSIST else None,
            "guard": asdict(self.guard) if self.is_guarded else None,
            "policy": scenario.logging_policy.name,
            "augmentation": self.augmentation if self.has_augmentor else None,
            "train_after": self.train_after,
            "model": self.model_hash,
            "data": [path.name for path in self.data],
            "versions": versions,
            "made_by": made_by,
        }
