"""Closed-loop speed of the whole graph, recorder included, next to the loop in process and a bare chain of its hops."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.soak import Usage, growth
from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.bags.reader import RunReader
from lift_ros.collection.loop import run_episode
from lift_ros.collection.records import Mode
from lift_ros.graph.run import meeting_settings, process_specs
from lift_ros.graph.supervisor import Supervisor
from lift_ros.graph.table import SIMULATOR, GraphOptions, graph_nodes
from lift_ros.scenario import load_scenario

SCENARIO = "po-blend-d2"
WAIT_S = 3600.0


@dataclass(frozen=True)
class Measured:
    """Steps of a run, the seconds from its first step to its last, and milliseconds from step to step."""

    steps: int
    seconds: float
    latencies: np.ndarray

    @property
    def rate(self) -> float:
        return self.steps / self.seconds

    def row(self, name: str) -> tuple[Any, ...]:
        return (name, self.rate, *np.percentile(self.latencies, [50, 99]), float(self.latencies.max()))


def graph(options: GraphOptions, usage: dict[str, Usage] | None = None, sample_every: float = 1.0) -> None:
    """Run a graph to its end; sample the memory of its processes where asked to."""
    with tempfile.TemporaryDirectory() as folder, meeting_settings(options.plant) as settings:
        specs = process_specs(graph_nodes(options), options.namespace, Path(folder), settings)
        with Supervisor(specs[:-1], log=lambda _: None, colour=False) as supervisor:  # the last one only watches
            while not _until(supervisor, sample_every):
                if usage is not None:
                    for spec in specs[:-1]:
                        usage.setdefault(spec.name, Usage()).sample(supervisor.pid(spec.name))


def _until(supervisor: Supervisor, seconds: float) -> bool:
    """Supervise for a while; return whether the graph is complete."""
    due, over = time.monotonic() + seconds, False

    def stop() -> bool:
        nonlocal over
        over = over or time.monotonic() >= due
        return over

    supervisor.run(stop)
    return not over  # not by the clock: the graph may end in the very moment in which the time is up


def measure(run: Path) -> Measured:
    """Read from the run itself what its steps took; reading is strict, so a lost step would be an error."""
    steps, begin, end, gaps = 0, None, 0, []
    for episode in RunReader(run):
        times = np.array([step.time_ns for step in episode.steps])
        begin = int(times[0]) if begin is None else begin
        end = int(times[-1])
        steps += len(times)
        gaps.append(np.diff(times) / 1e6)
    return Measured(steps, (end - (begin or 0)) / 1e9, np.concatenate(gaps))


def bare_chain(steps: int, dim: int = 2, *, recorder: bool = False) -> Measured:
    """Run the chain with empty callbacks, one process per role."""
    command = [sys.executable, "-m", "benchmark.bare_chain"]
    words = [str(steps), str(dim), *(["recorder"] if recorder else [])]
    roles = ["arbiter", "policy", *(["recorder"] if recorder else [])]
    with meeting_settings(SIMULATOR) as settings:
        environment = {**os.environ, **settings}
        others = [subprocess.Popen([*command, role, *words], env=environment) for role in roles]
        try:
            plant = subprocess.run(
                [*command, "plant", *words], env=environment, capture_output=True, text=True, check=True
            )
        finally:
            for process in others:
                process.kill()
                process.wait()
    latencies = np.array(json.loads(plant.stdout.splitlines()[-1]))
    return Measured(len(latencies), float(latencies.sum()), 1e3 * latencies)


def in_process(steps: int) -> Measured:
    """Run the same episodes without ROS and without recording."""
    scenario = load_scenario(SCENARIO)
    problem, policy = scenario.make_problem(), scenario.make_logging_policy()
    made, index, gaps = 0, 0, []
    began = time.perf_counter()
    while made < steps:
        episode = run_episode(problem, policy, None, index=index, run_seed=0, mode=Mode.COLLECT, p=0.0, budget=0)
        gaps.append(np.diff([step.time_ns for step in episode.steps]) / 1e6)
        made += len(episode.steps)
        index += 1
    return Measured(made, time.perf_counter() - began, np.concatenate(gaps))


def options_for(run: Path, episodes: int, **changes: Any) -> GraphOptions:
    return GraphOptions(scenario=changes.pop("scenario", SCENARIO), run=run, episodes=episodes, p=0.0, **changes)


def compare(folder: Path, repeats: int, episodes: int, steps: int) -> str:
    """Take turns between bare chains and graph, so that a busy spell hits all of them."""
    found: dict[str, list[Measured]] = {name: [] for name in ("bare chain", "bare chain with recorder", "graph")}
    for number in range(repeats):
        found["bare chain"].append(bare_chain(steps))
        found["bare chain with recorder"].append(bare_chain(steps, recorder=True))
        run = folder / f"compare{number}"
        graph(options_for(run, episodes))
        found["graph"].append(measure(run))
    rows = [max(items, key=lambda item: item.rate).row(name) for name, items in found.items()]
    rows.append(in_process(20 * steps).row("in process, nothing recorded"))
    return (
        f"The fastest of {repeats} turns:\n\n"
        + markdown_table(("", "steps/s", "p50 [ms]", "p99 [ms]", "max [ms]"), rows)
        + f"\n\nThe graph makes {_share(found['graph'], found['bare chain'])} of the bare chain's steps per second and "
        f"{_share(found['graph'], found['bare chain with recorder'])} of the chain's that has the graph's hops to the "
        "recorder and back as well. Ends of episodes and their files are included; from step to step within an episode "
        f"it is {_inner(found['graph'], found['bare chain'])} and "
        f"{_inner(found['graph'], found['bare chain with recorder'])} (medians of latencies).\n"
    )


def _share(ours: list[Measured], theirs: list[Measured]) -> str:
    shares = [one.rate / other.rate for one, other in zip(ours, theirs, strict=True)]
    return f"{np.median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%} over the turns)"


def _inner(ours: list[Measured], theirs: list[Measured]) -> str:
    shares = [np.median(other.latencies) / np.median(one.latencies) for one, other in zip(ours, theirs, strict=True)]
    return f"{np.median(shares):.0%}"


def endurance(folder: Path, episodes: int) -> str:
    """Make many steps at full speed: none lost, and no growth."""
    run = folder / "endurance"
    usage: dict[str, Usage] = {}
    graph(options_for(run, episodes, parameters={"recorder": {"episodes_per_file": 100}}), usage)
    measured = measure(run)
    rows = [(name, *growth(item.memory_mib), *map(int, growth(item.handles))) for name, item in usage.items()]
    half = measured.latencies.size // 2
    first, second = measured.latencies[:half], measured.latencies[half:]
    return (
        f"{measured.steps} steps at full speed, {measured.rate:.0f} per second: none lost (the reader refuses gaps). "
        f"Median latency {np.median(first):.2f} ms in the first half, {np.median(second):.2f} ms in the second.\n\n"
        + markdown_table(("node", "first quarter [MiB]", "last quarter [MiB]", "handles first", "handles last"), rows)
        + "\n"
    )


def images(folder: Path, episodes: int) -> str:
    """Measure what a 64×64 picture in every message adds to a step of the simulated arm."""
    scenario = load_scenario("fetch-reach")
    problem = scenario.make_problem(render_size=64)
    problem.reset(0)
    action = np.full(3, 0.001)
    began = time.perf_counter()
    for _ in range(50):
        problem.step(action)
    with_rendering = (time.perf_counter() - began) / 50
    problem.close()
    rows = []
    for name, size in (("no picture", 0), ("64×64", 64)):
        run = folder / f"images{size}"
        graph(options_for(run, episodes, scenario="fetch-reach", parameters={"fetch_simulator": {"image_size": size}}))
        rows.append(measure(run).row(name))
    return (
        markdown_table(("Fetch reach", "steps/s", "p50 [ms]", "p99 [ms]", "max [ms]"), rows)
        + f"\n\nSimulating and rendering alone takes {1e3 * with_rendering:.1f} ms per step in process.\n"
    )


def side_by_side(folder: Path, episodes: int) -> str:
    """Run one, two and four graphs in namespaces of one domain."""
    rows = []
    for count in (1, 2, 4):
        code = (
            "import sys; from pathlib import Path; from benchmark.graph import graph, options_for; "
            "graph(options_for(Path(sys.argv[1]), int(sys.argv[2]), namespace=sys.argv[3], seed=int(sys.argv[4])))"
        )
        runs = [folder / f"beside{count}_{number}" for number in range(count)]
        with meeting_settings(SIMULATOR) as settings:
            processes = [
                subprocess.Popen(
                    [sys.executable, "-c", code, str(run), str(episodes), f"graph{number}", str(number)],
                    env={**os.environ, **settings},
                )
                for number, run in enumerate(runs)
            ]
            assert [process.wait(WAIT_S) for process in processes] == [0] * count
        measured = [measure(run) for run in runs]
        latencies = np.concatenate([item.latencies for item in measured])
        rows.append((count, sum(item.rate for item in measured), *np.percentile(latencies, [50, 99]), latencies.max()))
    return markdown_table(("graphs", "steps/s together", "p50 [ms]", "p99 [ms]", "max [ms]"), rows) + "\n"


def main(arguments: Namespace) -> int:
    """Measure, print and, unless quick, write the section of docs/results.md."""
    quick = arguments.quick
    with tempfile.TemporaryDirectory(prefix="lift-graph-") as place:
        folder = Path(place)
        text = "\n".join(
            [
                f"{SCENARIO}, one process per node, {os.cpu_count()} cores.\n",
                compare(folder, 1 if quick else 5, 20 if quick else 60, 1000 if quick else 3000),
                endurance(folder, 20 if quick else 2100),
                images(folder, 2 if quick else 10),
                "Graphs beside each other on the same cores:\n",
                side_by_side(folder, 10 if quick else 40),
            ]
        )
    print(text)
    if not quick:
        replace_section(RESULTS, "graph", text)
    return 0
