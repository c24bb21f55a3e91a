"""`lift collect`: record episodes of a scenario in process, without ROS."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.bags import RunWriter
from lift_ros.bags.parts import Part, Parts, take_over
from lift_ros.bags.reader import RunReader
from lift_ros.bags.writer import check_continuation
from lift_ros.collection.guard import Guard
from lift_ros.collection.loop import CollectionInterrupted, collect
from lift_ros.collection.plan import ON, CollectionPlan
from lift_ros.collection.records import COMPRESSIONS, Episode, Outcome
from lift_ros.collection.workers import Filing
from lift_ros.commands.collection_options import add_collection_options, check_collection_options, full_run
from lift_ros.configuration import Key, check_value
from lift_ros.console import print_error, print_warning
from lift_ros.errors import UserError
from lift_ros.policies.augmentations import LEARNED, UncertaintyModel
from lift_ros.policies.learned import load_fitting_model
from lift_ros.policies.protocol import Policy
from lift_ros.processes import spawned_safely
from lift_ros.scenario import COLLECTION_KEYS, Scenario, load_scenario
from lift_ros.training.options import preset
from lift_ros.training.preflight import check_runs
from lift_ros.training.runs import fit_to_runs, load_runs

WISHES = ("mode", "episodes", "p", "budget", "augmentation", "model", "data", "train_after")  # what a plan is made of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add_collection_options(parser)
    parser.add_argument("--out", required=True, type=Path, metavar="RUN", help="run to write, or to go on with")
    parser.add_argument("--processes", type=int, default=1, metavar="K", help="run K at once (not guarded ones)")
    parser.add_argument("--images", type=int, metavar="PIXELS", help="record camera pictures of this size (Fetch)")
    parser.add_argument("--budget", type=int, metavar="N", help="augmented steps per episode (default: the scenario's)")


def run(arguments: argparse.Namespace) -> int:
    """Collect, writing each episode as soon as it is finished."""
    scenario = load_scenario(arguments.scenario)
    augmented = bool(arguments.model or arguments.augmentation or arguments.train_after)
    if not augmented and (arguments.p or arguments.mode != "collect"):
        cause = f"--p {arguments.p:g}" if arguments.p else f"--mode {arguments.mode}"
        raise UserError(f"{cause} needs an augmentor: give --model FILE or --augmentation NAME")
    # Before the run is created: a wrong number must leave nothing behind.
    check_value("--processes", arguments.processes, Key(int, low=1, high=1024))
    check_collection_options(arguments)
    wishes = {name: getattr(arguments, name) for name in WISHES}
    wishes["guard"] = {} if arguments.guard is None else {"enabled": arguments.guard == ON}
    plan = CollectionPlan.make(scenario, **wishes if augmented else wishes | {"p": 0.0, "train_after": 0})
    episodes = check_value("--episodes", plan.episodes, COLLECTION_KEYS["episodes"])
    check_continuation(arguments.out, scenario)
    guard = _make_guard(plan, arguments.out)
    augmentor = _make_augmentor(plan, scenario) if augmented else None
    collected: list[Collected] = []

    def add_episodes(writer: RunWriter, last: int, augmentor: Policy | None) -> None:
        """Collect the episodes before number `last`."""
        if guard is not None:
            guard.serve(getattr(augmentor, "hash", ""))

        def write(episode: Episode) -> None:
            writer.write_episode(episode)
            collected.append(Collected(episode.index, episode.outcome, len(episode.steps), episode.augmentations))

        def adopt(part: Part) -> Episode:
            episode = take_over(writer, part)
            collected.append(Collected(episode.index, episode.outcome, part.steps, part.augmentations))
            return episode

        collect(
            partial(scenario.make_recorded_problem, arguments.images),
            scenario.make_logging_policy,
            augmentor,
            episodes=last - writer.next_episode,
            seed=arguments.seed,
            p=plan.p,
            budget=plan.budget,
            mode=plan.mode,
            assist=plan.assist,
            guard=guard,
            first=writer.next_episode,
            processes=arguments.processes,
            on_episode=write,
            filing=Filing(Parts(writer), adopt),
            progress=not arguments.quiet,
        )

    try:
        facts = plan.facts(scenario, seed=arguments.seed, made_by="collect")
        compression = arguments.compression or COMPRESSIONS[0]
        with RunWriter(arguments.out, facts, compression=compression) as writer, spawned_safely():
            if writer.next_episode >= episodes:
                print(full_run(arguments.out, writer.next_episode, episodes))
                return 0
            if writer.next_episode < plan.train_after:
                add_episodes(writer, min(plan.train_after, episodes), NothingYet())
            if writer.next_episode < episodes:
                augmentor = _learn(arguments, scenario, plan, augmentor) if plan.train_after else augmentor
                add_episodes(writer, episodes, augmentor)
    except CollectionInterrupted:
        print(f"{arguments.out}: {summarise(collected)}")
        print_error("collect", f"interrupted; the same command adds the {episodes - writer.next_episode} missing ones")
        return 130
    print(f"{arguments.out}: {summarise(collected)}")
    if guard is not None:
        print(f"guard: {guard.decide(plan.mode, plan.p, plan.budget)}")
    return 0


def _make_guard(plan: CollectionPlan, run: Path) -> Guard | None:
    """Return a guard that knows the episodes of a run that is gone on with, or None where nothing needs one."""
    if not plan.is_guarded:
        return None
    guard = Guard(plan.guard)
    if run.is_dir() and any(run.iterdir()):
        guard.recall(RunReader(run))
    return guard


class NothingYet:
    """An augmentor that is not trained yet: it is asked, as in the graph, and proposes nothing."""

    def reset(self) -> None:
        """Keep no state."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Propose nothing."""
        return np.empty(0)


