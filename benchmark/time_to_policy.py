"""From a run on disk to a policy that arrives in 95 % of contexts: ours against stock d3rlpy.

Stock runs twice, at the paper's settings and at those of our preset as far as d3rlpy has them, so that one can tell
what the settings save from what the code does. All read the same run and train on its shortcuts; success is measured
every so many updates on the same contexts, and the time of these measurements is not counted. Stock d3rlpy uses
`ShortcutPicker` and gets actions divided by λ, as ours do. It gives up after a stated time.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog

from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.bags import RunWriter, load_arrays
from lift_ros.collection.loop import collect
from lift_ros.evaluation.convergence import context_seeds, converge
from lift_ros.policies.protocol import Policy
from lift_ros.scenario import Scenario, load_scenario
from lift_ros.seeds import derive_seed
from lift_ros.training import TrainingOptions, preset, train
from lift_ros.training.runs import load_runs

GOAL = 0.95
CONTEXTS = 100
EVERY = 25
SCENARIOS = ("po-blend-d2", "po-blend-d5")
THREADS = 1  # waiting threads would burn processor time on a busy machine, and only stock d3rlpy's


@dataclass
class Reached:
    """When a policy was good enough, in seconds since the reading of the run began."""

    updates: int = 0
    wall: float = 0.0
    processor: float = 0.0
    success: float = 0.0

    @property
    def enough(self) -> bool:
        return self.success >= GOAL


class Clock:
    """Counts wall and processor time, but not while it is paused."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, time.process_time() - self._processor

    def without(self, job: Callable[[], float]) -> float:
        """Return the job's value and forget the time it took."""
        wall, processor = time.perf_counter(), time.process_time()
        value = job()
        self._wall += time.perf_counter() - wall
        self._processor += time.process_time() - processor
        return value


class Watch:
    """Measures a policy now and then, and remembers when it was good enough first."""

    def __init__(self, scenario: Scenario, limit: float) -> None:
        self._scenario = scenario
        self._seeds = context_seeds(derive_seed(0, "time to policy"), CONTEXTS)
        self._limit = limit
        self._clock = Clock()
        self.reached = Reached()

    def measure(self, policy: Policy, updates: int) -> bool:
        """Measure and return whether to stop: good enough, or out of time."""
        success = self._clock.without(lambda: converge(self._scenario, policy, self._seeds).success)
        wall, processor = self._clock.read()
        self.reached = Reached(updates, wall, processor, success)
        print(f"  {updates} updates, {wall:.1f} s, success {success:.2f}", flush=True)
        return self.reached.enough or processor > self._limit


def ours(run: Path, scenario: Scenario, seed: int, limit: float, every: int) -> Reached:
    """Train with the preset `fast` until the policy is good enough or its updates are done."""
    watch = Watch(scenario, limit)
    recorded = load_runs([run])
    done = {"stop": False, "updates": 0}

    def judge(policy: Policy) -> dict[str, float]:
        done["updates"] += every
        done["stop"] = watch.measure(policy, done["updates"])
        return {"score": watch.reached.success}

    train(
        recorded,
        preset("fast", scenario, seed=seed),
        action_radius=scenario.action_radius,
        threads=THREADS,
        judge=judge,
        judge_every=every,
        stop=lambda: bool(done["stop"]),
    )
    return watch.reached


class StockPolicy:
    """d3rlpy's policy with actions brought back into the ball of radius λ."""

    def __init__(self, algorithm: Any, radius: float) -> None:
        self._algorithm = algorithm
        self._radius = radius

    def reset(self) -> None:
        """Nothing to forget."""

    def act(self, observation: Any) -> Any:
        return self.act_batch(np.asarray(observation)[None])[0]

    def act_batch(self, observations: Any) -> Any:
        unit = self._algorithm.predict(np.ascontiguousarray(observations, dtype=np.float32)).astype(np.float64)
        return unit * self._radius / np.maximum(1.0, np.linalg.norm(unit, axis=1, keepdims=True))


def stock(preset_name: str, run: Path, scenario: Scenario, seed: int, limit: float, every: int) -> Reached:
    """Train d3rlpy's CQL at the settings of a preset with `ShortcutPicker`, until good enough or out of time."""
    import d3rlpy
    import torch

    from lift_ros.shortcuts import ShortcutPicker

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    torch.set_num_threads(THREADS)
    d3rlpy.seed(seed)
    options = preset(preset_name, scenario)
    _warm_up()
    watch = Watch(scenario, limit)
    arrays = load_arrays(run)
    episodes = [
        d3rlpy.dataset.Episode(
            arrays.observations[rows].astype(np.float32),
            (arrays.actions[rows] / scenario.action_radius).astype(np.float32),
            arrays.rewards[rows, None].astype(np.float32),
            bool(arrays.terminated[number]),
        )
        for number, rows in ((number, arrays.rows(number)) for number in range(len(arrays)))
    ]
    picker = ShortcutPicker(action_radius=1.0, gamma=options.gamma, C=options.C, strategy=options.strategy, seed=seed)
    buffer = d3rlpy.dataset.create_infinite_replay_buffer(episodes=episodes, transition_picker=picker)
    algorithm = _stock_config(options).create(device="cpu")
    algorithm.create_impl((scenario.observation_size,), scenario.action_size)
    policy = StockPolicy(algorithm, scenario.action_radius)
    last = options.updates if options.schedule == "cosine" else sys.maxsize  # where the learning rate ends
    updates = 0
    while updates < last:
        for _ in range(every):
            algorithm.update(buffer.sample_transition_batch(options.batch_size))
        updates += every
        if watch.measure(policy, updates):
            break
    return watch.reached


