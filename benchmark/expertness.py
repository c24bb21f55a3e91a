"""Mean steps of the coordinate walk to the goal, per scenario and initial step size l."""

from __future__ import annotations

import argparse

from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.evaluation.expertness_plot import DEFAULT_STEPS, Expertness, measure_expertness
from lift_ros.scenario import load_scenario, scenario_names

SECTION = "expertness"


def cell(result: Expertness) -> str:
    """Return the mean number of steps, and the share that arrived where not all did."""
    return f"{result.mean:.0f}" + ("" if result.reached == 1 else f" ({result.reached:.0%} arrive)")


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    episodes = 5 if arguments.quick else 100
    rows = []
    for name in scenario_names():
        scenario = load_scenario(name)
        if scenario.plant.kind != "positioning":
            continue
        results = measure_expertness(scenario, episodes=episodes)
        rows.append((name, *map(cell, results)))
        print(" ".join(rows[-1]), flush=True)
    table = markdown_table(("scenario", *(f"l = {step:g}" for step in DEFAULT_STEPS)), rows)
    text = f"Mean steps of the coordinate walk, {episodes} episodes each with the same starts and contexts.\n\n{table}"
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, SECTION, text)
    return 0