@dataclass(frozen=True, slots=True)
class Collected:
    """What is told of an episode in the end."""

    index: int
    outcome: Outcome
    steps: int
    augmentations: int


def summarise(episodes: Sequence[Collected]) -> str:
    """Return one line on what was collected."""
    if not episodes:
        return "no episode was finished"
    outcomes = Counter(episode.outcome.name.lower().replace("_", " ") for episode in episodes)
    parts = [
        f"episodes {episodes[0].index} to {episodes[-1].index}",
        ", ".join(f"{count} {name}" for name, count in outcomes.most_common()),
        f"{np.mean([episode.steps for episode in episodes]):.1f} steps on average",
        f"of these {np.mean([episode.augmentations for episode in episodes]):.1f} by the augmentor",
    ]
    return "; ".join(parts)


def _make_augmentor(plan: CollectionPlan, scenario: Scenario) -> Policy | None:
    """Return the augmentor as far as it is there before the first episode."""
    if plan.model is not None:
        return load_fitting_model(plan.model, scenario.name, scenario.limits, shown=scenario.model_sight)
    if plan.augmentation == LEARNED:
        return None
    augmentation = scenario.make_augmentation(plan.augmentation)
    if isinstance(augmentation, UncertaintyModel) and plan.data:
        fit_to_runs(augmentation, plan.data)
    return augmentation


def _learn(arguments: argparse.Namespace, scenario: Scenario, plan: CollectionPlan, augmentor: Policy | None) -> Policy:
    """Train the augmentor on the run's first episodes, or fit it to them, as trainer and augmentor of a graph do."""
    if isinstance(augmentor, UncertaintyModel):
        fit_to_runs(augmentor, [arguments.out], plan.train_after)
        return augmentor
    from lift_ros.training.trainer import train  # here, since torch is slow to come and few need it

    recorded = load_runs([arguments.out], episodes=plan.train_after, scenario=scenario)
    options, radius = preset("fast", scenario, seed=arguments.seed), scenario.action_radius
    preflight = check_runs(recorded.arrays, options, action_radius=radius, limit=radius, sight=recorded.sight)
    for doubt in preflight.doubts():
        print_warning("collect", doubt)
    return train(recorded, options, action_radius=radius, progress=not arguments.quiet).policy
