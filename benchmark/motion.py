"""`python -m benchmark.motion [--quick]`: which motion is read from runs, with noise and with other powers than ½."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmark.cells import CONTEXTS, DATA_SEEDS, SHIPPED, STEPS, VARIATIONS, Variation, make_scenario, vary
from benchmark.results import ONE_THREAD
from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Outcome
from lift_ros.evaluation.convergence import context_seeds, converge
from lift_ros.progress import Progress
from lift_ros.scenario import Scenario
from lift_ros.seeds import derive_seed, generator
from lift_ros.shortcuts.motion import Track, estimate_motion
from lift_ros.training import preset, train
from lift_ros.training.data import make_track

SECTION = "motion"
NOISE = (0.0, 0.25, 0.5)  # of θ, on each recorded coordinate
LINEAR = (*(name for name in SHIPPED if "sqrt" not in name and "touch" not in name), *VARIATIONS)
# Powers of the length, and with which step the walk begins: the higher the power, the less a short step moves.
POWERS = {(power, dim): step for power, step in ((0.25, 0.05), (0.5, 0.05), (1.0, 0.2)) for dim in (2, 5)}
SEEDS = DATA_SEEDS[:3]
TRAINED_SEEDS = 2


class Found(NamedTuple):
    """What one run tells at each level of noise, how often its routine arrived, and what trainings on it came to."""

    kappas: list[float]
    arrived: float
    success: dict[str, float]  # by the option `motion`


def noisy(track: Track, deviation: float, seed: int) -> Track:
    """Return positions as a noisy sensor would have recorded them."""
    rng = generator(seed, "noise")
    positions, finals = (part + rng.normal(0.0, deviation, part.shape) for part in (track.positions, track.finals))
    return track._replace(positions=positions, finals=finals)


def look(scenario: Scenario, seed: int, trained: bool, updates: int | None) -> Found:
    """Record a run, estimate its motion with and without noise, and train on it where asked for."""
    episodes = collect(scenario, episodes=scenario.collection.episodes, seed=seed, progress=False)
    track = make_track(episodes_to_arrays(episodes))
    assert track is not None
    threshold = scenario.threshold
    kappas = [estimate_motion(noisy(track, level * threshold, seed)).kappa for level in NOISE]
    success = {}
    for motion in ("linear", "auto") if trained else ():
        changes = {} if updates is None else {"updates": updates}
        options = preset("fast", scenario, seed=seed, motion=motion, **changes)
        policy = train(episodes, options, action_radius=scenario.action_radius, threads=1).policy
        contexts = context_seeds(derive_seed(0, "motion"), CONTEXTS)
        success[motion] = converge(scenario, policy, contexts, steps=STEPS).success
    return Found(kappas, float(np.mean([episode.outcome is Outcome.REACHED for episode in episodes])), success)


def power_scenario(power: float, dim: int) -> Scenario:
    """Return sqrt with another power."""
    scenario = vary(f"power {power:g}, d={dim}", Variation(f"po-sqrt-d{dim}", {"exponent": power}))
    walk = scenario.logging_policy
    arguments = {**walk.arguments, "step": POWERS[power, dim]}
    return replace(scenario, logging_policy=replace(walk, arguments=arguments))


def linear_row(name: str, found: Sequence[Found]) -> tuple[object, ...]:
    """Return in how many runs the motion stays linear."""
    zeros = [sum(one.kappas[level] == 0 for one in found) for level in range(len(NOISE))]
    return name, *(f"{count} of {len(found)}" for count in zeros)


def power_row(power: float, dim: int, found: Sequence[Found]) -> tuple[object, ...]:
    """Return the κ that is found, and what training with and without it comes to."""
    texts = [
        f"{sum(kappas := [one.kappas[level] for one in found]) / len(found):.2f} [{min(kappas):.2f}, {max(kappas):.2f}]"
        for level in range(len(NOISE))
    ]
    trained = [one.success for one in found if one.success]
    lowest = [f"{min(success[motion] for success in trained):.3f}" for motion in ("linear", "auto")]
    return f"κ = {power:g}, d={dim}", f"{np.mean([one.arrived for one in found]):.2f}", *texts, *lowest


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section, unless only a quick look is asked for."""
    os.environ.update(ONE_THREAD)
    seeds = SEEDS[:1] if arguments.quick else SEEDS
    updates = 20 if arguments.quick else None
    names, powers = (LINEAR[:1], [*POWERS][:1]) if arguments.quick else (LINEAR, [*POWERS])
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        linear = {
            name: [pool.submit(look, make_scenario(name), seed, False, updates) for seed in seeds] for name in names
        }
        curved = {
            key: [
                pool.submit(look, power_scenario(*key), seed, seed < seeds[0] + TRAINED_SEEDS, updates)
                for seed in seeds
            ]
            for key in powers
        }
        with Progress(len(seeds) * (len(linear) + len(curved)), "motion", "runs") as progress:
            for job in (job for jobs in (*linear.values(), *curved.values()) for job in jobs):
                job.result()
                progress.advance(1)
        linear_rows = [linear_row(name, [job.result() for job in jobs]) for name, jobs in linear.items()]
        power_rows = [power_row(*key, [job.result() for job in jobs]) for key, jobs in curved.items()]
    levels = [f"noise {level:g} θ" for level in NOISE]
    text = (
        f"Runs of {len(seeds)} seeds, as in the table of policies. Noise is Gaussian, on each coordinate of each "
        "recorded position. Plants that follow no power of the action's length: in how many runs κ = 0 is kept:\n\n"
        + markdown_table(("scenario", *levels), linear_rows)
        + "\n\nPlants that move by M·a‖a‖^κ: mean [lowest, highest] κ that is found (0 where the evidence does not "
        f"suffice), and the lowest success of {TRAINED_SEEDS} trainings without noise, with `motion: linear`, the "
        "paper's method, and with `motion: auto`:\n\n"
        + markdown_table(("plant", "routine arrives", *levels, "linear", "auto"), power_rows)
    )
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, SECTION, text)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.motion", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, few updates; nothing is written")
    sys.exit(main(parser.parse_args()))
