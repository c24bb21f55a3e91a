"""`lift evaluate`: judge models on fresh contexts of a scenario, beside yardsticks, or by recorded runs alone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from lift_ros.commands.output_files import check_writable
from lift_ros.console import fold, for_programs
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import (
    DEFAULT_STEPS,
    DIRECT,
    SECANT,
    compare,
    comparison_table,
    is_hidden,
    yardsticks,
)
from lift_ros.policies.learned import LearnedPolicy, load_fitting_model, load_model
from lift_ros.policies.protocol import Policy
from lift_ros.progress import Progress
from lift_ros.scenario import load_scenario

_CONTEXTS = 100


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift evaluate`."""
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="model files, each a row of the table")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--scenario", help="name of a scenario, or its YAML file: nothing but its simulator moves")
    where.add_argument(
        "--run", nargs="+", type=Path, metavar="RUN", help="recorded runs: nothing moves, a twin made of them predicts"
    )
    parser.add_argument("--contexts", type=int, help=f"fresh contexts of the scenario per seed (default: {_CONTEXTS})")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of the contexts (default: 0)")
    parser.add_argument(
        "--steps", type=int, default=DEFAULT_STEPS, help="steps a policy has to arrive (default: %(default)s)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the convergence plot, for example as .png")
    parser.add_argument("--json", action="store_true", help="print the numbers for programs")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, print the table and draw the plot."""
    if arguments.plot is not None:
        check_writable(arguments.plot)
    if any(seed < 0 for seed in arguments.seeds):
        raise UserError(f"a seed is {min(arguments.seeds)}, but seeds must be 0 or more")
    return _by_runs(arguments) if arguments.run else _in_scenario(arguments)


def _in_scenario(arguments: argparse.Namespace) -> int:
    scenario = load_scenario(arguments.scenario)
    models: dict[str, Policy] = {}
    for path in arguments.models:
        models[_free_name(path, models)] = load_fitting_model(
            path, scenario.name, scenario.limits, shown=scenario.model_sight
        )
    total = len(models) + len(yardsticks(scenario))
    contexts = _CONTEXTS if arguments.contexts is None else arguments.contexts
    sizes = {name: getattr(arguments, name) for name in ("seeds", "steps")}
    with Progress(total, "evaluating", unit="policies", enabled=not arguments.json) as bar:
        advance = lambda name: bar.advance(1, note=name)  # noqa: E731
        results = compare(scenario, models, contexts=contexts, **sizes, advance=advance)
    if arguments.plot is not None:
        from lift_ros.evaluation.plots import plot_convergence

        plot_convergence(arguments.plot, results, scenario.threshold, scenario.name, scenario.units.length)
    if arguments.json:
        content = {
            "scenario": scenario.name,
            "steps": arguments.steps,
            "seeds": arguments.seeds,
            "results": {name: result.as_dict() for name, result in results.items()},
            "models": {name: policy.hash for name, policy in models.items() if isinstance(policy, LearnedPolicy)},
        }
        print(json.dumps(content))
    else:
        print(comparison_table(results, scenario.units.length))
        if is_hidden(scenario):
            print(
                fold(
                    f"{DIRECT} and {SECANT} cannot be run: models are shown {scenario.model_sight}, not the offset", ""
                )
            )
        if arguments.plot is not None:
            print(f"convergence plot: {arguments.plot}")
    return 0


def _by_runs(arguments: argparse.Namespace) -> int:
    if arguments.contexts is not None:
        raise UserError("--contexts belongs to --scenario; a run brings the contexts that were recorded")
    if len(arguments.seeds) > 1:
        raise UserError(f"--run takes one seed, of what is drawn from the runs, not {len(arguments.seeds)}")
    if arguments.steps < 1:
        raise UserError(f"the number of steps is {arguments.steps}, but must be at least 1")
    from lift_ros.evaluation.foresight import Outlook
    from lift_ros.training.runs import load_runs

    models: dict[str, LearnedPolicy] = {}
    for path in arguments.models:
        models[_free_name(path, models)] = load_model(path)
    outlook = Outlook(load_runs(arguments.run), arguments.run)
    options = {"steps": arguments.steps, "seed": arguments.seeds[0]}
    results = {name: outlook.judge(policy, name, **options) for name, policy in models.items()}
    if arguments.plot is not None:
        from lift_ros.evaluation.plots import plot_foresight

        threshold = None if outlook.twin is None else outlook.twin.threshold
        plot_foresight(arguments.plot, results, threshold, " ".join(path.name for path in arguments.run))
    if arguments.json:
        content = {
            "runs": [str(path) for path in arguments.run],
            **options,
            "twin": outlook.facts(),
            "results": {name: result.as_dict() for name, result in results.items()},
            "models": {name: policy.hash for name, policy in models.items()},
        }
        print(json.dumps(for_programs(content)))
        return 0
    print(fold(outlook.text(), ""))
    for name, result in results.items():
        print(f"\n{name}\n{result.text()}")
    if arguments.plot is not None:
        print(f"plot: {arguments.plot}")
    return 0


def _free_name(path: Path, taken: dict[str, Policy] | dict[str, LearnedPolicy]) -> str:
    return str(path) if path.name in taken else path.name
