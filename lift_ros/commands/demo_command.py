"""`lift demo`: record the routine, train the augmentor, collect with LIFT, train from the bag, evaluate, report."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from typing import Any

from lift_ros.bags.reader import read_run
from lift_ros.collection.records import Outcome
from lift_ros.commands.page_options import add_page_options
from lift_ros.errors import UserError
from lift_ros.evaluation.report import collect_content, text_table, write_report
from lift_ros.graph.run import run_graph
from lift_ros.graph.table import GraphOptions
from lift_ros.nodes.sourced import require_ros
from lift_ros.scenario import Scenario, load_scenario
from lift_ros.training.options import preset
from lift_ros.training.runs import load_runs

DONE_FILE = "demo-folder"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--scenario", default="fetch-reach", help="default: fetch-reach")
    parser.add_argument("--out", type=Path, help="folder of the demo, emptied first (default: demo/SCENARIO)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything (default: 0)")
    parser.add_argument("--walk", type=int, default=50, metavar="N", help="episodes of the routine (default: 50)")
    parser.add_argument("--lift", type=int, default=50, metavar="N", help="episodes with LIFT (default: 50)")
    parser.add_argument("--evaluation", type=int, default=30, metavar="N", help="episodes of the result (default: 30)")
    add_page_options(parser)
    parser.add_argument("--updates", type=int, help="updates of each training (default: the scenario's)")


def run(arguments: argparse.Namespace) -> int:
    """Tell the whole story; 0 when every part was completed and the learned policy arrives."""
    require_ros()
    scenario = load_scenario(arguments.scenario)
    folder = arguments.out or Path("demo") / scenario.name
    _empty(folder)
    began = time.monotonic()
    collected, model = folder / "run", folder / "policy.safetensors"
    changes = dict.fromkeys(("updates", "lessons"), arguments.updates) if arguments.updates else {}
    _say(f"1/4 In the graph: {arguments.walk} episodes of the routine, training, {arguments.lift} episodes with LIFT")
    _see_through(
        arguments,
        run=collected,
        episodes=arguments.walk + arguments.lift,
        seed=arguments.seed,
        train_after=arguments.walk,
        parameters={"trainer": {"training": json.dumps(changes)}},
    )
    _say("2/4 Offline: the final policy from the bag alone")
    from lift_ros.training.trainer import train

    options = preset("fast", scenario, seed=arguments.seed, **changes)
    train(load_runs([collected]), options, action_radius=scenario.action_radius, out=model, progress=True)
    evaluated = _evaluate(arguments, scenario, folder, model)
    _say("4/4 The report")
    seconds = time.monotonic() - began
    given = {name: getattr(arguments, name) for name in ("scenario", "seed", "walk", "lift", "evaluation", "updates")}
    words = " ".join(f"--{name} {value}" for name, value in given.items() if value is not None)
    parameters = {"demo": {**given, "seconds": round(seconds, 1)}}
    page = folder / "report.html"
    commands = [f"lift demo {words}"]
    runs = [collected, *evaluated]
    content = collect_content(runs, models=[model], parameters=parameters, commands=commands, out=page)
    write_report(content, page)
    print(f"\n{text_table(content.episodes, content.units.length)}\n")
    print(f"report: {page} (opens offline in any browser); whole story: {seconds:.0f} s")
    if any(episode.outcome == Outcome.REACHED for episode in read_run(evaluated[-1])):
        return 0
    print(f"the learned policy arrived in none of {arguments.evaluation} episodes; give it more --walk or --updates")
    return 1


def _evaluate(arguments: argparse.Namespace, scenario: Scenario, folder: Path, model: Path) -> list[Path]:
    """Return runs in which the policy drives: on a rig first with the routine behind it, in any case alone."""
    behind = {"assist": "assist"} if scenario.is_real else {}
    runs = []
    for name, mode in {**behind, "evaluation": "evaluate"}.items():
        _say(f"3/4 In the graph: {arguments.evaluation} episodes of the learned policy (mode {mode})")
        runs.append(folder / name)
        # All from the same starts, which none of the data had.
        graph = {"mode": mode, "episodes": arguments.evaluation, "seed": arguments.seed + 1, "model": model}
        _see_through(arguments, run=runs[-1], **graph)
    return runs


def _empty(folder: Path) -> None:
    """Make room for a new demo, but never in a folder that holds something else."""
    mark = folder / DONE_FILE
    if folder.exists() and any(folder.iterdir()) and not mark.exists():
        raise UserError(f"{folder} holds files that no demo made; give another folder with --out, or empty it yourself")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    mark.write_text("made by lift demo, which empties this folder when it is run again\n")


def _say(headline: str) -> None:
    print(f"\n== {headline}", flush=True)


def _see_through(arguments: argparse.Namespace, **options: Any) -> None:
    page = {"page": arguments.page, "page_address": arguments.page_address}
    graph = GraphOptions(scenario=arguments.scenario, namespace="demo", **page, **options)
    if not run_graph(graph, apart=True, plain_interval_s=3.0).completed:
        raise KeyboardInterrupt
