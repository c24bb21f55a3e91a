"""`python -m benchmark.guard [--quick]`: collecting with good, random, spoilt and hostile augmentors and a guard."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmark.assist import bad_models, success
from benchmark.coupling import FibreRig, couple
from benchmark.fibre import LIMITS, Fibre, SpiralAndClimb
from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.array_types import FloatArray
from lift_ros.collection.guard import LEVELS, Guard
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.policies.protocol import Policy
from lift_ros.policies.routines import GeneratorPolicy
from lift_ros.positioning.problem import Limits, Observed, Problem
from lift_ros.scenario import DEFAULT_GUARD, START_FULL, START_SMALL, GuardSettings, load_scenario
from lift_ros.training import preset, train

SECTION = "guard"
FIBRE = "fibre"
SCENARIOS = ("po-blend-d2", "po-regrot-d2", "po-sin-d5")
EPISODES = DEFAULT_GUARD.horizon
TRAINED_ON, DATA_SEED = 60, 1000
SEEDS = range(200, 210)  # others than those with which the guard was made
P, BUDGET = 0.6, 20
GAIN = 0.7  # share of the way to the goal that the helpful augmentor takes in a step


@dataclass(frozen=True)
class Rig:
    """A plant and its routine."""

    name: str
    make_problem: Callable[[], Problem]
    make_routine: Callable[[], Policy]
    limits: Limits


class Hostile:
    """Always drives to the same corner."""

    def __init__(self, limits: Limits) -> None:
        self._move = np.full(limits.action_size, limits.action_radius / math.sqrt(limits.action_size))

    def reset(self) -> None:
        """Keep no state."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the longest move to the corner."""
        return self._move


class Uniform:
    """Draws actions from the ball's cube, shortened to the ball."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rng = np.random.default_rng(0)

    def begin_episode(self, seed: int) -> None:
        """Draw as this episode's seed says."""
        self._rng = np.random.default_rng(seed)

    def reset(self) -> None:
        """Keep no state."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Return a random action."""
        radius = self._limits.action_radius
        move = self._rng.uniform(-radius, radius, self._limits.action_size)
        return move * min(1.0, radius / float(np.linalg.norm(move)))


class Helpful:
    """Knows where the fibre is, as no model can from these observations: it stands for one that were good."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._offset: FloatArray = np.zeros(limits.action_size)

    def set_context(self, observed: Observed) -> None:
        """Learn where the goal is on the encoders."""
        self._goal = observed.values[1:] + observed.goal - observed.position

    def reset(self) -> None:
        """Keep no state."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Go a share of the way."""
        way = GAIN * (self._goal - observation[1:])
        return way * min(1.0, self._limits.action_radius / max(1e-9, float(np.linalg.norm(way))))


def trained(rig: Rig, quick: bool) -> LearnedPolicy:
    """Return the model of the preset `fast` on episodes of the routine alone."""
    count = 5 if quick else TRAINED_ON
    recorded = collect(rig.make_problem, rig.make_routine, episodes=count, seed=DATA_SEED, progress=False)
    options = preset("fast", seed=DATA_SEED, **{"updates": 20} if quick else {})
    return train(recorded, options, action_radius=rig.limits.action_radius, threads=1).policy


def augmentors(rig: Rig, quick: bool) -> Mapping[str, Policy]:
    """Return who augments this rig, by name."""
    model = trained(rig, quick)
    bad: dict[str, Policy] = {"hostile": Hostile(rig.limits), "random actions": Uniform(rig.limits)}
    if rig.name in SCENARIOS:
        bad["spoilt weights"] = bad_models(load_scenario(rig.name), model)["spoilt weights"]
    good: dict[str, Policy] = {"helpful": Helpful(rig.limits)} if rig.name == FIBRE else {}
    return {"trained": model, **good, **bad}


def rigs() -> list[Rig]:
    """Return two fibre rigs and the shipped scenarios."""
    loaded = [load_scenario(name) for name in SCENARIOS]
    return [
        Rig(FIBRE, Fibre, SpiralAndClimb, LIMITS),
        Rig("coupling", FibreRig, lambda: GeneratorPolicy(couple, {}, "couple"), FibreRig.limits),
        *(Rig(each.name, each.make_problem, each.make_logging_policy, each.limits) for each in loaded),
    ]


def run(rig: Rig, augmentor: Policy | None, seed: int, episodes: int, guard: Guard | None = None) -> list[Episode]:
    """Return episodes of the routine alone, or with an augmentor, from the same starts."""
    return collect(
        rig.make_problem,
        rig.make_routine,
        augmentor,
        p=0.0 if augmentor is None else P,
        budget=BUDGET,
        guard=guard,
        episodes=episodes,
        seed=seed,
        progress=False,
    )


