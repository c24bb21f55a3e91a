"""`lift collect`: record episodes of a scenario in process, without ROS."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lift_ros.bags import RunWriter
from lift_ros.bags.continuation import check_continuation
from lift_ros.bags.fitting import fit_to_runs
from lift_ros.collection.loop import CollectionInterrupted, collect
from lift_ros.collection.plan import MODES, CollectionPlan
from lift_ros.collection.records import Episode, Mode
from lift_ros.configuration import Key, check_value
from lift_ros.errors import UserError
from lift_ros.policies.augmentations import RANDOM_NAMES, UNCERTAINTY, UncertaintyModel
from lift_ros.policies.learned import load_fitting_model
from lift_ros.policies.protocol import Policy
from lift_ros.scenario import COLLECTION_KEYS, Scenario, load_scenario


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--scenario", required=True, metavar="NAME", help="name or YAML file of the scenario")
    parser.add_argument("--out", required=True, type=Path, metavar="RUN", help="run to write, or to go on with")
    parser.add_argument("--episodes", type=int, metavar="N", help="how many to add (default: the scenario's)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the run (default: 0)")
    parser.add_argument("--processes", type=int, default=1, metavar="K", help="run episodes on K processes")
    parser.add_argument("--mode", choices=MODES, default="collect", help="who acts (default: collect)")
    parser.add_argument("--images", type=int, metavar="PIXELS", help="record camera pictures of this size (Fetch)")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    lift = parser.add_argument_group("augmented collection (LIFT)")
    augmentor = lift.add_mutually_exclusive_group()
    augmentor.add_argument("--model", type=Path, metavar="FILE", help="let this model be the augmentor")
    augmentor.add_argument("--augmentation", choices=RANDOM_NAMES, help="or this baseline (default: neither)")
    lift.add_argument(
        "--p", type=float, help="probability of an augmented step (default: the scenario's, 0 without augmentor)"
    )
    lift.add_argument("--budget", type=int, metavar="N", help="augmented steps per episode (default: the scenario's)")
    lift.add_argument(
        "--data", type=Path, nargs="+", metavar="RUN", help="runs in which the uncertainty model has seen its actions"
    )


def run(arguments: argparse.Namespace) -> int:
    """Collect, writing each episode as soon as it is finished."""
    scenario = load_scenario(arguments.scenario)
    mode = MODES[arguments.mode]
    augmentor = _make_augmentor(arguments, scenario)
    p = _choose_p(arguments, scenario, augmentor, mode)
    budget = scenario.collection.augmentation_budget if arguments.budget is None else arguments.budget
    episodes = scenario.collection.episodes if arguments.episodes is None else arguments.episodes
    _check_numbers(arguments, episodes, p, budget)
    check_continuation(arguments.out, scenario)
    plan = CollectionPlan.make(
        scenario,
        mode=arguments.mode,
        episodes=episodes,
        p=p,
        budget=budget,
        augmentation=arguments.augmentation,
        model=arguments.model,
        data=arguments.data or (),
        train_after=0,
    )
    facts = plan.facts(scenario, seed=arguments.seed, made_by="collect")
    try:
        with RunWriter(arguments.out, facts) as writer:
            finished = collect(
                partial(scenario.make_problem, arguments.images),
                scenario.make_logging_policy,
                augmentor,
                episodes=episodes,
                seed=arguments.seed,
                p=p,
                budget=budget,
                mode=mode,
                first=writer.next_episode,
                processes=arguments.processes,
                on_episode=writer.write_episode,
                progress=not arguments.quiet,
            )
    except CollectionInterrupted as interruption:
        print(f"{arguments.out}: {summarise(interruption.episodes)}")
        missing = episodes - len(interruption.episodes)
        print(f"lift collect: interrupted; --episodes {missing} would add what is missing", file=sys.stderr)
        return 130
    print(f"{arguments.out}: {summarise(finished)}")
    return 0


def summarise(episodes: Sequence[Episode]) -> str:
    """Return one line on what was collected."""
    if not episodes:
        return "no episode was finished"
    outcomes = Counter(episode.outcome.name.lower().replace("_", " ") for episode in episodes)
    parts = [
        f"episodes {episodes[0].index} to {episodes[-1].index}",
        ", ".join(f"{count} {name}" for name, count in outcomes.most_common()),
        f"{np.mean([len(episode.steps) for episode in episodes]):.1f} steps on average",
        f"of these {np.mean([episode.augmentations for episode in episodes]):.1f} by the augmentor",
    ]
    return "; ".join(parts)


def _make_augmentor(arguments: argparse.Namespace, scenario: Scenario) -> Policy | None:
    if arguments.data is not None and arguments.augmentation != UNCERTAINTY:
        raise UserError("--data belongs to --augmentation uncertainty, the only one that learns from seen actions")
    if arguments.model is not None:
        return load_fitting_model(arguments.model, scenario)
    if arguments.augmentation is None:
        return None
    augmentation = scenario.make_augmentation(arguments.augmentation)
    if isinstance(augmentation, UncertaintyModel):
        if arguments.data is None:
            raise UserError("--augmentation uncertainty needs the runs whose actions count as seen: --data RUN …")
        fit_to_runs(augmentation, arguments.data)
    return augmentation


def _choose_p(arguments: argparse.Namespace, scenario: Scenario, augmentor: Policy | None, mode: Mode) -> float:
    if augmentor is not None:
        return float(scenario.collection.p if arguments.p is None else arguments.p)
    if arguments.p or mode is not Mode.COLLECT:
        cause = f"--p {arguments.p:g}" if arguments.p else f"--mode {arguments.mode}"
        raise UserError(f"{cause} needs an augmentor: give --model FILE or --augmentation NAME")
    return 0.0


def _check_numbers(arguments: argparse.Namespace, episodes: int, p: float, budget: int) -> None:
    # Before the run is created: a wrong number must leave nothing behind.
    check_value("--episodes", episodes, COLLECTION_KEYS["episodes"])
    check_value("--processes", arguments.processes, Key(int, low=1))
    check_value("--seed", arguments.seed, Key(int, low=0, high=2**63 - 1))
    check_value("--p", p, COLLECTION_KEYS["p"])
    check_value("--budget", budget, COLLECTION_KEYS["augmentation_budget"])
