"""Studies: cells per hour beside a plain loop over stock d3rlpy with the same settings, and over workers of Ray."""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import structlog
import yaml

from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.evaluation.convergence import context_seeds
from lift_ros.scenario import Scenario
from lift_ros.seeds import derive_seed, episode_seed
from lift_ros.studies import load_study, running
from lift_ros.studies.recordings import as_options, as_scenario
from lift_ros.studies.running import Executor, run_study
from lift_ros.studies.store import Store
from lift_ros.studies.study import Study
from lift_ros.training.options import TrainingOptions

SECTION = "studies"
SCENARIO, METHODS = "po-blend-d5", ("CQL", "CQL-SC")
EPISODES = 100
SIZES = {"fast": (1000, 10), "paper": (200, 2)}  # by preset: updates, and seeds of data
CLUSTER = 100  # workers for which it is reckoned what the full grid would take


def write_study(folder: Path, preset: str, seeds: int, episodes: int, updates: int) -> Study:
    """Return the study that is measured."""
    grid = {
        "preset": preset,
        "scenario": SCENARIO,
        "episodes": episodes,
        "train_after": episodes // 2,
        "updates": updates,
        "method": list(METHODS),
        "data": list(range(seeds)),
    }
    path = folder / f"{preset}.yaml"
    path.write_text(yaml.safe_dump({"description": "What is measured.", "grids": [grid]}))
    return load_study(path)


def seconds_of(study: Study, execute: Executor) -> float:
    """Return how long the study takes from nothing, starts of processes included."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        ran = run_study(study, Store(folder), execute, progress=False)
        seconds = time.perf_counter() - started
    if ran.failed:
        raise RuntimeError(f"cells failed: {ran.failed}")
    return seconds


def plain_loop(study: Study, make_picker: Callable[[], Any]) -> float:
    """Return how long the same cells take one after the other with stock d3rlpy, as one would write it down.

    Shortcuts are drawn by a picker; those of the first seed are done, as the others take as long.
    """
    started = time.perf_counter()
    first = [cell for cell in study.unique if cell.labels["data"] == 0]
    for cell in first:
        settings = cell.settings
        scenario = as_scenario(settings["scenario"])
        options = as_options(settings["training"])
        algorithm = learn(walk(scenario, settings["recording"]), options, scenario, make_picker)
        judge(algorithm, scenario, settings["evaluation"])
    return (time.perf_counter() - started) * len(study.unique) / len(first)


def _our_picker() -> Any:
    from lift_ros.shortcuts.picker import ShortcutPicker

    return ShortcutPicker(action_radius=1.0)


def _their_picker() -> Any:
    from benchmark.line_by_line import LineByLinePicker

    return LineByLinePicker()


def walk(scenario: Scenario, recording: Mapping[str, Any]) -> list[Any]:
    """Return the routine's episodes."""
    import d3rlpy

    problem, routine = scenario.make_problem(), scenario.make_logging_policy()
    episodes = []
    for index in range(recording["episodes"]):
        observed = problem.reset(episode_seed(recording["seed"], index))
        routine.reset()
        rows: list[tuple[Any, Any, float]] = []
        while not observed.terminated and len(rows) < scenario.limits.step_limit:
            action = routine.act(observed.values)
            seen, observed = observed.values, problem.step(action)
            rows.append((seen, action / scenario.action_radius, observed.reward))
        observations, actions, rewards = (np.array(column, dtype=np.float32) for column in zip(*rows, strict=True))
        episodes.append(d3rlpy.dataset.Episode(observations, actions, rewards[:, None], observed.terminated))
    return episodes


def learn(episodes: list[Any], options: TrainingOptions, scenario: Scenario, make_picker: Callable[[], Any]) -> Any:
    """Return d3rlpy's CQL, trained on transitions or on shortcuts."""
    import d3rlpy

    picker = {} if options.strategy == "none" else {"transition_picker": make_picker()}
    buffer = d3rlpy.dataset.create_infinite_replay_buffer(episodes=episodes, **picker)
    encoder = d3rlpy.models.VectorEncoderFactory(hidden_units=list(options.hidden))
    algorithm = d3rlpy.algos.CQLConfig(
        actor_learning_rate=options.actor_learning_rate,
        critic_learning_rate=options.critic_learning_rate,
        actor_encoder_factory=encoder,
        critic_encoder_factory=encoder,
        batch_size=options.batch_size,
        n_action_samples=options.action_samples,
        conservative_weight=options.conservative_weight,
        alpha_threshold=options.alpha_threshold,
    ).create(device="cpu")
    algorithm.create_impl((scenario.observation_size,), scenario.action_size)
    for _ in range(options.updates):
        algorithm.update(buffer.sample_transition_batch(options.batch_size))
    return algorithm


def judge(algorithm: Any, scenario: Scenario, evaluation: Mapping[str, Any]) -> float:
    """Return the mean distance at the end over all contexts."""
    problem, distances = scenario.make_problem(), []
    for seed in context_seeds(derive_seed(evaluation["seed"], "study"), evaluation["contexts"]):
        observed = problem.reset(seed)
        for _ in range(evaluation["steps"]):
            action = algorithm.predict(observed.values[None].astype(np.float32))[0]
            observed = problem.step(action * scenario.action_radius)
            if observed.terminated:
                break
        distances.append(-observed.reward)
    return float(np.mean(distances))


def main(arguments: argparse.Namespace) -> int:
    """Measure, and write the section of docs/results.md unless only a quick look is asked for."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    rows, reckoned = [], []
    for preset, (updates, seeds) in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            sizes = (1, 4, 5) if arguments.quick else (seeds, EPISODES, updates)
            study = write_study(Path(folder), preset, *sizes)
            seconds = {
                "a plain loop over d3rlpy, Algorithm 1 line by line": plain_loop(study, _their_picker),
                "a plain loop over d3rlpy, our picker": plain_loop(study, _our_picker),
                "lift study --processes 2": seconds_of(study, running.processes(2)),
                "lift study --ray, 1 worker": seconds_of(study, running.ray("local", 1)),
                "lift study --ray, 2 workers": seconds_of(study, running.ray("local", 2)),
            }
        references = list(seconds.values())[:2]
        cells = len(study.unique)
        rows += [
            (preset, name, 3600 * cells / each, *(reference / each for reference in references))
            for name, each in seconds.items()
        ]
        full = len(load_study("main" if preset == "fast" else "main-paper").unique)
        hours = full * seconds["lift study --ray, 1 worker"] / cells / 3600 / CLUSTER
        reckoned.append(f"{full} cells like these with the preset `{preset}`: {hours:.1f} h")
    sizes_told = ", ".join(
        f"{preset}: {len(METHODS) * seeds} cells of {updates} updates" for preset, (updates, seeds) in SIZES.items()
    )
    header = ("preset", "", "cells/h", "gain over line by line", "gain over our picker")
    text = (
        f"{SCENARIO}, {EPISODES} episodes, {' and '.join(METHODS)}; {sizes_told}; on {os.cpu_count()} cores, starts of "
        "processes and of Ray included. The loops record, train and evaluate with d3rlpy's own threads; of them the "
        "cells of one seed were timed.\n\n"
        f"{markdown_table(header, rows)}\n\n"
        f"On {CLUSTER} workers, if nothing but their number changed: {'; '.join(reckoned)}. Cells of the full grid "
        "have more episodes and updates, and take longer in proportion."
    )
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, SECTION, text)
    return 0
