"""Lie to a living graph: messages of every type, with the right tokens and numbers, before the true ones are sent.

`python -m benchmark.attacks.forged [--count N] [--seed S] [--type NAME …]`
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import queue
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import lift_ros.msg as msg
from benchmark.attacks.living import AUGMENTATION, SCENARIO, Stalled, Watcher, living_graph
from benchmark.attacks.page import note
from benchmark.attacks.truth import examine
from lift_ros.graph import qos
from lift_ros.progress import Progress
from lift_ros.seeds import generator

BURST = 50  # messages at once, as soon as somebody has asked or told what a lie can be about
IDLE_SECONDS = 0.5  # so long nothing is heard before the next lie is about what was heard last
LEARNED = "learned"  # an augmentation without a model: whoever acts in its place is a stranger
Rng = np.random.Generator


def _action(rng: Rng) -> list[float]:
    """Return an action: mostly one that a plant would take, sometimes one that it must not."""
    length = float(rng.choice([0.01, 0.1, 0.29, 5.0, np.nan], p=[0.3, 0.3, 0.3, 0.05, 0.05]))
    angle = rng.random() * 2 * np.pi
    return [length * float(np.cos(angle)), length * float(np.sin(angle))]


def _hold(command: Any, _rng: Rng) -> None:
    command.kind, command.action = msg.Command.KIND_HOLD, []


def _move(command: Any, rng: Rng) -> None:
    command.kind, command.action = msg.Command.KIND_MOVE, _action(rng)
    command.step += int(rng.choice([0, 0, 1]))


def _reset(command: Any, rng: Rng) -> None:
    command.kind, command.step, command.action = msg.Command.KIND_RESET, 0, []
    command.episode += int(rng.integers(0, 2))
    command.seed = int(rng.integers(2**32)) if rng.random() < 0.5 else command.seed


def _observation(observation: Any, rng: Rng) -> None:
    executed = observation.executed
    observation.step += int(rng.choice([0, 1, 1, 1, 2]))
    observation.values = observation.position = rng.normal(0.0, 0.5, len(observation.values)).tolist()
    observation.terminated = bool(rng.random() < 0.3)
    observation.refusal = int(rng.choice([0] * 8 + list(range(1, 9))))
    observation.executed = executed if rng.random() < 0.9 else _action(rng)


def _query(query: Any, rng: Rng) -> None:
    query.step += int(rng.choice([0, 0, 0, 1]))
    query.values = rng.normal(0.0, 0.5, len(query.values)).tolist()
    query.handoff = bool(rng.random() < 0.5)


def _proposal(source: int) -> Callable[[Any, Rng], None]:
    def change(proposal: Any, rng: Rng) -> None:
        proposal.source, proposal.action = source, _action(rng)
        proposal.step += int(rng.choice([0, 0, 0, 1]))
        proposal.model_hash = ""

    return change


def _step(step: Any, rng: Rng) -> None:
    step.step += int(rng.choice([0, 0, 1]))
    step.action = rng.normal(0.0, 0.1, len(step.action)).tolist()
    step.observation = rng.normal(0.0, 0.5, len(step.observation)).tolist()


def _episode(episode: Any, rng: Rng) -> None:
    episode.episode += int(rng.integers(0, 3))
    episode.outcome = int(rng.integers(1, 5))
    episode.steps = int(rng.integers(0, 100))


def _receipt(kind: int) -> Callable[[Any, Rng], None]:
    def change(receipt: Any, rng: Rng) -> None:
        receipt.kind = kind
        receipt.step += int(rng.integers(0, 3))
        receipt.episode += int(rng.integers(0, 2)) if kind != msg.Receipt.KIND_READY else int(rng.integers(0, 1000))

    return change


@dataclass(frozen=True)
class Forgery:
    """A type of lie: on which topic, what is changed in the last true message, and after which message it comes."""

    topic: str
    change: Callable[[Any, Rng], None]
    after: str  # a topic on which episode and step are told before somebody speaks on `topic`
    augmentation: str = AUGMENTATION  # of the graph that is lied to


FORGERIES = {
    "move": Forgery(qos.COMMAND, _move, qos.QUERY),
    "reset": Forgery(qos.COMMAND, _reset, qos.QUERY),
    "hold": Forgery(qos.COMMAND, _hold, qos.QUERY),
    "observation": Forgery(qos.OBSERVATION, _observation, qos.COMMAND),
    "query": Forgery(qos.QUERY, _query, qos.OBSERVATION),
    "routine's proposal": Forgery(qos.PROPOSAL, _proposal(msg.Proposal.SOURCE_LOGGING_POLICY), qos.QUERY),
    "augmentor's proposal": Forgery(qos.PROPOSAL, _proposal(msg.Proposal.SOURCE_AUGMENTOR), qos.QUERY),
    "step": Forgery(qos.STEP, _step, qos.COMMAND),
    "episode": Forgery(qos.EPISODE, _episode, qos.STEP),
    "receipt of a step": Forgery(qos.RECEIPT, _receipt(msg.Receipt.KIND_STEP), qos.COMMAND),
    "receipt of an episode": Forgery(qos.RECEIPT, _receipt(msg.Receipt.KIND_EPISODE), qos.STEP),
    "failure": Forgery(qos.RECEIPT, _receipt(msg.Receipt.KIND_FAILED), qos.STEP),
    "ready": Forgery(qos.READY, _receipt(msg.Receipt.KIND_READY), qos.STEP),
    "proposal without a model": Forgery(
        qos.PROPOSAL, _proposal(msg.Proposal.SOURCE_AUGMENTOR), qos.QUERY, augmentation=LEARNED
    ),
    "model": Forgery(qos.MODEL, lambda _model, _rng: None, qos.QUERY, augmentation=LEARNED),
}


@dataclass
class Lied:
    """What came of lying."""

    sent: Counter[str] = field(default_factory=Counter)
    steps_meanwhile: Counter[str] = field(default_factory=Counter)
    episodes: int = 0
    steps: int = 0
    untrue: list[str] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)
    stalls: list[str] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        """Number of things that must not be."""
        return sum(map(len, (self.untrue, self.unsafe, self.stalls, self.deaths)))

    @property
    def summary(self) -> str:
        """What came of it in one line."""
        meanwhile = ", ".join(f"{name} {self.steps_meanwhile[name]}" for name in self.sent)
        return (
            f"{self.episodes} episodes, {self.steps} steps: {len(self.untrue)} untrue, {len(self.unsafe)} unsafe, "
            f"{len(self.stalls)} stalls, {len(self.deaths)} nodes that died or told of an error nobody expected; "
            f"steps made while being lied to: {meanwhile}"
        )

    def __str__(self) -> str:
        shown = [*self.untrue[:5], *self.unsafe[:5], *self.stalls[:5], *self.deaths[:5]]
        return "\n".join([f"{self.sent.total()} forged messages of {len(self.sent)} types: {self.summary}", *shown])


def attack(count: int, seed: int, names: list[str], progress: bool = False) -> Lied:
    """Send so many messages of each type."""
    lied = Lied()
    with Progress(count * len(names), "forging", unit="messages", enabled=progress) as bar:
        for augmentation in (AUGMENTATION, LEARNED):
            chosen = [name for name in names if FORGERIES[name].augmentation == augmentation]
            if chosen:
                _attack(lied, chosen, augmentation, count, seed, bar)
    return lied


def _attack(lied: Lied, names: list[str], augmentation: str, count: int, seed: int, bar: Progress) -> None:
    rng = generator(seed, "forged", augmentation)
    with tempfile.TemporaryDirectory(prefix="lift-forged-") as made:
        folder = Path(made)
        with living_graph(folder, seed, augmentation) as (graph, watcher):
            forger = Forger(watcher, folder)
            for name in names:
                before = watcher.steps
                try:
                    forger.send(name, count, rng, bar)
                    lied.sent[name] = count
                    lied.steps_meanwhile[name] = watcher.steps - before
                    after = watcher.steps
                    watcher.wait(f"a step after forged messages ({name})", lambda seen=after: watcher.steps > seen + 2)
                except Stalled as stall:
                    lied.stalls.append(str(stall))
                    break
            lied.deaths += [*graph.restart_dead(), *graph.tracebacks()]
        truth = examine(graph.run, SCENARIO, "" if augmentation == LEARNED else augmentation)
        lied.episodes += truth.episodes
        lied.steps += truth.steps
        lied.untrue += truth.untrue
        lied.unsafe += truth.unsafe


class Forger:
    """Publishes on every topic of the loop what was last said there, changed, and about what comes next."""

    def __init__(self, watcher: Watcher, folder: Path) -> None:
        self._watcher = watcher
        self._model = self._make_model(folder)
        self._publishers: dict[str, Any] = {}

    def send(self, name: str, count: int, rng: Rng, bar: Progress) -> None:
        """Send messages of one type, a burst whenever there is something to lie about."""
        forgery, watcher = FORGERIES[name], self._watcher
        publisher = self._publisher(forgery.topic)
        triggers: queue.Queue[Any] = queue.Queue()
        watcher.on_message = lambda topic, message: triggers.put(message) if topic == forgery.after else None
        if forgery.topic != qos.MODEL:
            watcher.wait(f"something like {name}", lambda: _like(forgery) in watcher.heard)
        left, last = count, watcher.heard[forgery.after]
        while left:
            with contextlib.suppress(queue.Empty):
                last = triggers.get(timeout=IDLE_SECONDS)
                while not triggers.empty():
                    last = triggers.get()
            for _ in range(min(BURST, left)):
                publisher.publish(self._forge(forgery, last, rng))
            bar.advance(min(BURST, left))
            left -= min(BURST, left)
        watcher.on_message = lambda _topic, _message: None

    def _publisher(self, topic: str) -> Any:
        if topic not in self._publishers:
            kind = {**self._watcher.kinds, qos.READY: msg.Receipt, qos.MODEL: msg.Model}[topic]
            profile = qos.LATCHED if topic in (qos.READY, qos.MODEL) else qos.LOOP
            publisher = self._publishers[topic] = self._watcher.node.create_publisher(kind, topic, profile)
            own = topic in self._watcher.kinds  # the watcher hears it, too
            self._watcher.wait("somebody to lie to", lambda: publisher.get_subscription_count() > own)
        return self._publishers[topic]

    def _forge(self, forgery: Forgery, about: Any, rng: Rng) -> Any:
        if forgery.topic == qos.MODEL:
            return self._model
        message = copy.deepcopy(self._watcher.heard[_like(forgery)])
        message.episode = about.episode
        if hasattr(message, "step") and hasattr(about, "step"):
            message.step = about.step
        forgery.change(message, rng)
        return message

    def _make_model(self, folder: Path) -> Any:
        """Announce a model that is whole and fits, but lies where nobody of the graph has put it."""
        from benchmark.attacks.models import write_small_model

        path = folder / "stranger.safetensors"
        digest = write_small_model(path, SCENARIO)
        return msg.Model(path=str(path), sha256=digest, algorithm="cql", episodes=50)


def main() -> int:
    """Lie, and return 1 where anything must not be."""
    parser = argparse.ArgumentParser(prog="python -m benchmark.attacks.forged", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="messages of each type (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="what messages are drawn from (default: 0)")
    parser.add_argument("--type", nargs="+", choices=tuple(FORGERIES), default=list(FORGERIES), help="default: all")
    parser.add_argument("--write", action="store_true", help="put what came of it into docs/results.md")
    given = parser.parse_args()
    lied = attack(given.count, given.seed, given.type, progress=True)
    print(lied)
    if given.write:
        note("forged messages", lied.sent.total(), given.seed, lied.summary, lied.bad)
    return 1 if lied.bad else 0


if __name__ == "__main__":
    sys.exit(main())


def _like(forgery: Forgery) -> str:
    """Return the topic whose last true message is changed."""
    return qos.RECEIPT if forgery.topic == qos.READY else forgery.topic
