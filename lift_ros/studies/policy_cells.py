"""Cells that measure policies: how that of a method converges in fresh contexts, or in a twin of the bags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.bags.arrays import EpisodeArrays
from lift_ros.bags.reader import read_run
from lift_ros.collection.records import Source
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import (
    LOGGING_POLICY,
    REPORTED_STEPS,
    Convergence,
    context_seeds,
    converge,
    quartiles,
)
from lift_ros.evaluation.foresight import Outlook
from lift_ros.evaluation.scores import score_runs
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.scenario import Scenario
from lift_ros.seeds import derive_seed
from lift_ros.studies.methods import PLAIN_RUN
from lift_ros.studies.recordings import Recordings, as_options, as_scenario
from lift_ros.studies.store import Store
from lift_ros.studies.trainers import train_policy
from lift_ros.training.runs import RecordedRuns, load_runs

_DIGITS = 5


def measure_policy(settings: Mapping[str, Any], places: Sequence[str], store: Store) -> dict[str, Any]:
    """Return how the policy of a cell converges, and what it learned from."""
    evaluation = settings["evaluation"]
    scenario = None if settings["scenario"] is None else as_scenario(settings["scenario"])
    if "policy" in settings:
        assert scenario is not None
        name = settings["policy"]
        policy = scenario.make_logging_policy() if name == LOGGING_POLICY else scenario.make_policy(name)
        patience = scenario.limits.step_limit if name == LOGGING_POLICY else None
        return _in_contexts(scenario, policy, evaluation, patience)
    recorded = load_runs(places, scenario=scenario) if places else Recordings(settings["recording"], store).load()
    options = as_options(settings["training"])
    trained = train_policy(recorded, options, settings["action_radius"], scenario)
    facts = {"collection": _collection(recorded.arrays), **trained.facts}
    if scenario is not None:
        return {**_in_contexts(scenario, trained.policy, evaluation), **facts}
    return {**_in_twin(recorded, places, trained.policy, evaluation["steps"]), **facts}


def measure_data(settings: Mapping[str, Any], places: Sequence[str], store: Store) -> dict[str, Any]:
    """Return scores of the collected episodes beside those of the logging policy alone with the same seed."""
    recording = settings["recording"]
    alone = {**recording, "collected": PLAIN_RUN, "augmentor": None, "p": 0.0, "n": 0}
    runs = [
        [episode for run in Recordings(each, store).runs() for episode in read_run(run)] for each in (alone, recording)
    ]
    _, score = score_runs(runs, reference=0, radius=as_scenario(recording["scenario"]).action_radius)
    steps = [len(episode.steps) for episode in runs[1]]
    return {
        "quality": _rounded(score.trajectory_quality),
        "mean_return": _rounded(score.mean_return),
        "coverage": _rounded(score.coverage),
        "exploration": _rounded(score.exploration),
        "steps": _rounded(float(np.mean(steps))),
    }


def _in_contexts(
    scenario: Scenario, policy: Any, evaluation: Mapping[str, Any], patience: int | None = None
) -> dict[str, Any]:
    seeds = context_seeds(derive_seed(evaluation["seed"], "study"), evaluation["contexts"])
    reached = converge(scenario, policy, seeds, steps=evaluation["steps"], patience=patience)
    return summarise(reached, scenario.threshold)


def _in_twin(recorded: RecordedRuns, places: Sequence[str], policy: Any, steps: int) -> dict[str, Any]:
    """Judge by the bags alone, where no simulator is named."""
    if not isinstance(policy, LearnedPolicy):
        raise UserError("a twin judges model files only; name a scenario for these runs, to judge other policies in it")
    outlook = Outlook(recorded, places)
    foresight = outlook.judge(policy, "the model of a cell", steps=steps)
    if foresight.prediction is None or outlook.twin is None:
        raise UserError(f"these runs tell nothing of a model ({foresight.no_prediction}); name a scenario for them")
    doubts = list(foresight.prediction.doubts)
    return {**summarise(foresight.prediction.convergence, outlook.twin.threshold), "doubts": doubts}


def summarise(reached: Convergence, threshold: float) -> dict[str, Any]:
    """Return what is kept: of each context the arrival and some distances, and the quartiles after every step."""
    last = reached.distances.shape[1] - 1
    return {
        "threshold": threshold,
        "success": reached.success,
        "arrivals": [None if np.isnan(value) else int(value) for value in reached.arrivals],
        "distances": {str(step): _rounded(reached.distances[:, min(step, last)]) for step in REPORTED_STEPS},
        "curve": _rounded(quartiles(reached.distances)),
    }


def _collection(arrays: EpisodeArrays) -> dict[str, Any]:
    lengths = np.diff(arrays.offsets)
    augmented = np.add.reduceat(arrays.sources == int(Source.AUGMENTOR), arrays.offsets[:-1]) > 0
    means = {"plain_steps": lengths[~augmented], "augmented_steps": lengths[augmented]}
    return {
        "episodes": len(arrays),
        "steps": arrays.steps,
        "reached": _rounded(float(arrays.terminated.mean())),
        **{name: _rounded(float(values.mean())) if len(values) else None for name, values in means.items()},
    }


def _rounded(value: Any) -> Any:
    """Return numbers with few digits as JSON values; null where one is not finite."""
    if isinstance(value, np.ndarray):
        return [_rounded(entry) for entry in value.tolist()]
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
