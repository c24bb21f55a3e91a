"""`lift train`: train a policy offline from recorded runs and write it as a model file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from lift_ros.collection.interruption import Interrupts
from lift_ros.commands.output_files import check_writable
from lift_ros.commands.training_options import add_training_options, make_options
from lift_ros.configuration import MOST, Key, check_value
from lift_ros.console import fold, for_programs, print_warning
from lift_ros.errors import UserError
from lift_ros.evaluation.foresight import Foresight, Outlook
from lift_ros.policies.learned import load_model
from lift_ros.scenario import Scenario, load_scenario
from lift_ros.shortcuts.rule import PLAIN
from lift_ros.training.earlier import find_earlier
from lift_ros.training.options import TrainingOptions
from lift_ros.training.preflight import Preflight, check_runs
from lift_ros.training.runs import RecordedRuns, load_runs

_JUDGEMENTS = 20  # per training, unless told otherwise
_CHECKPOINT_EVERY = 1000
_PASSED_ON = ("out", "threads", "checkpoint_every", "resume", "tensorboard")
_NUMBERS = {
    "evaluate_every": Key(int, low=1, high=MOST, optional=True),
    "threads": Key(int, low=1, high=1024, optional=True),
    "checkpoint_every": Key(int, low=0, high=MOST),  # 0 writes none
    "action_radius": Key(float, above=0, high=1e9, optional=True),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift train`."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="recorded runs to train on")
    parser.add_argument("--out", required=True, type=Path, metavar="MODEL", help="model file to write")
    add_training_options(parser)
    parser.add_argument("--scenario", help="evaluate in this scenario while training and keep the best model, too")
    parser.add_argument("--evaluate-every", type=int, metavar="N", help="updates between evaluations in the scenario")
    parser.add_argument("--action-radius", type=float, help="λ, where neither the run nor a scenario tells it")
    parser.add_argument("--skip-bad", action="store_true", help="leave damaged episodes out instead of stopping")
    parser.add_argument(
        "--checkpoint-every", type=int, default=_CHECKPOINT_EVERY, metavar="N", help="updates (default: %(default)s)"
    )
    parser.add_argument(
        "--eyes",
        type=Path,
        metavar="MODEL",
        help="take the encoder of pictures of this model, to spare its lessons",
    )
    parser.add_argument("--resume", action="store_true", help="continue the interrupted training of this model")
    parser.add_argument("--force", action="store_true", help="write over a model of another training")
    parser.add_argument(
        "--anyway", action="store_true", help="train although λ is shorter than the recorded steps, or nothing arrived"
    )
    parser.add_argument("--threads", type=int, help="processor threads (default: 2 where there are two)")
    parser.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="write TensorBoard logs there")
    parser.add_argument("--json", action="store_true", help="print the result for programs, without a progress bar")


def run(arguments: argparse.Namespace) -> int:
    """Train, and say where the model is; Ctrl-C ends early with a usable model and a checkpoint."""
    scenario = None if arguments.scenario is None else load_scenario(arguments.scenario)
    _check(arguments)
    recorded = load_runs(arguments.runs, skip_bad=arguments.skip_bad, scenario=scenario)
    if scenario is not None:
        _check_sizes(scenario, recorded)
    options = make_options(arguments, scenario or recorded.scenario)
    eyes = None if arguments.eyes is None else load_model(arguments.eyes)
    if eyes is not None:
        options = options.with_eyes(eyes.hash)
    radius = arguments.action_radius or (scenario or recorded).action_radius
    if radius is None:
        raise UserError("the run does not tell the action radius; give it with --action-radius or name a --scenario")
    check_writable(arguments.out)
    if not (arguments.resume or arguments.force):
        _spare_other_models(arguments, recorded, options, radius)
    limit = _limit(scenario or recorded.scenario)
    preflight = check_runs(recorded.arrays, options, action_radius=radius, limit=limit, sight=recorded.sight)
    _look_before(arguments, preflight)
    interrupts = Interrupts()
    from lift_ros.evaluation.convergence import make_judge
    from lift_ros.training.trainer import train

    judge = None if scenario is None else make_judge(scenario, seed=options.seed)
    total = options.total_updates(pictures=recorded.sight.image)
    with interrupts.installed():
        try:
            with interrupts.held():
                result = train(
                    recorded,
                    options,
                    action_radius=radius,
                    progress=not arguments.json,
                    judge=judge,
                    eyes=eyes,
                    judge_every=arguments.evaluate_every or max(1, total // _JUDGEMENTS),
                    stop=lambda: interrupts.requested,
                    **{name: getattr(arguments, name) for name in _PASSED_ON},
                )
                outlook = Outlook(recorded, arguments.runs).judge(result.policy, str(arguments.out), seed=options.seed)
                _report(arguments, recorded, result, outlook, preflight)
        except KeyboardInterrupt:
            return 130
    return 0


def _check(arguments: argparse.Namespace) -> None:
    for name, key in _NUMBERS.items():
        check_value(f"--{name.replace('_', '-')}", getattr(arguments, name), key)
    if arguments.evaluate_every is not None and arguments.scenario is None:
        raise UserError("--evaluate-every needs --scenario, to know where to evaluate")
    if arguments.out.is_dir():
        raise UserError(f"--out {arguments.out} is a folder; name a file in it, for example model.safetensors")


def _check_sizes(scenario: Scenario, recorded: RecordedRuns) -> None:
    found = (recorded.arrays.observations.shape[1], recorded.arrays.actions.shape[1])
    wanted = (scenario.observation_size, scenario.action_size)
    if found != wanted:
        raise UserError(
            f"the runs have observations of size {found[0]} and actions of size {found[1]}, but scenario "
            f"{scenario.name} has {wanted[0]} and {wanted[1]}; name the scenario they were recorded in"
        )


def _limit(scenario: Scenario | None) -> float | None:
    return None if scenario is None else scenario.action_radius


def _spare_other_models(
    arguments: argparse.Namespace, recorded: RecordedRuns, options: TrainingOptions, radius: float
) -> None:
    """Refuse to write over a file that this very training would not write again."""
    from lift_ros.training.trainer import best_path

    written = [arguments.out] if arguments.scenario is None else [arguments.out, best_path(arguments.out)]
    for path in written:
        if path.exists() and find_earlier(path, recorded, options, radius) is None:
            raise UserError(
                f"{path} exists and is not of this training, with these runs and options; choose another --out, or "
                "write over it with --force"
            )


def _look_before(arguments: argparse.Namespace, preflight: Preflight) -> None:
    """Print what the runs tell, and refuse what would be in vain unless somebody insists."""
    refusals = preflight.refusals()
    if not arguments.json:
        for line in preflight.lines():
            print(fold(line, "  "), flush=True)
    if refusals and not arguments.anyway:
        raise UserError(f"{refusals[0]}; --anyway trains nevertheless")
    if not arguments.json:
        for warning in preflight.doubts():
            print_warning("train", warning)


def _report(
    arguments: argparse.Namespace, recorded: RecordedRuns, result: Any, foresight: Foresight, preflight: Preflight
) -> None:
    data = result.policy.description["training"]["data"]
    left_out = recorded.left_out + [f"{count} episodes {reason}" for reason, count in data["left_out"].items()]
    if arguments.json:
        content = {
            "model": str(result.path),
            "best": None if result.best_path is None else str(result.best_path),
            "hash": result.policy.hash,
            **{name: getattr(result, name) for name in ("updates", "complete", "losses", "evaluations")},
            **{name: data[name] for name in ("episodes", "steps", "labelled")},
            "motion": result.policy.description["training"]["motion"],
            "left_out": left_out,
            "preflight": for_programs(preflight.as_dict()),
            **for_programs(foresight.as_dict()),
        }
        print(json.dumps(content))
        return
    for reason in left_out:
        print(f"left out: {reason}")
    if data["labelled"]:
        print(f"rewards of {data['labelled']} episodes were not recorded and are labelled in hindsight")
    motion = result.policy.description["training"]["motion"]
    options = result.policy.description["training"]["options"]
    if motion["kappa"]:
        print(f"a step moves by ‖a‖^{1 + motion['kappa']:.2f}, and shortcuts reckon with it: {motion['reason']}")
    elif options["motion"] == "auto" and options["strategy"] != PLAIN and not motion["source"]:
        print(f"shortcuts take the motion for linear: {motion['reason']}")
    print(f"{result.path}: trained on {data['episodes']} episodes, {data['steps']} steps")
    print(f"model hash {result.policy.hash[:16]}")
    if result.evaluations:
        last = result.evaluations[-1]
        best = max(result.evaluations, key=lambda entry: float(entry["score"]))
        print(f"success {last['success']:.2f} at the end; best {best['success']:.2f} after {best['update']} updates")
        print(f"best model: {result.best_path}")
    if not result.complete:
        state = "the model can be used" if result.drives else "the model has learned to see, but not yet to drive"
        print(f"stopped after {result.updates} updates; {state}, and --resume continues the training")
    print(foresight.line())