def _stock_config(options: TrainingOptions) -> Any:
    """Return d3rlpy's configuration of CQL with everything it has of our options: it averages no actor, for example."""
    import d3rlpy

    schedule = d3rlpy.optimizers.CosineAnnealingLRFactory(T_max=options.updates)
    adam = d3rlpy.optimizers.AdamFactory(lr_scheduler_factory=schedule if options.schedule == "cosine" else None)
    networks = d3rlpy.models.VectorEncoderFactory(hidden_units=list(options.hidden))
    return d3rlpy.algos.CQLConfig(
        actor_learning_rate=options.actor_learning_rate,
        critic_learning_rate=options.critic_learning_rate,
        temp_learning_rate=options.temperature_learning_rate,
        alpha_learning_rate=options.alpha_learning_rate,
        actor_optim_factory=adam,
        critic_optim_factory=adam,
        temp_optim_factory=adam,
        alpha_optim_factory=adam,
        actor_encoder_factory=networks,
        critic_encoder_factory=networks,
        n_critics=options.critics,
        batch_size=options.batch_size,
        gamma=options.gamma,
        tau=options.tau,
        initial_temperature=options.initial_temperature,
        initial_alpha=options.initial_alpha,
        conservative_weight=options.conservative_weight,
        alpha_threshold=options.alpha_threshold,
        n_action_samples=options.action_samples,
    )


def _warm_up() -> None:
    """Let torch import what its optimisers need, which takes seconds once per process and is not d3rlpy's fault."""
    import torch

    weight = torch.nn.Parameter(torch.ones(1))
    optimiser = torch.optim.Adam([weight])
    weight.sum().backward()
    optimiser.step()


def record(scenario: Scenario, folder: Path, seed: int, episodes: int) -> Path:
    """Write a run of the logging policy."""
    run = folder / f"{scenario.name}-{seed}"
    with RunWriter(run, {"scenario": scenario.name, "parameters": scenario.as_dict()}) as writer:
        collect(scenario, episodes=episodes, seed=seed, on_episode=writer.write_episode, progress=False)
    return run


def main(arguments: argparse.Namespace) -> int:
    """Measure both and write the section."""
    seeds = (10,) if arguments.quick else (10, 11)
    every = 5 if arguments.quick else EVERY
    limits = {"po-blend-d2": 300.0, "po-blend-d5": 600.0}
    rows = []
    ratios: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in SCENARIOS[: 1 if arguments.quick else None]:
            scenario = load_scenario(name)
            for seed in seeds:
                run = record(scenario, Path(folder), seed, scenario.collection.episodes)
                limit = 2.0 if arguments.quick else limits[name]
                found = ours(run, scenario, seed, limit, every)
                rows.append((name, seed, "ours, preset `fast`", *_cells(found), ""))
                for who, settings in (("our settings", "fast"), ("the paper's settings", "paper")):
                    print(f"{name}, seed {seed}, stock d3rlpy at {who}", flush=True)
                    other = stock(settings, run, scenario, seed, limit, every)
                    ratios.setdefault(who, []).append(_ratio(other, found))
                    rows.append((name, seed, f"stock d3rlpy, {who}", *_cells(other), ratios[who][-1]))
    header = ("scenario", "seed", "", "success", "updates", "processor time [s]", "wall time [s]", "stock / ours")
    text = (
        f"Time from opening the run to the first policy with success ≥ {GOAL} in {CONTEXTS} contexts, measured every "
        f"{every} updates, on one thread each. The ratio is of processor time: "
        + "; ".join(f"{', '.join(several)} against stock d3rlpy at {who}" for who, several in ratios.items())
        + ". At the paper's settings (networks of 256×256, batches of 500, 10 action samples) it compares the preset "
        "`fast` with stock d3rlpy, so that it tells what preset and code save together; at our settings, as far as "
        "d3rlpy has them (no averaged actor, no anchor, starts drawn by transitions), what the code saves. "
        "Stock may use "
        + ", ".join(f"{seconds:.0f} s of processor time in {name}" for name, seconds in limits.items())
        + "; a ratio with ≥ means that it was not good enough by then.\n\n"
        + markdown_table(header, rows)
    )
    print(text)
    if not arguments.quick:
        replace_section(RESULTS, "time_to_policy", text)
    return 0


def _cells(found: Reached) -> tuple[str, str, str, str]:
    mark = "" if found.enough else "not reached: "
    return f"{mark}{found.success:.2f}", str(found.updates), f"{found.processor:.1f}", f"{found.wall:.1f}"


def _ratio(theirs: Reached, ours_: Reached) -> str:
    if not ours_.enough:
        return "ours did not reach it"
    ratio = theirs.processor / ours_.processor
    return f"{'' if theirs.enough else '≥ '}{ratio:.{0 if ratio >= 10 else 1}f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmark.time_to_policy", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, a few seconds; nothing is stored")
    sys.exit(main(parser.parse_args()))
