"""`lift inspect`: tables, dataset scores and plots of recorded runs, and what model files say."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode
from lift_ros.configuration import Key, check_value
from lift_ros.console import attribute_table, fold, for_programs
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import MOST_CONTEXTS, Expertness, measure_expertness
from lift_ros.evaluation.frames import Strip, draw_strip, recorded_strips
from lift_ros.evaluation.labelled import label_episodes
from lift_ros.evaluation.model_summary import summarise_model
from lift_ros.evaluation.motion_summary import motion_table, summarise_motion
from lift_ros.evaluation.paths import distances
from lift_ros.evaluation.plots import plot_distances, plot_expertness, plot_shortcuts, plot_trajectories, save_figure
from lift_ros.evaluation.run_facts import threshold_of, units_of
from lift_ros.evaluation.run_summary import (
    EPISODE_COLUMNS,
    PHASE_COLUMNS,
    RUN_COLUMNS,
    SCORE_COLUMNS,
    RunSummary,
    summarise_phases,
    summarise_run,
)
from lift_ros.evaluation.scores import DEFAULT_BINS, ReturnRange, score_runs
from lift_ros.evaluation.shortcut_summary import ShortcutSummary, shortcut_table, summarise_shortcuts
from lift_ros.policies.sight import VALUES, Sight
from lift_ros.scenario import load_scenario
from lift_ros.training.options import TrainingOptions
from lift_ros.training.preflight import Preflight, check_runs

SHOWN_EPISODES = 20
SHORTCUT_NOTE = (
    "Shares of pairs of steps that Algorithm 1 takes, and of these that Theorem 3.6 guarantees with the estimated L_f "
    "and L_V. Contracting: pairs of logged steps that do not move apart; improving: logged steps that come closer."
)
EXPERTNESS_COLUMNS = (
    "step as initial step l, mean as steps/episode, lower_quartile as lower quartile, "
    "upper_quartile as upper quartile, reached"
)


Run = tuple[RunSummary, list[Episode]]
Strips = dict[str, list[Strip]]  # by run


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift inspect`."""
    parser.add_argument(
        "paths",
        type=Path,
        nargs="*",
        metavar="RUN|MODEL",
        help="directories of runs, several are compared; model files",
    )
    parser.add_argument("--json", action="store_true", help="print everything for programs")
    parser.add_argument("--all", action="store_true", help=f"show all episodes, not only {SHOWN_EPISODES} of each run")
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", help="write plots into this directory, and sum up shortcuts"
    )
    parser.add_argument("--scenario", metavar="NAME", help="measure how expert a scenario's logging policy is")
    parser.add_argument(
        "--episodes", type=int, default=50, metavar="N", help="with --scenario: episodes per step size (default 50)"
    )
    parser.add_argument("--skip-bad", action="store_true", help="leave out episodes that cannot be read, and say which")
    scores = parser.add_argument_group("dataset scores")
    scores.add_argument(
        "--reference", type=Path, metavar="RUN", help="run whose coverage counts as 1 (default: the first)"
    )
    scores.add_argument("--bins", type=int, default=DEFAULT_BINS, help=f"cells per dimension (default {DEFAULT_BINS})")
    scores.add_argument("--lowest-return", type=float, metavar="R", help="mean return of trajectory quality 0")
    scores.add_argument("--highest-return", type=float, metavar="R", help="mean return of trajectory quality 1")


def is_model(path: Path) -> bool:
    """Whether a path names a model file: any file but one of a run; one that is missing is known by its ending."""
    return path.suffix == ".safetensors" or (path.is_file() and path.suffix != ".mcap")


def load_run(path: Path, strips: Strips | None, *, skip_bad: bool) -> Run:
    """Read a run and sum it up, with rewards in hindsight where none were measured; `strips` takes what is drawn."""
    reader = RunReader(path, skip_bad=skip_bad)
    found = label_episodes(reader)
    left_out = [str(entry) for entry in reader.left_out]
    if strips is not None:
        strips[str(path)] = recorded_strips(reader, found.pictured)
    summary = summarise_run(
        str(path),
        found.episodes,
        rewards=found.rewards,
        facts=reader.facts,
        left_out=left_out,
        pictures=found.pictures,
    )
    return summary, found.episodes


