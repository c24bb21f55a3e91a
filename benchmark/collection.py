"""Collection in process: steps per second of the plant, the whole loop and the loop with a bag, by dimension."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmark.timing import RESULTS, interleaved, markdown_table, medians, replace_section
from lift_ros.bags import RunWriter, load_arrays
from lift_ros.bags.parts import Parts, take_over
from lift_ros.collection.loop import collect, run_episode
from lift_ros.collection.records import Episode
from lift_ros.collection.workers import Filing
from lift_ros.scenario import PlantSettings, Scenario, load_scenario
from lift_ros.seeds import episode_seed

SECTION = "collection"
DIMENSIONS = (2, 5, 10, 20)
RUN_SEED = 1
BARE = "bare numpy loop, s + W·a alone"


def scenario_of(dim: int, step_limit: int) -> Scenario:
    """Return the blend scenario in any dimension, with a goal that is never reached: all episodes are equally long."""
    scenario = load_scenario("po-blend-d2")
    parameters = {**scenario.plant.parameters, "dim": dim, "threshold": 1e-12, "step_limit": step_limit}
    return replace(scenario, plant=PlantSettings(scenario.plant.kind, parameters))


def make_jobs(dim: int, steps: int, folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is compared, each making `steps` steps in one episode, the last two also in a bag."""
    scenario = scenario_of(dim, steps)
    problem, policy = scenario.make_problem(), scenario.make_logging_policy()
    augmentor = scenario.make_augmentation("uniform")
    matrix = np.eye(dim) + 0.1 * np.random.default_rng(0).normal(size=(dim, dim))
    action = np.full(dim, 0.01)
    bags = iter(range(10**9))

    def bare() -> None:
        position = np.zeros(dim)
        for _ in range(steps):
            position = position + matrix @ action

    def plant() -> None:
        problem.reset(episode_seed(RUN_SEED, 0))
        for _ in range(steps):
            problem.step(action)

    def plant_and_policy() -> None:
        observed = problem.reset(episode_seed(RUN_SEED, 0))
        policy.reset()
        for _ in range(steps):
            observed = problem.step(policy.act(observed.values))

    def episode(p: float = 0.0) -> Episode:
        return run_episode(problem, policy, augmentor, index=0, run_seed=RUN_SEED, p=p, budget=steps)

    def recorded() -> None:
        with RunWriter(folder / f"{dim}-{next(bags)}", {}) as writer:
            writer.write_episode(episode())

    return {
        BARE: bare,
        "plant": plant,
        "plant and coordinate walk, no record": plant_and_policy,
        "collection": episode,
        "collection with an augmentor, p = 0.6": partial(episode, 0.6),
        "collection into a bag, synced": recorded,
    }


def by_dimension(steps: int, repeats: int) -> str:
    """Return steps per second of every job in every dimension."""
    rates: dict[str, list[object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for dim in DIMENSIONS:
            turns = interleaved(make_jobs(dim, steps, Path(folder)), repeats)
            fastest = {name: min(seconds) for name, seconds in turns.items()}
            for name, seconds in fastest.items():
                rates.setdefault(name, []).append(f"{steps / seconds:,.0f} ({seconds / fastest[BARE]:.1f})")
    header = ("steps/s (time / bare loop)", *(f"d = {dim}" for dim in DIMENSIONS))
    return markdown_table(header, [(name, *cells) for name, cells in rates.items()])


def by_processes(episodes: int, repeats: int) -> str:
    """Return how collection into a run gains from processes, their start included."""
    scenario = load_scenario("po-blend-d5")
    runs = iter(range(10**9))

    def record(folder: Path, processes: int) -> Path:
        run = folder / str(next(runs))
        with RunWriter(run, {}) as writer:
            collect(
                scenario,
                episodes=episodes,
                seed=RUN_SEED,
                processes=processes,
                on_episode=writer.write_episode,
                filing=Filing(Parts(writer), partial(take_over, writer)),
                progress=False,
            )
        return run

    with tempfile.TemporaryDirectory() as folder:
        jobs = {f"{count} processes": partial(record, Path(folder), count) for count in (1, 2)}
        steps = load_arrays(record(Path(folder), 1)).steps
        middle = medians(interleaved(jobs, repeats, warm_up=0))
    rows = [(name, steps / seconds, seconds, middle["1 processes"] / seconds) for name, seconds in middle.items()]
    return markdown_table((f"{episodes} episodes, {steps} steps, d = 5", "steps/s", "seconds", "gain"), rows)


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    steps, repeats, episodes = (300, 3, 20) if arguments.quick else (500, 40, 2000)
    text = "\n\n".join(
        (
            f"Episodes of {steps} steps with the distortion blend, one core; the fastest of {repeats} turns.",
            by_dimension(steps, repeats),
            f"Into a run on the disk, synced; on {os.cpu_count()} cores, the same bytes but for times:",
            by_processes(episodes, 1 if arguments.quick else 3),
        )
    )
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, SECTION, text)
    return 0