def steps(episodes: Sequence[Episode]) -> int:
    """Return how many steps were made."""
    return sum(len(episode.steps) for episode in episodes)


@dataclass(frozen=True)
class Outcome:
    """What one augmentor gave with one guard: a value per seed."""

    ratios: list[float]  # steps relative to the routine's from the same starts
    successes: list[float]
    levels: list[int]  # at the end
    late: list[float]  # steps of the last third, relative to the routine's

    def cells(self) -> list[str]:
        mean, worst = np.mean(self.ratios), np.max(self.ratios)
        return [f"{mean:.2f}", f"{worst:.2f}", f"{np.mean(self.successes):.3f}", f"{np.min(self.successes):.2f}"]


def measure(rig: Rig, augmentor: Policy, alone: Mapping[int, Sequence[Episode]], settings: GuardSettings) -> Outcome:
    """Collect with one augmentor on every seed."""
    outcome = Outcome([], [], [], [])
    for seed, routine in alone.items():
        guard = Guard(settings)
        made = run(rig, augmentor, seed, len(routine), guard)
        last = len(made) * 2 // 3
        outcome.ratios.append(steps(made) / steps(routine))
        outcome.late.append(steps(made[last:]) / steps(routine[last:]))
        outcome.successes.append(success(made))
        outcome.levels.append(guard.level)
    return outcome


HEADER = (
    "rig",
    "augmentor",
    "routine: steps",
    "arrive",
    "unguarded: steps ×",
    "arrive",
    "guarded: steps ×",
    "worst seed",
    "arrive",
    "worst seed",
    "last third ×",
    "ends at p × (share of seeds)",
    "hardware: steps ×",
    "worst seed",
    "arrive",
    "ends at p ×",
)


def endings(levels: Sequence[int]) -> str:
    """Return at which share of p the seeds ended, the most frequent first."""
    shares = [LEVELS[level][0] for level in levels]
    counts = {share: shares.count(share) / len(shares) for share in sorted(set(shares), key=shares.count, reverse=True)}
    return ", ".join(f"{share:g} ({part:.0%})" for share, part in counts.items())


_INTRODUCTION = f"""\
{EPISODES} episodes with p={P:g} and a budget of {BUDGET}, {len(SEEDS)} seeds each (unguarded: one), from the first
episode on with the augmentor. Steps are relative to the routine alone from the same starts; `arrive`: mean over seeds.
`fibre` is `benchmark/fibre.py`: power in dB and three encoders, spiral search and hill climb; `coupling` is another of
its kind (`benchmark/coupling.py`), with a stage that nothing ends. `trained` is the preset `fast` on {TRAINED_ON}
episodes of the routine; `helpful` knows the goal; `hostile` drives to a corner; `random actions` are uniform;
in `spoilt weights` each weight of the trained one is multiplied by 1 + 0.8 N(0, 1). `hardware` starts
small. `ends at p ×`: share of the scenario's p at the end, with the share of seeds."""


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    episodes, seeds = (12, range(1)) if arguments.quick else (EPISODES, SEEDS)
    full, small = (replace(DEFAULT_GUARD, start=start) for start in (START_FULL, START_SMALL))
    rows = []
    for rig in rigs():
        alone = {seed: run(rig, None, seed, episodes) for seed in seeds}
        usual = np.mean([steps(each) / episodes for each in alone.values()])
        for who, augmentor in augmentors(rig, arguments.quick).items():
            guarded, careful = (measure(rig, augmentor, alone, settings) for settings in (full, small))
            free = measure(rig, augmentor, {seeds[0]: alone[seeds[0]]}, replace(full, enabled=False))
            mean, worst, arrive, _ = careful.cells()
            rows.append(
                [
                    rig.name,
                    who,
                    f"{usual:.0f}",
                    f"{np.mean([success(each) for each in alone.values()]):.3f}",
                    free.cells()[0],
                    free.cells()[2],
                    *guarded.cells(),
                    f"{np.mean(guarded.late):.2f}",
                    endings(guarded.levels),
                    mean,
                    worst,
                    arrive,
                    endings(careful.levels),
                ]
            )
            print(*rows[-1], sep="  ", flush=True)
    if not arguments.quick:
        replace_section(RESULTS, SECTION, "\n\n".join((_INTRODUCTION, markdown_table(HEADER, rows))))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.guard", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few episodes and updates, nothing is written")
    sys.exit(main(parser.parse_args()))
