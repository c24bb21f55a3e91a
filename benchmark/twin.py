"""`python -m benchmark.twin [--quick]`: predicted from bags alone beside true success, of models good and bad."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmark.cells import VARIATIONS, Variation, vary
from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode
from lift_ros.evaluation.convergence import context_seeds, converge
from lift_ros.evaluation.foresight import predict
from lift_ros.evaluation.twin import Twin, build_twin
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.scenario import Scenario
from lift_ros.training.options import preset
from lift_ros.training.trainer import train

SECTION = "twin"
EPISODES = 200
CONTEXTS = {"positioning": 200, "fetch_reach": 60}
UPDATES = (25, 50, 100, 200, 400, 1000)  # after which the model of one training is looked at
CLOSE = 0.1
CHOSEN_ON = ("po-blend-d2", "po-blend-d5", "po-scale-d2", "po-scale-d5", "po-sin-d2", "po-sin-d5")
REPORTED = (
    "po-none-d2",
    "po-none-d5",
    "po-rot-d2",
    "po-rot-d5",
    "po-regrot-d2",
    "po-regrot-d5",
    "po-sqrt-d2",
    "po-sqrt-d5",
    "fetch-reach",
)
# Scenarios that nothing was chosen for.
UNSEEN = {**VARIATIONS, "scale, d=5, 20 episodes": Variation("po-scale-d5", episodes=20)}


@dataclass(frozen=True)
class Case:
    """One model: what its twins predict, made of the episodes it was trained on or of others, and what is true."""

    true: float
    predicted: float
    fresh: float
    true_steps: float
    predicted_steps: float


def make_scenario(name: str) -> Scenario:
    """Return a scenario with as many episodes as are recorded here."""
    variation = UNSEEN.get(name, Variation(name))
    return vary(name, replace(variation, episodes=variation.episodes or EPISODES))


def models(scenario: Scenario, episodes: list[Episode], quick: bool) -> Iterator[LearnedPolicy]:
    """Yield models from barely to fully trained: on shortcuts, with two seeds, and one without shortcuts."""
    for updates, changes in (
        ((25, 50) if quick else UPDATES, {"seed": 0}),
        ((50,) if quick else UPDATES[:-2], {"seed": 1}),
        ((25,) if quick else UPDATES[-2:], {"seed": 2, "strategy": "none"}),
    ):
        seen: list[LearnedPolicy] = []

        def look(policy: LearnedPolicy, seen: list[LearnedPolicy] = seen) -> Mapping[str, float]:
            seen.append(policy)
            return {"score": 0.0}

        options = preset("fast", scenario, updates=max(updates), held_out=0.0, **changes)
        train(episodes, options, action_radius=scenario.action_radius, threads=1, judge=look, judge_every=updates[0])
        yield from (seen[count // updates[0] - 1] for count in updates)


def measure(name: str, quick: bool) -> tuple[list[Case], Twin, float]:
    """Return the cases of a scenario, the twin of the training's episodes, and the seconds that one prediction took."""
    scenario = make_scenario(name)
    count = 6 if quick else scenario.collection.episodes
    made, other = (collect(scenario, episodes=count, seed=seed, progress=False) for seed in (7, 8))
    threshold = scenario.threshold
    started = time.perf_counter()
    twin = build_twin(episodes_to_arrays(made), threshold)
    seconds = time.perf_counter() - started
    fresh = build_twin(episodes_to_arrays(other), threshold)
    seeds = context_seeds(5, 5 if quick else CONTEXTS[scenario.plant.kind])
    problem = scenario.make_problem()
    cases = []
    for policy in models(scenario, made, quick):
        truth = converge(scenario, policy, seeds, problem=problem)
        started = time.perf_counter()
        told = predict(twin, policy)
        lasted = time.perf_counter() - started
        cases.append(
            Case(truth.success, told.success, predict(fresh, policy).success, truth.arrival_quartiles()[1], told.steps)
        )
    problem.close()
    return cases, twin, seconds + lasted


def summary(name: str, cases: list[Case], twin: Twin, seconds: float) -> tuple[object, ...]:
    off = np.array([case.predicted - case.true for case in cases])
    fresh = np.array([case.fresh - case.true for case in cases])
    arrived = [case for case in cases if np.isfinite([case.true_steps, case.predicted_steps]).all()]
    ratios = [case.predicted_steps / case.true_steps for case in arrived]
    return (
        name,
        ", ".join(twin.motion.errors),
        f"{twin.motion.error:.1%}",
        "no" if twin.doubts() else "yes",
        f"{int((abs(off) <= CLOSE).sum())} of {len(cases)}",
        f"{abs(off).max():.2f}",
        f"{off.mean():+.3f}",
        f"{fresh.mean():+.3f}",
        f"{np.median(ratios):.2f}" if ratios else "–",
        f"{seconds:.1f}",
    )


def table(names: tuple[str, ...], quick: bool) -> tuple[str, list[Case]]:
    """Return the table of these scenarios, and the cases of those that can be trusted."""
    rows, trusted = [], []
    for name in names:
        cases, twin, seconds = measure(name, quick)
        rows.append(summary(name, cases, twin, seconds))
        print(*rows[-1], sep="  ", flush=True)
        if not twin.doubts():
            trusted += cases
    header = (
        "scenario",
        "motion",
        "error",
        "trusted",
        "within .1",
        "largest",
        "mean",
        "mean, other bags",
        "steps",
        "s",
    )
    return markdown_table(header, rows), trusted


def share(cases: list[Case]) -> str:
    close = sum(abs(case.predicted - case.true) <= CLOSE for case in cases)
    middling = [case for case in cases if 0.05 < case.true < 0.95]
    hard = sum(abs(case.predicted - case.true) <= CLOSE for case in middling)
    return (
        f"{close} of {len(cases)} ({close / max(1, len(cases)):.0%}); of the models that arrive sometimes "
        f"(true success between .05 and .95) {hard} of {len(middling)}"
    )


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    chosen_on = CHOSEN_ON[:1] if arguments.quick else CHOSEN_ON
    reported = REPORTED[6:7] if arguments.quick else (*REPORTED, *UNSEEN)
    first, trusted_first = table(chosen_on, arguments.quick)
    second, trusted = table(reported, arguments.quick)
    text = "\n\n".join(
        (
            "What `lift evaluate MODEL --run RUN` predicts from the episodes of the routine alone, beside the truth on "
            f"{CONTEXTS['positioning']} fresh contexts ({CONTEXTS['fetch_reach']} of Fetch), 50 steps. Models of "
            f"{', '.join(map(str, UPDATES))} updates, two seeds, with and without shortcuts; {EPISODES} episodes "
            "unless told. `mean` is the mean difference predicted − true with maps of the very episodes trained on, "
            "`mean, other bags` with those of another run: a policy does not see the context, so that it can hardly "
            "fit one. `steps` is the median ratio of predicted to true steps, `s` the seconds of a prediction. "
            "Where steps follow a power of their length (sqrt), the twin moves by that power, and is trusted where the "
            "recorded lengths tell it.",
            f"Limits of trust were chosen on these scenarios; trusted and within .1: {share(trusted_first)}.",
            first,
            f"The others; trusted and within .1: {share(trusted)}.",
            second,
        )
    )
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, SECTION, text)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.twin", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few episodes, nothing is written")
    sys.exit(main(parser.parse_args()))
