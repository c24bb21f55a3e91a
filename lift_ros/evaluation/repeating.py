"""The commands that record a report's runs and train its models again, as far as their own records tell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lift_ros.policies.augmentations import AUGMENTATION_NAMES, LEARNED
from lift_ros.policies.learned import LearnedPolicy, load_model
from lift_ros.scenario import Scenario, load_scenario, scenario_names
from lift_ros.shortcuts.rule import PLAIN
from lift_ros.training.options import PRESETS, preset
from lift_ros.training.runs import recorded_scenario

Facts = Mapping[str, Any]
_COMMANDS = {"collect": "collect", "graph": "run"}  # by who made a run
_OF_THEIR_OWN = ("algorithm", "updates", "seed", "reward")  # options of training that `lift train` has a word for


def repeat_commands(
    runs: Mapping[Path, tuple[Facts, int]], models: Sequence[Path], out: Path | None = None
) -> list[str]:
    """Return all commands from nothing to the report, in order; `runs` are their facts and numbers of episodes.

    What the records do not tell is said in a comment.
    """
    known = {policy.hash: (path, policy) for path, policy in ((path, load_model(path)) for path in models)}
    lines: list[str] = []
    trained: set[str] = set()

    def train(hash_of_model: str) -> None:
        if hash_of_model in known and hash_of_model not in trained:
            trained.add(hash_of_model)
            lines.append(_train(*known[hash_of_model], runs))

    for run, (recorded, episodes) in runs.items():
        for facts, last in _stretches(recorded, episodes):
            train(str(facts.get("model", "")))
            lines += _record(run, facts, last, {name: path for name, (path, _) in known.items()})
    for name in known:
        train(name)
    words: list[object] = ["report", *runs, *(["--model", *models] if models else []), *(["--out", out] if out else [])]
    return [*lines, _lift(*words)]


def _stretches(facts: Facts, episodes: int) -> Iterator[tuple[Facts, int]]:
    """Yield the facts of each part of a run that was recorded at once, and how many episodes the run then had."""
    latest = {name: value for name, value in facts.items() if name != "continuations"}
    for change in facts.get("continuations", ()):
        if change["from_episode"]:
            yield latest, change["from_episode"]
        latest = latest | change["facts"]
    yield latest, episodes


def _record(run: Path, facts: Facts, episodes: int, models: Mapping[str, Path]) -> list[str]:
    """Return the command that records a run, below what must be known of it."""
    if "imported_from" in facts:
        command = _lift("import", facts["imported_from"], "--mapping", "mapping.yaml", "--out", run)
        return [f"# mapping.yaml holds what stands below under {run.name}: mapping", command]
    scenario = recorded_scenario(facts, str(run))
    if scenario is None or facts.get("made_by") not in _COMMANDS or "seed" not in facts:
        return [f"# {run}: its facts do not tell which command recorded it"]
    comments, name = [], scenario.name
    if not _is_shipped(scenario):
        name += ".yaml"
        comments.append(f"# {name} is the scenario file, whose content stands below under {run.name}: parameters")
    if scenario.plant.kind == "hardware":
        comments.append("# first start the plant node")
    words: list[object] = [_COMMANDS[facts["made_by"]], "--scenario", name, "--out", run]
    words += ["--episodes", episodes, "--seed", facts["seed"]]
    words += ["--plant", "hardware"] if scenario.plant.kind == "hardware" else []
    words += ["--mode", facts["mode"]] if facts.get("mode", "collect") != "collect" else []
    model = str(facts.get("model") or "")
    if model and model not in models:
        comments.append(f"# MODEL is the file with the hash {model[:16]}; with --model FILE its training is told, too")
    words += _augmentor(facts, scenario, str(models.get(model, "MODEL")) if model else "")
    return [*comments, _lift(*words, *_training_on_the_way(run, facts, scenario))]


def _augmentor(facts: Facts, scenario: Scenario, model: str) -> list[object]:
    """Return the options of who augments how much."""
    graph, name = facts["made_by"] == "graph", facts.get("augmentation")
    if name is None:
        return ["--p", 0] if graph else []
    words: list[object] = ["--p", facts["p"]] if facts.get("mode") == "collect" else []
    if facts.get("budget") != scenario.collection.augmentation_budget:
        words += ["--set", f"arbiter.budget={facts['budget']}"] if graph else ["--budget", facts["budget"]]
    if model:
        words += ["--model", model]
    elif name in AUGMENTATION_NAMES and name != LEARNED:
        words += ["--augmentation", name]
    elif name != LEARNED:
        words += ["--set", f"augmentor.policy={name}"]
    words += ["--data", *facts["data"]] if facts.get("data") else []
    return words + (["--train-after", facts["train_after"]] if facts.get("train_after") else [])


def _training_on_the_way(run: Path, facts: Facts, scenario: Scenario) -> list[object]:
    """Return what the trainer of the graph was told besides the scenario; its model beside the run tells it."""
    model = run.parent / f"{run.name}-models" / f"model_{facts.get('train_after', 0):06d}.safetensors"
    if facts["made_by"] != "graph" or not model.is_file():
        return []
    usual = preset("fast", scenario, held_out=0.0, seed=facts["seed"]).as_dict()
    changes = _differences(load_model(model).description["training"]["options"], usual)
    return ["--set", f"trainer.training={json.dumps(json.dumps(changes))}"] if changes else []


def _train(path: Path, policy: LearnedPolicy, runs: Mapping[Path, tuple[Facts, int]]) -> str:
    """Return the command that trains a model, with the options in which it differs from the nearest preset."""
    training = policy.description.get("training", {})
    places = {run.name: run for run in runs}
    bags = [places.get(bag["path"], Path(bag["path"])) for bag in training.get("bags", [])]
    if not bags:
        return f"# {path}: it does not tell the runs that it was trained on"
    scenarios = [recorded_scenario(runs[bag][0], str(bag)) if bag in runs else None for bag in bags]
    options = training["options"]
    differences = {name: _differences(options, preset(name, scenarios[0]).as_dict()) for name in PRESETS}
    base = min(differences, key=lambda name: len(differences[name]))
    words: list[object] = ["train", *bags, "--out", path]
    words += ["--preset", base] if base != "fast" else []
    for name, value in differences[base].items():
        text = value if isinstance(value, str) else json.dumps(value)
        if name == "strategy" and value == PLAIN:
            words.append("--no-shortcuts")
        elif name in _OF_THEIR_OWN:
            words += [f"--{name}", text]
        else:
            text = "x".join(map(str, value)) if name == "hidden" else text
            words += ["--option", f"{name}={text}"]
    if None in scenarios:
        words += ["--action-radius", policy.action_radius]
    return _lift(*words)


def _differences(options: Facts, base: Facts) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in base or base[name] != value}


def _is_shipped(scenario: Scenario) -> bool:
    return scenario.name in scenario_names() and load_scenario(scenario.name) == scenario


def _lift(*words: object) -> str:
    return shlex.join(["lift", *map(str, words)])
