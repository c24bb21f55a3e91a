"""`python -m benchmark.walk [--quick]`: mean steps of the coordinate walk per scenario, initial step l and noise.

Beside it stand the policies that need no data: `direct`, `secant` and, with full information, `optimal`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.array_types import FloatArray
from lift_ros.policies.protocol import Policy, begin_episode, inform
from lift_ros.positioning.problem import Problem
from lift_ros.scenario import Scenario, Sees, load_scenario, scenario_names
from lift_ros.seeds import episode_seed, generator

SECTION = "walk"
RUN_SEED = 0
EPISODES = {"positioning": 200, "fetch_reach": 20, "fetch_touch_and_place": 20}
STEPS = (0.0125, 0.025, 0.05, 0.1)
FETCH_STEPS = (0.0025, 0.005, 0.01, 0.02)  # metres
NOISE = (0.0, 0.5, 1.0, 2.0)
NOISY_SCENARIOS = ("po-blend-d2", "po-blend-d5")
MEASUREMENT_NOISE = (0.0, 0.25, 0.5)  # of each entry of the observation, in θ
MEASURED_SCENARIOS = ("po-blend-d5", "po-rot-d5", "po-scale-d5", "po-sqrt-d5")


def plain_scenarios() -> list[str]:
    """Return the scenarios in which everybody sees all values, and nobody a picture."""
    return [name for name in scenario_names() if load_scenario(name).sees == Sees()]


def count_steps(problem: Problem, policy: Policy, seed: int) -> tuple[int, bool]:
    """Return how many steps an episode took, and whether it ended at the goal."""
    observed = problem.reset(seed)
    inform(policy, observed)
    begin_episode(policy, seed)
    count = 0
    while not observed.terminated and count < problem.limits.step_limit:
        observed = problem.step(policy.act(observed.values))
        count += 1
    return count, observed.terminated


def measure(scenario: Scenario, policies: Sequence[Policy], episodes: int) -> list[str]:
    """Return one cell per policy: the mean steps, and the share that arrived where not all did."""
    problem = scenario.make_problem()
    cells = []
    for policy in policies:
        results = [count_steps(problem, policy, episode_seed(RUN_SEED, index)) for index in range(episodes)]
        arrived = statistics.mean(float(reached) for _, reached in results)
        mean = statistics.mean(count for count, _ in results)
        cells.append(f"{mean:.1f}" if mean < 10 else f"{mean:.0f}")
        if arrived < 1:
            cells[-1] += f" ({arrived:.1%} arrive)"
    problem.close()
    return cells


def table(kind: str, steps: Sequence[float], quick: bool) -> str:
    """Return the table of all scenarios of plants whose kind begins so."""
    rows = []
    names = ["direct", "secant", "optimal"] if kind == "positioning" else ["direct", "secant"]
    for name in plain_scenarios():
        scenario = load_scenario(name)
        if not scenario.plant.kind.startswith(kind):
            continue
        policies = [scenario.make_policy("coordinate_walk", {"step": step}) for step in steps]
        policies += [scenario.make_policy(other) for other in names]
        episodes = 3 if quick else EPISODES[scenario.plant.kind]
        rows.append((name, *measure(scenario, policies, episodes)))
        print(*rows[-1], sep="  ", flush=True)
    return markdown_table(("scenario", *(f"l = {step:g}" for step in steps), *names), rows)


def noise_table(quick: bool) -> str:
    """Return the table of the noisy walk, at the step of its scenario."""
    rows = []
    for name in NOISY_SCENARIOS:
        scenario = load_scenario(name)
        step = scenario.logging_policy.arguments["step"]
        policies = [scenario.make_policy("noisy_coordinate_walk", {"step": step, "noise": noise}) for noise in NOISE]
        rows.append((name, f"{step:g}", *measure(scenario, policies, 3 if quick else EPISODES["positioning"])))
        print(*rows[-1], sep="  ", flush=True)
    return markdown_table(("scenario", "l", *(f"noise {noise:g}" for noise in NOISE)), rows)


class Blurred:
    """A policy that sees each observation with Gaussian noise."""

    def __init__(self, policy: Policy, deviation: float) -> None:
        self._policy, self._deviation = policy, deviation

    def begin_episode(self, seed: int) -> None:
        """Seed the noise of one episode."""
        self._rng = generator(seed, "measurement noise")

    def reset(self) -> None:
        """Reset the policy."""
        self._policy.reset()

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the policy's action for what it sees."""
        return self._policy.act(observation + self._rng.normal(0.0, self._deviation, observation.size))


def measurement_table(quick: bool) -> str:
    """Return the table of the policies that need no data where the displacement is measured with noise."""
    rows = []
    for name in MEASURED_SCENARIOS:
        scenario = load_scenario(name)
        threshold = scenario.threshold
        policies = [
            Blurred(scenario.make_policy(policy), noise * threshold)
            for policy in ("direct", "secant")
            for noise in MEASUREMENT_NOISE
        ]
        rows.append((name, *measure(scenario, policies, 3 if quick else EPISODES["positioning"])))
        print(*rows[-1], sep="  ", flush=True)
    header = [f"{policy}, {noise:g} θ" for policy in ("direct", "secant") for noise in MEASUREMENT_NOISE]
    return markdown_table(("scenario", *header), rows)


def main(arguments: argparse.Namespace) -> int:
    """Measure and write the section of docs/results.md, unless only a quick look is asked for."""
    text = "\n\n".join(
        (
            f"Mean steps until the goal is within θ, or the step limit; {EPISODES['positioning']} episodes each "
            f"({EPISODES['fetch_reach']} of Fetch), with the same starts and contexts in a row. `direct` takes the "
            "largest step towards the goal, `secant` learns the map from action to movement on the way, `optimal` "
            "knows the context. The larger the initial step, the fewer steps.",
            table("positioning", STEPS, arguments.quick),
            "Fetch, in metres; its scenarios walk with 0.01, the paper's 0.2 of the action radius:",
            table("fetch", FETCH_STEPS, arguments.quick),
            "The noisy walk: Gaussian noise on each action, so many times as wide as the step is long. At 2 little of "
            "the walk is left in its steps.",
            noise_table(arguments.quick),
            "Displacements measured with Gaussian noise, its deviation in θ:",
            measurement_table(arguments.quick),
        )
    )
    if not arguments.quick:
        replace_section(RESULTS, SECTION, text)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.walk", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few episodes, nothing is written")
    sys.exit(main(parser.parse_args()))
