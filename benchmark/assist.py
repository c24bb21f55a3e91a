"""`python -m benchmark.assist [--quick]`: mode assist with good, random and damaged models, wherever all see values."""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Sequence

import numpy as np

from benchmark.timing import RESULTS, markdown_table, replace_section
from benchmark.walk import plain_scenarios
from lift_ros.array_types import Float32Array
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode, Mode, Outcome
from lift_ros.policies.learned import LearnedPolicy
from lift_ros.policies.protocol import Policy
from lift_ros.scenario import DEFAULT_ASSIST, Scenario, load_scenario
from lift_ros.training import preset, train

SECTION = "assist"
DATA_SEED, RUN_SEED = 0, 1
MOST_EPISODES = 300  # recorded to train on
CONTEXTS = {"positioning": 100, "fetch_reach": 50, "fetch_touch_and_place": 50}
QUICK_UPDATES, QUICK_CONTEXTS, QUICK_EPISODES = 20, 3, 5
NOISE = 0.8


def train_model(scenario: Scenario, quick: bool) -> LearnedPolicy:
    """Return the model of the preset `fast` on recorded episodes of the routine alone."""
    count = QUICK_EPISODES if quick else min(scenario.collection.episodes, MOST_EPISODES)
    recorded = collect(scenario, episodes=count, seed=DATA_SEED, progress=False)
    options = preset("fast", scenario, seed=DATA_SEED, **{"updates": QUICK_UPDATES} if quick else {})
    return train(recorded, options, action_radius=scenario.action_radius, threads=1).policy


def bad_models(scenario: Scenario, good: LearnedPolicy) -> dict[str, Policy]:
    """Return policies nobody should use: random actions, a random network, and the good one with spoilt weights."""
    rng = np.random.default_rng(DATA_SEED)

    def replaced(name: str, weight: Float32Array) -> Float32Array:
        noise = rng.normal(size=weight.shape)
        changed = noise * np.sqrt(2 / len(weight)) if name == "random network" else weight * (1 + NOISE * noise)
        return changed.astype(np.float32)

    models: dict[str, Policy] = {"random actions": scenario.make_augmentation("uniform")}
    for name in ("random network", "spoilt weights"):
        spoilt = copy.copy(good)
        spoilt.actor_layers = [(replaced(name, weight), bias) for weight, bias in good.actor_layers]
        models[name] = spoilt
    return models


def run(scenario: Scenario, contexts: int, augmentor: Policy | None = None) -> list[Episode]:
    """Return episodes of the routine alone, or of mode assist with an augmentor, on the same contexts."""
    mode = Mode.COLLECT if augmentor is None else Mode.ASSIST
    return collect(scenario, None, augmentor, mode=mode, episodes=contexts, seed=RUN_SEED, progress=False)


def success(episodes: Sequence[Episode]) -> float:
    """Return the share that arrived."""
    return float(np.mean([episode.outcome is Outcome.REACHED for episode in episodes]))


def row(name: str, who: str, routine: Sequence[Episode], assisted: Sequence[Episode], budget: int) -> list[str]:
    """Return what assist with one model gave, beside the routine alone."""
    alone, steps = (np.array([len(episode.steps) for episode in group]) for group in (routine, assisted))
    handed_over = np.mean([any(step.rejection for step in episode.steps) for episode in assisted])
    over = steps - alone - budget
    worst = str(over.max()) if (over > 0).any() else "–"
    return [
        name,
        who,
        f"{success(routine):.2f}",
        f"{success(assisted):.2f}",
        f"{alone.mean():.0f}",
        f"{steps.mean():.1f}",
        f"{steps.mean() / alone.mean():.2f}",
        f"{handed_over:.0%}",
        f"{max(episode.augmentations for episode in assisted)}",
        f"{np.mean(over > 0):.0%}",
        worst,
    ]


HEADER = (
    "scenario",
    "model",
    "success of the routine",
    "of assist",
    "steps of the routine",
    "of assist",
    "ratio",
    "handed over",
    "most moves before",
    "over",
    "by at most",
)


_INTRODUCTION = f"""\
{CONTEXTS["positioning"]} contexts that nobody trained on ({CONTEXTS["fetch_reach"]} of Fetch), the same for all.
`trained` is the preset `fast` on the scenario's episodes of the routine alone (of touch-and-place {MOST_EPISODES}),
one seed; `random actions` are uniform in the ball; `random network` has random weights; in `spoilt weights` each
weight of the trained one is multiplied by 1 + {NOISE:g} N(0, 1). `handed over`: share of episodes that the routine
finished. `most moves before`: of the augmentor, with those that take them back; never more than the budget of
{DEFAULT_ASSIST.budget}. `over`: share of episodes with more steps than the routine alone needed from the same start
plus the budget, and by how many at most."""
_REMARKS = """\
What an erratic model did is taken back: exactly where moves add up (none, blend, rot) and no border was touched, else
as close as the plant's position tells. From there the routine needs its own number of steps, which on regrot differs
by hundreds between places a fraction of a step apart. A model that settles at a wrong place is trusted and left there,
because most that settle do so near the goal."""


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    rows = []
    for name in plain_scenarios():
        scenario = load_scenario(name)
        contexts = QUICK_CONTEXTS if arguments.quick else CONTEXTS[scenario.plant.kind]
        routine = run(scenario, contexts)
        good = train_model(scenario, arguments.quick)
        for who, augmentor in {"trained": good, **bad_models(scenario, good)}.items():
            assisted = run(scenario, contexts, augmentor)
            rows.append(row(name, who, routine, assisted, scenario.assist.budget))
            print(*rows[-1], sep="  ", flush=True)
    text = "\n\n".join((_INTRODUCTION, markdown_table(HEADER, rows), _REMARKS))
    if not arguments.quick:
        replace_section(RESULTS, SECTION, text)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.assist", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few episodes and updates, nothing is written")
    sys.exit(main(parser.parse_args()))
