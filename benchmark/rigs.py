"""A rig that nobody here wrote, through the graph: Micro-Manager's demo microscope, from the routine to assist."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.graph import graph, measure
from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.bags.reader import read_run
from lift_ros.collection.records import Episode, Outcome
from lift_ros.evaluation.phases import Phase, finished_by_routine, split_phases
from lift_ros.graph.table import GraphOptions
from lift_ros.scenario import Scenario, load_scenario
from lift_ros.training import load_runs, preset, train

SCENARIO = "micromanager-beads"
SEEDS = (5000, 5001, 5002)  # nothing was chosen with them
EPISODES = 100  # of the learned policy, alone and in mode assist
AIM = 0.3  # of the routine's steps
HEADER = ("seed", "", "episodes", "arrived", "steps", "median", "most", "of the routine's", "finished by the routine")


@dataclass(frozen=True)
class Effort:
    """How much is done: all that the scenario says, or little to see that everything runs."""

    walks: int
    lifted: int
    evaluated: int
    training: dict[str, Any]


def main(arguments: argparse.Namespace) -> int:
    """Measure all seeds and write the section of docs/results.md; 1 where the aim is not met."""
    scenario = load_scenario(SCENARIO)
    settings = scenario.collection
    effort = Effort(settings.train_after, settings.episodes - settings.train_after, EPISODES, {})
    if arguments.quick:
        effort = Effort(4, 2, 2, {"updates": 5, "lessons": 5})
    rows, met, times = [], [], []
    seeds = SEEDS[:1] if arguments.quick else SEEDS
    with ProcessPoolExecutor(len(seeds), get_context("spawn")) as pool:
        for seed, (phases, took) in zip(seeds, pool.map(partial(run_seed, scenario, effort), seeds), strict=True):
            rows += rows_of(seed, phases)
            times.append(took)
            met.append(aim_met(phases))
    text = "\n\n".join((_introduction(effort), markdown_table(HEADER, rows), _timing(np.concatenate(times))))
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "rigs", text)
    return 0 if all(met) or arguments.quick else 1


def run_seed(scenario: Scenario, effort: Effort, seed: int) -> tuple[dict[Phase, list[Episode]], Any]:
    """Tell the whole story with one seed; return its episodes by phase, and milliseconds from step to step."""
    with tempfile.TemporaryDirectory(prefix="lift-rigs-") as folder:
        return _tell(scenario, effort, seed, Path(folder))


def _tell(scenario: Scenario, effort: Effort, seed: int, folder: Path) -> tuple[dict[Phase, list[Episode]], Any]:
    run, model = folder / "run", folder / "policy.safetensors"
    changes = {"trainer": {"training": json.dumps(effort.training)}}
    options = GraphOptions(
        scenario=scenario.name,
        run=run,
        seed=seed,
        episodes=effort.walks + effort.lifted,
        train_after=effort.walks,
        parameters=changes,
    )
    graph(options)
    options_of_training = preset("fast", scenario, seed=seed, **effort.training)
    train(load_runs([run]), options_of_training, action_radius=scenario.action_radius, out=model, threads=1)
    # Other starts than those of the data: a seed that no run of them has.
    evaluation = replace(options, seed=seed + 100, episodes=effort.evaluated, model=model, train_after=0, parameters={})
    for mode in ("evaluate", "assist"):
        graph(replace(evaluation, mode=mode, run=folder / mode))
    episodes = [episode for name in ("run", "evaluate", "assist") for episode in read_run(folder / name)]
    return split_phases(episodes), measure(run).latencies


def rows_of(seed: int, phases: dict[Phase, list[Episode]]) -> list[tuple[Any, ...]]:
    """Return a row per phase."""
    routine = mean_steps(phases[Phase.LOGGING_POLICY])
    return [_row(seed, phase, episodes, routine) for phase, episodes in phases.items()]


def _row(seed: int, phase: Phase, episodes: Sequence[Episode], routine: float) -> tuple[Any, ...]:
    steps = [len(episode.steps) for episode in episodes]
    return (
        seed,
        phase.value,
        len(episodes),
        f"{arrived(episodes):.2f}",
        f"{np.mean(steps):.1f}",
        f"{np.median(steps):.0f}",
        max(steps),
        f"{np.mean(steps) / routine:.2f}",
        f"{np.mean([finished_by_routine(episode) for episode in episodes]):.2f}",
    )


def mean_steps(episodes: Sequence[Episode]) -> float:
    """Return the mean over all episodes: one that did not arrive counts with all that it took."""
    return float(np.mean([len(episode.steps) for episode in episodes]))


def arrived(episodes: Sequence[Episode]) -> float:
    """Return the share of episodes that reached the goal."""
    return float(np.mean([episode.outcome is Outcome.REACHED for episode in episodes]))


def aim_met(phases: dict[Phase, list[Episode]]) -> bool:
    """Whether the policy alone is as short as wanted, and assist always arrived."""
    short = mean_steps(phases[Phase.LEARNED_POLICY]) <= AIM * mean_steps(phases[Phase.LOGGING_POLICY])
    return short and arrived(phases[Phase.ASSIST]) == 1


def _introduction(effort: Effort) -> str:
    return (
        f"Scenario `{SCENARIO}`: stages and camera are the demo devices of Micro-Manager's makers. Everything goes "
        f"through the graph, one process per node, with the node `rig` as plant: {effort.walks} episodes of the "
        f"routine, a training in the graph, {effort.lifted} episodes with LIFT, the final training from the bag, then "
        f"{effort.evaluated} episodes each of the policy alone and in mode assist, both from the same starts, which "
        "none of the data had. A step count is the mean over all episodes, those included that did not arrive. "
        f"Nothing was chosen with these seeds. {os.cpu_count()} cores."
    )


def _timing(milliseconds: Any) -> str:
    median, slow = np.percentile(milliseconds, [50, 99])
    return f"From step to step of the recorded run: median {median:.0f} ms, p99 {slow:.0f} ms."
