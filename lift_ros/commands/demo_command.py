"""`lift demo`: record the routine, train the augmentor, collect with LIFT, train from the bag, evaluate, report."""

from __future__ import annotations

import argparse
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from lift_ros.bags.reader import read_run
from lift_ros.collection.records import Outcome
from lift_ros.errors import UserError
from lift_ros.evaluation.report import text_table, write_report
from lift_ros.evaluation.report_content import collect_content
from lift_ros.graph.run import GraphResult, run_graph
from lift_ros.graph.table import GraphOptions
from lift_ros.scenario import load_scenario
from lift_ros.training.options import preset
from lift_ros.training.runs import load_runs

DONE_FILE = "demo-folder"


@dataclass(frozen=True)
class Sizes:
    """How many episodes each part of the story gets."""

    walk: int
    lift: int
    evaluation: int


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--scenario", default="fetch-reach", help="default: fetch-reach")
    parser.add_argument("--out", type=Path, help="folder of the demo, emptied first (default: demo/SCENARIO)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything (default: 0)")
    parser.add_argument("--walk", type=int, default=50, metavar="N", help="episodes of the routine (default: 50)")
    parser.add_argument("--lift", type=int, default=50, metavar="N", help="episodes with LIFT (default: 50)")
    parser.add_argument("--evaluation", type=int, default=30, metavar="N", help="episodes of the result (default: 30)")
    parser.add_argument("--updates", type=int, help="updates of each training (default: the scenario's)")


def run(arguments: argparse.Namespace) -> int:
    """Tell the whole story; 0 when every part was completed and the learned policy arrives."""
    scenario = load_scenario(arguments.scenario)
    folder = arguments.out or Path("demo") / scenario.name
    sizes = Sizes(arguments.walk, arguments.lift, arguments.evaluation)
    _empty(folder)
    began = time.monotonic()
    collected, evaluated, model = folder / "run", folder / "evaluation", folder / "policy.safetensors"
    _say(f"1/4 In the graph: {sizes.walk} episodes of the routine, training, {sizes.lift} episodes with LIFT")
    _see_through(_collection(arguments, sizes, collected))
    _say("2/4 Offline: the final policy from the bag alone")
    _train(arguments, collected, model)
    _say(f"3/4 In the graph: {sizes.evaluation} episodes of the learned policy")
    _see_through(_evaluation(arguments, sizes, evaluated, model))
    _say("4/4 The report")
    seconds = time.monotonic() - began
    content = collect_content(
        [collected, evaluated],
        parameters={"demo": {"seed": arguments.seed, "seconds": round(seconds, 1), **vars(sizes)}},
        commands=_commands(arguments, sizes),
    )
    write_report(content, folder / "report.html")
    print(f"\n{text_table(content.episodes)}\n")
    print(f"report: {folder / 'report.html'} (opens offline in any browser); whole story: {seconds:.0f} s")
    return 0 if any(episode.outcome == Outcome.REACHED for episode in read_run(evaluated)) else 1


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


def _collection(arguments: argparse.Namespace, sizes: Sizes, out: Path) -> GraphOptions:
    trainer = {"training": f'{{"updates": {arguments.updates}}}'} if arguments.updates else {}
    return GraphOptions(
        scenario=arguments.scenario,
        run=out,
        episodes=sizes.walk + sizes.lift,
        seed=arguments.seed,
        train_after=sizes.walk,
        namespace="demo",
        parameters={"trainer": trainer},
    )


def _evaluation(arguments: argparse.Namespace, sizes: Sizes, out: Path, model: Path) -> GraphOptions:
    return GraphOptions(
        scenario=arguments.scenario,
        run=out,
        mode="evaluate",
        episodes=sizes.evaluation,
        seed=arguments.seed + 1,  # other goals than those of the data
        model=model,
        namespace="demo",
    )


def _see_through(options: GraphOptions) -> GraphResult:
    result = run_graph(options, plain_interval_s=3.0)
    if not result.completed:
        raise KeyboardInterrupt
    return result


def _train(arguments: argparse.Namespace, run_folder: Path, model: Path) -> None:
    from lift_ros.training.trainer import train

    scenario = load_scenario(arguments.scenario)
    changes = {"seed": arguments.seed} | ({"updates": arguments.updates} if arguments.updates else {})
    options = preset("fast", scenario, **changes)
    train(load_runs([run_folder]), options, action_radius=scenario.action_radius, out=model, progress=True)


def _commands(arguments: argparse.Namespace, sizes: Sizes) -> list[str]:
    words = [f"--scenario {arguments.scenario}", f"--seed {arguments.seed}"]
    words += [f"--{name} {count}" for name, count in vars(sizes).items()]
    if arguments.updates:
        words.append(f"--updates {arguments.updates}")
    return [f"lift demo {' '.join(words)}"]
