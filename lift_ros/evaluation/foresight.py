"""What bags alone tell of a model before anything moves: how it will do, and how it differs from the best shortcuts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.array_types import BoolArray, FloatArray
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import DEFAULT_STEPS, BatchPolicy, Convergence
from lift_ros.evaluation.held_out import ActionComparison, compare_actions, unseen_episodes
from lift_ros.evaluation.twin import NoTwin, Twin, build_twin
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.seeds import generator
from lift_ros.training.data import shown, with_picture_rows
from lift_ros.training.runs import RecordedRuns

CONFIDENCE = 0.95
_NORMAL_QUANTILE = 1.96  # of this confidence
_RESAMPLES = 500
_PICTURE_MEMORY = 2**28  # bytes; more are read from a file


@dataclass(frozen=True)
class Prediction:
    """What the twin predicts of a policy, with intervals of confidence, and whether it can be trusted."""

    convergence: Convergence  # in the twin
    success_interval: tuple[float, float]
    steps: float  # median of those to arrive; infinite where less than half arrive
    steps_interval: tuple[float, float]
    doubts: tuple[str, ...]  # why it cannot be trusted; none where it can
    condition: str | None  # what is assumed if it is trusted

    @property
    def success(self) -> float:
        """Share of runs that arrived."""
        return self.convergence.success

    def line(self) -> str:
        """Return the prediction as one sentence."""
        success, steps = self.numbers()
        return f"predicted success {success}, steps {steps}; {self.verdict}"

    def numbers(self) -> tuple[str, str]:
        """Return success and steps with their intervals, as words."""
        (low, high), (fastest, slowest) = self.success_interval, self.steps_interval
        success = f"{self.success:.2f} [{low:.2f}, {high:.2f}]"
        if math.isinf(self.steps):
            return success, f"more than {self.convergence.distances.shape[1] - 1} in most runs"
        return success, f"{self.steps:.0f} [{fastest:.0f}, {slowest:.0f}]"

    @property
    def verdict(self) -> str:
        """Whether to trust it, and why not."""
        if self.doubts:
            return f"cannot be trusted: {'; '.join(self.doubts)}"
        return "can be trusted" + (f", {self.condition}" if self.condition else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers; infinite ones are for `for_programs` to turn into null."""
        return {
            "success": self.success,
            "success_interval": self.success_interval,
            "steps": self.steps,
            "steps_interval": self.steps_interval,
            "confidence": CONFIDENCE,
            "trusted": not self.doubts,
            "doubts": self.doubts,
            "condition": self.condition,
        }


