"""Kill nodes of a living graph at the worst moments: what is recorded stays true, and the graph goes on by itself.

`python -m benchmark.attacks.kills [--count N] [--seed S] [--graphs G]`
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.attacks.living import AUGMENTATION, MODULES, SCENARIO, LivingGraph, Stalled, Watcher, living_graph
from benchmark.attacks.page import note
from benchmark.attacks.truth import examine
from lift_ros.progress import Progress
from lift_ros.seeds import generator

# Moments: what is seen on which topic, and a short while after it, in which the node dies.
MOMENTS = {
    "reset": lambda topic, message: topic == "command" and message.kind == 1,
    "move 0": lambda topic, message: topic == "command" and message.kind == 0 and message.step == 0,
    "a move": lambda topic, message: topic == "command" and message.kind == 0 and message.step > 2,
    "a question": lambda topic, message: topic == "query",
    "an answer": lambda topic, message: topic == "proposal",
    "an end": lambda topic, message: topic == "episode",
    "a receipt": lambda topic, message: topic == "receipt",
    "any time": lambda topic, message: True,
}


@dataclass
class Killed:
    """What came of killing."""

    kills: Counter[str] = field(default_factory=Counter)  # by node and by moment
    waits: list[float] = field(default_factory=list)  # [s] until the next step
    episodes: int = 0
    steps: int = 0
    untrue: list[str] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)
    stalls: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    restarts: Counter[str] = field(default_factory=Counter)  # of nodes that nobody killed

    @property
    def bad(self) -> int:
        """Number of things that must not be."""
        return sum(map(len, (self.untrue, self.unsafe, self.stalls, self.tracebacks)))

    def add(self, other: Killed) -> None:
        """Add what came of other kills."""
        self.kills += other.kills
        self.restarts += other.restarts
        self.episodes += other.episodes
        self.steps += other.steps
        for name in ("waits", "untrue", "unsafe", "stalls", "tracebacks"):
            getattr(self, name).extend(getattr(other, name))

    @property
    def summary(self) -> str:
        """What came of it in one line."""
        nodes = ", ".join(f"{name} {self.kills[name]}" for name in MODULES)
        waits = f"p50 {np.median(self.waits):.1f} s, max {max(self.waits):.1f} s" if self.waits else "never"
        moments = ", ".join(f"{name} {self.kills[name]}" for name in MOMENTS)
        return (
            f"{self.episodes} episodes, {self.steps} steps: {len(self.untrue)} untrue, {len(self.unsafe)} unsafe, "
            f"{len(self.stalls)} stalls, {len(self.tracebacks)} tracebacks; the next steps after {waits}; "
            f"killed: {nodes}; at {moments}"
        )

    def __str__(self) -> str:
        shown = [*self.untrue[:5], *self.unsafe[:5], *self.stalls[:5], *self.tracebacks[:5]]
        return "\n".join([f"{len(self.waits)} kills: {self.summary}", *shown])


def attack(count: int, seed: int, folder: Path | None = None, progress: bool = False) -> Killed:
    """Kill so many times in one graph."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="lift-kills-") as made:
            return attack(count, seed, Path(made), progress)
    rng = generator(seed, "kills")
    killed = Killed()
    with (
        Progress(count, "killing", unit="kills", enabled=progress) as bar,
        living_graph(folder, seed) as (graph, watcher),
    ):
        for _ in range(count):
            try:
                _kill_once(graph, watcher, rng, killed)
            except Stalled as stall:
                killed.stalls.append(str(stall))
                break
            bar.advance(1)
    killed.tracebacks = graph.tracebacks()
    truth = examine(graph.run, SCENARIO, AUGMENTATION)
    killed.episodes, killed.steps, killed.untrue, killed.unsafe = (
        truth.episodes,
        truth.steps,
        truth.untrue,
        truth.unsafe,
    )
    return killed


def _kill_once(graph: LivingGraph, watcher: Watcher, rng: np.random.Generator, killed: Killed) -> None:
    node = str(rng.choice(MODULES))
    moment = str(rng.choice(list(MOMENTS)))
    delay = float(rng.choice([0.0, rng.random() * 0.005, rng.random() * 0.05]))
    _wait_for(watcher, moment)
    time.sleep(delay)
    graph.kill(node)
    killed.kills[node] += 1
    killed.kills[moment] += 1
    before = watcher.steps

    def goes_on() -> bool:
        for name in graph.restart_dead():
            killed.restarts[name] += 1
        return watcher.steps > before + 2

    killed.waits.append(watcher.wait(f"a step after {node} was killed at {moment}", goes_on))


def _wait_for(watcher: Watcher, moment: str) -> None:
    seen = threading.Event()

    def look(topic: str, message: Any) -> None:
        if MOMENTS[moment](topic, message):
            seen.set()

    watcher.on_message = look
    watcher.wait(f"the moment {moment}", seen.is_set)
    watcher.on_message = lambda _topic, _message: None


def main() -> int:
    """Kill, and return 1 where anything must not be."""
    parser = argparse.ArgumentParser(prog="python -m benchmark.attacks.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="kills in all (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="what moments and nodes are drawn from (default: 0)")
    parser.add_argument("--graphs", type=int, default=4, help="graphs beside each other (default: 4)")
    parser.add_argument("--write", action="store_true", help="put what came of it into docs/results.md")
    given = parser.parse_args()
    shares = [given.count // given.graphs + (number < given.count % given.graphs) for number in range(given.graphs)]
    killed = Killed()
    with ProcessPoolExecutor(given.graphs, mp_context=get_context("spawn")) as pool:
        begun = [pool.submit(attack, share, given.seed + number) for number, share in enumerate(shares)]
        for future in begun:
            killed.add(future.result())
    print(killed)
    if given.write:
        note("kills", given.count, given.seed, killed.summary, killed.bad)
    return 1 if killed.bad else 0


if __name__ == "__main__":
    sys.exit(main())