def action_radius(runs: list[Run]) -> float | None:
    """Return the action radius that the runs' facts agree on."""
    plants = [(summary.facts.get("parameters") or {}).get("plant") or {} for summary, _ in runs]
    radius, *others = {plant.get("action_radius") for plant in plants}
    return None if others or not radius else float(radius)


def _references(arguments: argparse.Namespace) -> ReturnRange | None:
    low, high = arguments.lowest_return, arguments.highest_return
    if (low is None) != (high is None):
        raise UserError("--lowest-return and --highest-return belong together; give both or neither")
    return None if low is None else ReturnRange(low, high)


def _reference_number(arguments: argparse.Namespace) -> int:
    paths = [path.resolve() for path in arguments.runs]
    wanted = paths[0] if arguments.reference is None else arguments.reference.resolve()
    if wanted not in paths:
        raise UserError(f"--reference {arguments.reference} is none of the runs to inspect; name it among them")
    return paths.index(wanted)


def add_scores(arguments: argparse.Namespace, runs: list[Run]) -> None:
    """Score the runs against each other."""
    scores = score_runs(
        [episodes for _, episodes in runs],
        reference=_reference_number(arguments),
        references=_references(arguments),
        radius=action_radius(runs),
        bins=arguments.bins,
    )
    for (summary, _), score in zip(runs, scores, strict=True):
        summary.scores = score


def _print_tables(runs: list[Run], *, everything: bool) -> None:
    summaries = [summary for summary, _ in runs]
    for summary in summaries:
        shown = summary.table if everything else summary.table[:SHOWN_EPISODES]
        print(f"{summary.run}\n{attribute_table(EPISODE_COLUMNS, shown)}")
        if len(shown) < len(summary.table):
            print(f"… and {len(summary.table) - len(shown)} more; --all shows them")
        for reason in summary.left_out:
            print(f"left out {reason}")
        print()
    print(attribute_table(RUN_COLUMNS, summaries))
    for summary in summaries:
        for pictures in summary.pictures:
            print(f"pictures of {summary.run}: {pictures}")
    if phases := [phase for summary, episodes in runs for phase in summarise_phases(summary, episodes)]:
        print(f"\n{attribute_table(PHASE_COLUMNS, phases)}")
    print(f"\n{attribute_table(SCORE_COLUMNS, summaries)}")
    if all(summary.scores is None or math.isnan(summary.scores.trajectory_quality) for summary in summaries):
        print(
            "Trajectory quality needs rewards that are distances to the goal, or --lowest-return and --highest-return."
        )


def write_plots(
    runs: list[Run], strips: Strips, folder: Path, *, progress: bool
) -> tuple[list[ShortcutSummary], list[Path]]:
    """Draw each run's trajectories and pictures, and distances and shortcuts where rewards are known; sum these up.

    Runs of the same name are told apart by their number; runs without steps have nothing to draw.
    """
    names = [Path(summary.run).resolve().name for summary, _ in runs]
    labels = [name if names.count(name) == 1 else f"{name}-{number}" for number, name in enumerate(names)]
    summaries: list[ShortcutSummary] = []
    written: list[Path] = []

    def place(label: str, what: str) -> Path:
        written.append(folder / f"{label}-{what}.png")
        return written[-1]

    for label, (summary, episodes) in zip(labels, runs, strict=True):
        moved = [episode for episode in episodes if episode.steps]
        units = units_of(summary.facts)
        if moved:
            plot_trajectories(moved, place(label, "trajectories"), summary.run, units)
        if any(np.isfinite(distances(episode)).any() for episode in moved):
            lengths: Any = {"threshold": threshold_of(summary.facts), "unit": units.length}
            plot_distances(moved, place(label, "distances"), summary.run, **lengths)
        for strip in strips[summary.run]:
            written.append(folder / f"frames-{label}-{strip.phase.value.replace(' ', '-')}.png")
            title = f"{summary.run}, {strip.phase.value}: episode {strip.episode}"
            save_figure(draw_strip(strip, units.length, title), written[-1])
        radius = action_radius([(summary, episodes)])
        found = summarise_shortcuts(summary.run, moved, summary.facts, radius, progress=progress)
        if found is not None:
            plot_shortcuts(place(label, "shortcuts"), found[1], found[0].by_length, summary.run)
            summaries.append(found[0])
    return summaries, written