def predict(twin: Twin, policy: BatchPolicy, *, steps: int = DEFAULT_STEPS, seed: int = 0) -> Prediction:
    """Let the policy run in the twin; the intervals say how much so few episodes can tell."""
    convergence = twin.run(policy, steps=steps, seed=seed)
    arrivals = np.nan_to_num(convergence.arrivals, nan=np.inf).reshape(-1, len(twin))  # a column per episode
    rng = generator(seed, "intervals")
    resampled = [_median(arrivals[:, rng.integers(len(twin), size=len(twin))]) for _ in range(_RESAMPLES)]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail), method="higher").tolist()
    return Prediction(
        convergence,
        wilson_interval(convergence.success, len(twin)),
        _median(arrivals),
        (low, high),
        tuple(twin.doubts()),
        twin.condition(),
    )


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the interval of confidence of a share of so many; unlike a bootstrap, it has a width at 0 and 1, too."""
    square = _NORMAL_QUANTILE**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    width = math.sqrt(share * (1 - share) / count + square / (4 * count**2)) * _NORMAL_QUANTILE / (1 + square / count)
    return max(0.0, middle - width), min(1.0, middle + width)


def _median(arrivals: FloatArray) -> float:
    return float(np.quantile(arrivals, 0.5, method="higher"))


@dataclass(frozen=True)
class Foresight:
    """All that runs tell of one model; where something cannot be told, a sentence says why."""

    held_out: bool  # whether the compared episodes were held out from training; else there are none but trained ones
    comparison: ActionComparison | None
    no_comparison: str
    prediction: Prediction | None
    no_prediction: str

    def line(self) -> str:
        """Return the prediction, or why there is none, as one sentence."""
        return f"no prediction: {self.no_prediction}" if self.prediction is None else self.prediction.line()

    def as_dict(self) -> dict[str, Any]:
        """Return everything as values for programs."""
        return {
            "held_out": self.held_out,
            "comparison": None if self.comparison is None else self.comparison.as_dict(),
            "no_comparison": self.no_comparison or None,
            "prediction": None if self.prediction is None else self.prediction.as_dict(),
            "no_prediction": self.no_prediction or None,
        }

    def text(self) -> str:
        """Return everything for a terminal."""
        if self.comparison is None:
            return f"no comparison of actions: {self.no_comparison}\n{self.line()}"
        kind = "held out from training" if self.held_out else "of the training itself, since none was held out"
        return (
            f"actions beside the best shortcuts of {self.comparison.episodes} episodes {kind}:\n"
            f"{self.comparison.table()}\n{self.line()}"
        )


class Outlook:
    """Recorded runs and their twin, ready to judge any number of models."""

    def __init__(self, recorded: RecordedRuns, paths: Sequence[str | Path]) -> None:
        if not len(recorded.arrays):
            raise UserError(f"{' '.join(map(str, paths))}: there is no episode with a step to judge a model by")
        self._recorded, self._paths = recorded, paths
        self.twin: Twin | None = None
        self.no_twin = ""
        parameters = {} if recorded.scenario is None else recorded.scenario.plant.parameters
        try:
            if recorded.sight.image:
                raise NoTwin("models see pictures, which it cannot draw")
            self.twin = build_twin(shown(recorded.arrays, recorded.sight), parameters.get("threshold"))
        except NoTwin as reason:
            self.no_twin = f"no twin can be run, for {reason}"

    def judge(self, policy: LearnedPolicy, name: str, *, steps: int = DEFAULT_STEPS, seed: int = 0) -> Foresight:
        """Compare the policy's actions with the best shortcuts, and predict how it will do."""
        arrays = self._recorded.arrays
        sight = self._recorded.sight
        if policy.sight != sight:
            raise UserError(f"{name} sees {policy.sight}, but the runs are for models that see {sight}")
        sizes = (sight.size(arrays.observations.shape[1]), arrays.actions.shape[1])
        if (policy.observation_size, policy.action_size) != sizes:
            raise UserError(
                f"{name} maps observations of size {policy.observation_size} to actions of size {policy.action_size}, "
                f"but the runs have {sizes[0]} and {sizes[1]}; give runs of the plant it was trained for"
            )
        unseen = unseen_episodes(policy, self._recorded, self._paths)
        comparison, reason = None, ""
        try:
            comparison = self._compare(policy, unseen if unseen.any() else np.ones_like(unseen), seed)
        except UserError as error:
            reason = str(error)
        prediction = None if self.twin is None else predict(self.twin, policy, steps=steps, seed=seed)
        return Foresight(bool(unseen.any()), comparison, reason, prediction, self.no_twin)

    def _compare(self, policy: LearnedPolicy, chosen: BoolArray, seed: int) -> ActionComparison:
        arrays = self._recorded.arrays.select(chosen)
        if policy.preprocessing is None:
            return compare_actions(policy, arrays, seed)
        recorded = replace(self._recorded, arrays=with_picture_rows(arrays))
        with closing(recorded.open_pictures(_PICTURE_MEMORY)) as pictures:
            return compare_actions(policy, recorded.arrays, seed, pictures)

    def facts(self) -> Mapping[str, Any] | None:
        """Return what the twin is and how good, as values for programs; None where there is none."""
        twin = self.twin
        if twin is None:
            return None
        return {
            "episodes": len(twin),
            "threshold": twin.threshold,
            "terms": twin.motion.errors,
            "error": twin.motion.error,
            "noise": twin.motion.noise,
            "kappa": twin.motion.kappa,
            "observation_error": twin.view.error,
        }

    def text(self) -> str:
        """Return what the twin is and how good, for a terminal."""
        twin = self.twin
        if twin is None:
            return self.no_twin
        terms, seen = ", ".join(twin.motion.errors), twin.view.error / twin.threshold
        return (
            f"twin of {len(twin)} episodes, each with its own start and map ({terms}): displacements "
            f"{twin.motion.error:.1%} off, observations {seen:.1%} of θ = {twin.threshold:.3g}"
        )
