"""Collection in process: the arbiter with a problem and policies around it, for one episode or many."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, TypeAlias

from lift_ros.collection import exchange
from lift_ros.collection.answerer import Answerer
from lift_ros.collection.arbiter import Arbiter
from lift_ros.collection.guard import Guard
from lift_ros.collection.interruption import Interrupts
from lift_ros.collection.records import Episode, Mode, Source
from lift_ros.collection.workers import SENT, Filing, Workers
from lift_ros.errors import UserError
from lift_ros.policies.protocol import Policy, inform
from lift_ros.positioning.problem import Problem
from lift_ros.progress import Progress
from lift_ros.scenario import DEFAULT_ASSIST, AssistSettings, Scenario

Clock: TypeAlias = Callable[[], int]


class CollectionInterrupted(KeyboardInterrupt):
    """Ctrl-C during `collect`; `episodes` holds all that were finished."""

    def __init__(self, episodes: list[Episode]) -> None:
        super().__init__(f"interrupted after {len(episodes)} episodes")
        self.episodes = episodes


def run_episode(
    problem: Problem,
    logging_policy: Policy | None,
    augmentor: Policy | None = None,
    *,
    index: int,
    run_seed: int,
    mode: Mode = Mode.COLLECT,
    p: float = 0.0,
    budget: int = exchange.DEFAULT_BUDGET,
    assist: AssistSettings = DEFAULT_ASSIST,
    leash: exchange.Leash = exchange.FREE,
    clock: Clock = time.time_ns,
) -> Episode:
    """Run one episode; everything but its times follows from `run_seed` and `index`."""
    answerers = _make_answerers(logging_policy, augmentor, mode, p, assist)
    arbiter = Arbiter(problem.limits)
    instructions = arbiter.handle(exchange.Start(index, run_seed, mode, p, budget, clock(), assist, leash))
    while instructions:
        following: list[exchange.Instruction] = []
        for instruction in instructions:
            match instruction:
                case exchange.Ask():
                    for source in instruction.sources:
                        proposal = answerers[source].answer(instruction.query, clock())
                        if proposal is not None:
                            following += arbiter.handle(proposal)
                case exchange.Move():
                    observed = problem.step(instruction.action)
                    following += arbiter.handle(exchange.Observation.of(instruction, observed, clock()))
                case exchange.Reset():
                    observed = problem.reset(instruction.seed)
                    for answerer in answerers.values():
                        inform(answerer.policy, observed)
                    following += arbiter.handle(exchange.Observation.of(instruction, observed, clock()))
                case exchange.RecordEpisode():
                    return instruction.episode
                case _:
                    pass  # the plant holds by itself, and steps are recorded with their episode
        instructions = following
    raise RuntimeError(f"episode {index} stopped in state {arbiter.state.name} without an end")


def _make_answerers(
    logging_policy: Policy | None, augmentor: Policy | None, mode: Mode, p: float, assist: AssistSettings
) -> dict[Source, Answerer]:
    if logging_policy is None and mode is not Mode.EVALUATE:
        raise UserError(f"mode {mode.name.lower()} needs a logging policy")
    if augmentor is None and (mode is not Mode.COLLECT or p > 0):
        raise UserError(
            f"mode {mode.name.lower()} with p={p:g} needs an augmentor: give one, or collect with p=0 without"
        )
    policies = {Source.LOGGING_POLICY: logging_policy, Source.AUGMENTOR: augmentor}
    return {
        source: Answerer(policy, source, watches_coverage=assist.coverage)
        for source, policy in policies.items()
        if policy is not None
    }


def _make_runner(problem: Any, logging_policy: Any, augmentor: Any, **options: Any) -> Callable[..., Episode]:
    """Make plant and policies where functions are given, and return the function that runs an episode with them."""
    made = [_make(thing) for thing in (problem, logging_policy, augmentor)]
    return lambda index, **changes: run_episode(*made, index=index, **{**options, **changes})


def _guarded(guard: Guard | None, mode: Mode, p: float, budget: int) -> dict[str, Any]:
    """Return what a guard wants otherwise in the next episode."""
    if guard is None:
        return {}
    decision = guard.decide(mode, p, budget)
    return {"p": decision.p, "budget": decision.budget, "leash": decision.leash}


def _make(thing: Any) -> Any:
    """Return a plant or policy as it is, or let it be made."""
    made = thing is None or (not isinstance(thing, type) and (hasattr(thing, "step") or hasattr(thing, "act")))
    return thing if made else thing()


def collect(
    plant: Scenario | Problem | Callable[[], Problem],
    logging_policy: Policy | Callable[[], Policy] | None = None,
    augmentor: Policy | Callable[[], Policy] | None = None,
    *,
    episodes: int,
    seed: int,
    p: float = 0.0,
    budget: int = exchange.DEFAULT_BUDGET,
    mode: Mode = Mode.COLLECT,
    assist: AssistSettings | None = None,
    guard: Guard | None = None,
    first: int = 0,
    processes: int = 1,
    on_episode: Callable[[Episode], None] | None = None,
    filing: Filing | None = None,
    progress: bool = True,
    clock: Clock = time.time_ns,
) -> list[Episode]:
    """Collect episodes `first`, `first` + 1, … and return them in this order.

    Each follows from `seed` and its number alone, so neither `processes` nor `first` changes a number in it. Plant and
    policies may be given as objects or as functions that make them; with several processes they are pickled. A
    scenario brings its logging policy and, unless `assist` is given, its settings of this mode. With a `guard` p and
    budget are what it allows after the episodes before, and episodes are made one after the other, whatever `processes`
    says. `on_episode` is called with each episode as soon as it and all before it are finished. Where there are several
    processes, `filing` has these put episodes away themselves, and is told of them instead of `on_episode`. Ctrl-C
    raises `CollectionInterrupted`, which holds the finished episodes.
    """
    if episodes < 0:
        raise UserError(f"the number of episodes must be 0 or more, not {episodes}")
    if processes < 1:
        raise UserError(f"the number of processes must be 1 or more, not {processes}")
    if isinstance(plant, Scenario):
        logging_policy = logging_policy or plant.make_logging_policy
        assist = assist or plant.assist
        plant = plant.make_problem
    assist = assist or DEFAULT_ASSIST
    options = {"run_seed": seed, "mode": mode, "p": p, "budget": budget, "assist": assist, "clock": clock}
    make_runner = partial(_make_runner, plant, logging_policy, augmentor, **options)  # pickled to worker processes
    indices = range(first, first + episodes)
    processes = min(processes, episodes) if guard is None else 1
    finished: list[Episode] = []
    interrupts = Interrupts()

    def keep(episode: Episode) -> None:
        if on_episode is not None and (filing is None or processes == 1):
            on_episode(episode)
        finished.append(episode)
        if guard is not None:
            guard.note(episode)
        bar.advance(1, note=f"{len(episode.steps)} steps in the last" if episode.steps else "")

    try:
        with Progress(episodes, "collecting", unit="episodes", enabled=progress) as bar, interrupts.installed():
            if processes > 1:
                with interrupts.held(), closing(Workers(make_runner, processes, filing or SENT)) as workers:
                    for episode in workers.run(indices, lambda: interrupts.requested):
                        keep(episode)
            elif processes == 1:
                runner = make_runner()
                for index in indices:
                    episode = runner(index, **_guarded(guard, mode, p, budget))
                    with interrupts.held():
                        keep(episode)
    except KeyboardInterrupt:
        raise CollectionInterrupted(finished) from None
    return finished