def look_before(run: Run) -> Preflight | None:
    """Tell what `lift train` would tell of a run before training; None where it holds no step."""
    summary, episodes = run
    parameters = summary.facts.get("parameters") or {}
    training = {key: value for key, value in (parameters.get("training") or {}).items() if value is not None}
    radius = action_radius([run])
    arrays = episodes_to_arrays(episodes)
    options = TrainingOptions().replaced(training)
    sight = Sight.parse((parameters.get("sees") or {}).get("augmentor", str(VALUES)))
    return check_runs(arrays, options, action_radius=radius, limit=radius, sight=sight) if len(arrays) else None


def preflight_text(preflight: Preflight | None) -> str:
    """Return what is told before training, with warnings and the entries of the observation, for a terminal."""
    if preflight is None:
        return "nothing, since there is no step in it"
    warnings = [f"warning: {warning}" for warning in preflight.doubts()]
    lines = [fold(line, "  ") for line in [*preflight.lines(), *warnings]]
    return "\n".join([*lines, preflight.entry_table()])


def inspect_scenario(arguments: argparse.Namespace) -> tuple[list[Expertness], list[Path]]:
    """Measure how many steps a scenario's logging policy takes over its initial step size, and draw it."""
    episodes = check_value("--episodes", arguments.episodes, Key(int, low=1, high=MOST_CONTEXTS))
    scenario = load_scenario(arguments.scenario)
    results = measure_expertness(scenario, episodes=episodes, progress=not arguments.json)
    if arguments.plots is None:
        return results, []
    path = arguments.plots / f"{scenario.name}-expertness.png"
    plot_expertness(path, results, f"{scenario.name}: {scenario.logging_policy.name}, {episodes} episodes each")
    return results, [path]


def run(arguments: argparse.Namespace) -> int:
    """Inspect runs, models, or the logging policy of a scenario."""
    if not arguments.paths and arguments.scenario is None:
        raise UserError("name at least one RUN or MODEL, or --scenario NAME")
    models = [path for path in arguments.paths if is_model(path)]
    arguments.runs = [path for path in arguments.paths if path not in models]
    result: dict[str, Any] = {"models": [summarise_model(path) for path in models]} if models else {}
    plots: list[Path] = []
    if arguments.runs:
        strips: Strips | None = None if arguments.plots is None else {}
        runs = [load_run(path, strips, skip_bad=arguments.skip_bad) for path in arguments.runs]
        add_scores(arguments, runs)
        result["runs"] = [summary for summary, _ in runs]
        result["motion"] = [summarise_motion(summary.run, episodes) for summary, episodes in runs]
        result["preflight"] = [look_before(run) for run in runs]
        if strips is not None:
            result["shortcuts"], plots = write_plots(runs, strips, arguments.plots, progress=not arguments.json)
    if arguments.scenario is not None:
        result["expertness"], drawn = inspect_scenario(arguments)
        plots += drawn
    if arguments.json:
        result["motion"] = [entry.as_dict() for entry in result.get("motion", [])]
        result["preflight"] = [entry and entry.as_dict() for entry in result.get("preflight", [])]
        print(json.dumps(for_programs({**result, "plots": [str(path) for path in plots]}), ensure_ascii=False))
        return 0
    if models:
        print("\n\n".join(summary.text() for summary in result["models"]))
    if arguments.runs:
        _print_tables(runs, everything=arguments.all)
        print(f"\n{motion_table(result['motion'])}")
        for summary, preflight in zip(result["runs"], result["preflight"], strict=True):
            print(f"\nbefore training on {summary.run}\n{preflight_text(preflight)}")
    if result.get("shortcuts"):
        print(f"\n{shortcut_table(result['shortcuts'])}\n{fold(SHORTCUT_NOTE, '')}")
    if arguments.scenario is not None:
        print(f"{arguments.scenario}\n{attribute_table(EXPERTNESS_COLUMNS, result['expertness'])}")
    for path in plots:
        print(f"{path} written")
    return 0
