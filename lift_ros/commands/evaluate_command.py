"""`lift evaluate`: compare models with the logging policy and other yardsticks on the same contexts."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import DEFAULT_STEPS, compare, comparison_table, yardsticks
from lift_ros.policies.learned import LearnedPolicy, load_fitting_model
from lift_ros.policies.protocol import Policy
from lift_ros.progress import Progress
from lift_ros.scenario import load_scenario


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift evaluate`."""
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="model files, each a row of the table")
    parser.add_argument("--scenario", required=True, help="name of a scenario, or its YAML file")
    parser.add_argument("--contexts", type=int, default=100, help="fresh contexts per seed (default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of the contexts (default: 0)")
    parser.add_argument(
        "--steps", type=int, default=DEFAULT_STEPS, help="steps a policy has to arrive (default: %(default)s)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the convergence plot, for example as .png")
    parser.add_argument("--json", action="store_true", help="print the numbers for programs")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, print the table and draw the plot."""
    scenario = load_scenario(arguments.scenario)
    if any(seed < 0 for seed in arguments.seeds):
        raise UserError(f"a seed is {min(arguments.seeds)}, but seeds must be 0 or more")
    models: dict[str, Policy] = {}
    for path in arguments.models:
        policy = load_fitting_model(path, scenario.name, scenario.limits)
        models[str(path) if path.name in models else path.name] = policy
    total = len(models) + len(yardsticks(scenario))
    sizes = {name: getattr(arguments, name) for name in ("contexts", "seeds", "steps")}
    with Progress(total, "evaluating", unit="policies", enabled=not arguments.json) as bar:
        results = compare(scenario, models, **sizes, advance=lambda name: bar.advance(1, note=name))
    if arguments.plot is not None:
        from lift_ros.evaluation.plots import plot_convergence

        threshold = float(scenario.plant.parameters["threshold"])
        plot_convergence(arguments.plot, results, threshold, scenario.name)
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
        print(comparison_table(results))
        if arguments.plot is not None:
            print(f"convergence plot: {arguments.plot}")
    return 0
