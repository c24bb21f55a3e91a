"""`python -m benchmark.choice [--quick]`: what the preset `fast` was chosen from, on scenarios set aside for it.

None of these scenarios, seeds and contexts appears in the results.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmark.cells import STEPS, Effort, Variation, recorded_runs, trained, vary, with_effort
from benchmark.results import ONE_THREAD, QUICK
from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.evaluation.convergence import DIRECT, Convergence, context_seeds, converge, yardsticks
from lift_ros.progress import Progress
from lift_ros.seeds import derive_seed
from lift_ros.training import preset

SECTION = "choice"
SEEDS = (2000, 2001)
CONTEXTS = {"positioning": 200, "fetch_reach": 100, "fetch_touch_and_place": 100}

SET_ASIDE = {
    "blend, d=4, σ=0.25": Variation("po-blend-d5", {"dim": 4, "sigma": 0.25}),
    "blend, d=6": Variation("po-blend-d5", {"dim": 6, "step_limit": 1500}),
    "blend, d=3, 15 episodes": Variation("po-blend-d5", {"dim": 3}, episodes=15),
    "rot, d=3, σ=0.4": Variation("po-rot-d5", {"dim": 3, "sigma": 0.4}),
    "regrot, d=3, σ=0.2": Variation("po-regrot-d5", {"dim": 3, "sigma": 0.2}),
    "scale, d=3": Variation("po-scale-d5", {"dim": 3, "action_radius": 0.7}),
    "sin, d=4": Variation("po-sin-d5", {"dim": 4}),
    "sqrt, d=3, 100 episodes": Variation("po-sqrt-d5", {"dim": 3}, episodes=100),
    "fetch-reach, 40 episodes": Variation("fetch-reach", episodes=40),
    "fetch-touch-and-place, 120 episodes": Variation("fetch-touch-and-place", episodes=120),
}
# What differs from the preset.
CANDIDATES: dict[str, dict[str, Any]] = {
    "fast": {},
    "β=0": {"anchor": 0.0},
    "β=10": {"anchor": 10.0},
    "draw: transitions": {"draw": "transitions"},
    "anchor to drawn": {"anchor_to": "drawn"},
    "clone": {"algorithm": "clone"},
}


class Outcome(NamedTuple):
    """What one training came to."""

    scenario: str
    candidate: str
    success: float
    steps: float  # median; infinite where most did not arrive
    seconds: float  # of processor time for training


def measure(name: str, seed: int, candidates: Mapping[str, Mapping[str, Any]], effort: Effort) -> list[Outcome]:
    """Record once and train all candidates on it; with the first seed `direct`, which learns nothing, comes along."""
    scenario = with_effort(vary(name, SET_ASIDE[name]), effort)
    seeds = context_seeds(derive_seed(0, "choice"), min(effort.contexts, CONTEXTS[scenario.plant.kind]))
    found = []

    def note(candidate: str, reached: Convergence, seconds: float) -> None:
        steps = float(np.quantile(np.nan_to_num(reached.arrivals, nan=np.inf), 0.5, method="higher"))
        found.append(Outcome(name, candidate, reached.success, steps, seconds))

    if seed == SEEDS[0]:
        note(DIRECT, converge(scenario, yardsticks(scenario)[DIRECT], seeds, steps=STEPS), 0.0)
    with tempfile.TemporaryDirectory() as folder:
        recorded = recorded_runs(scenario, seed, False, Path(folder), effort)
        for candidate, changes in candidates.items():
            policy, seconds = trained(recorded, scenario, preset("fast", scenario, seed=seed, **changes), effort)
            note(candidate, converge(scenario, policy, seeds, steps=STEPS), seconds)
    return found


def report(outcomes: list[Outcome]) -> str:
    """Return the section of docs/results.md."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.scenario, outcome.candidate), []).append(outcome)
    names = (DIRECT, *CANDIDATES)
    rows = [
        (name, *(_brief(groups[name, candidate]) for candidate in names))
        for name in SET_ASIDE
        if (name, DIRECT) in groups
    ]
    seconds = [
        np.mean([outcome.seconds for outcome in outcomes if outcome.candidate == candidate]) for candidate in CANDIDATES
    ]
    rows.append(("processor time of training [s]", "", *(f"{value:.1f}" for value in seconds)))
    options = preset("fast")
    return (
        f"The preset `fast` (β = {options.anchor:g}, draw: {options.draw}, {options.updates} updates for every plant) "
        "was chosen on these scenarios, which appear nowhere else, and on these seeds and contexts. Lowest success of "
        f"the {len(SEEDS)} seeds / median steps. The other columns differ from `fast` in what they say.\n\n"
        + markdown_table(("scenario", *names), rows)
    )


def _brief(group: list[Outcome]) -> str:
    steps = float(np.median([outcome.steps for outcome in group]))
    return f"{min(outcome.success for outcome in group):.3f} / {'∞' if np.isinf(steps) else f'{steps:.0f}'}"


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section, unless only a quick look is asked for."""
    os.environ.update(ONE_THREAD)
    effort = QUICK if arguments.quick else Effort()
    names = list(SET_ASIDE)[:1] if arguments.quick else list(SET_ASIDE)
    seeds = SEEDS[:1] if arguments.quick else SEEDS
    outcomes: list[Outcome] = []
    with (
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool,
        Progress(len(names) * len(seeds), "choice", "data sets") as progress,
    ):
        jobs = [pool.submit(measure, name, seed, CANDIDATES, effort) for seed in seeds for name in names]
        for job in as_completed(jobs):
            outcomes += job.result()
            progress.advance(1, outcomes[-1].scenario)
    text = report(outcomes)
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, SECTION, text)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.choice", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one scenario, few updates; nothing is written")
    sys.exit(main(parser.parse_args()))
