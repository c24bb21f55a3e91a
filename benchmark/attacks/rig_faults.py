"""Break rigs at random moments: nothing moves after a stop, no episode is lost, what is recorded has happened.

`python -m benchmark.attacks.rig_faults [--count N] [--seed S] [--rigs micromanager epics]`
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any

import numpy as np

from benchmark.attacks.living import LivingGraph, Stalled, Watcher, living
from benchmark.attacks.rig_truth import examine
from benchmark.attacks.rigs import RIGS, AnyRig, Trace
from benchmark.timing import RESULTS, markdown_table, replace_section
from lift_ros.collection.records import Outcome
from lift_ros.graph.table import GraphOptions
from lift_ros.progress import Progress
from lift_ros.seeds import generator

STILL_SECONDS = 0.6  # that a stopped rig is watched, once its grace has passed
MISBEHAVING_SECONDS = 9.0  # that a fault lasts at most, where the plant lives with it
MOVING_NS = 250_000_000  # before a stop, in which axes that move are seen to
SLOW_TRIES = 5
RESTING = ("FAULT", "EMERGENCY_STOP")
EMERGENCY_TOPIC = "button"
TITLES = (
    "rig",
    "faults",
    "seed",
    "episodes recorded",
    "steps",
    "motions after a stop",
    "episodes or steps lost",
    "records untrue",
    "positions unwatched",
    "stalls",
    "tracebacks",
    "stops that met motion",
    "last motion after those",
)
PARAMETERS: dict[str, dict[str, Any]] = {
    "rig": {"watchdog": 1.0, "emergency_topic": EMERGENCY_TOPIC, "diagnostics_period": 0.1},
    "arbiter": {"diagnostics_period": 0.1, "guard_enabled": False, "plant_deadline": 15.0, "repeat_period": 0.5},
}


@dataclass
class Broken:
    """What came of breaking a rig."""

    faults: Counter[str] = field(default_factory=Counter)
    plant_said: Counter[str] = field(default_factory=Counter)  # by fault and status of the plant
    recorded: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # by fault
    coasts: list[float] = field(default_factory=list)  # [s] from pressing a stop in a move to the last motion
    stops: int = 0
    unwatched: int = 0  # recorded positions that nobody could see, on a machine that kept the watcher waiting
    outcomes: Counter[str] = field(default_factory=Counter)
    episodes: int = 0
    steps: int = 0
    moved: list[str] = field(default_factory=list)  # after a stop
    untrue: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    stalls: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        """Number of things that must not be."""
        return sum(map(len, (self.moved, self.untrue, self.lost, self.stalls, self.tracebacks)))

    @property
    def coast(self) -> str:
        """How soon axes rested that were stopped in a move."""
        return f"p50 {np.median(self.coasts):.2f} s, max {max(self.coasts):.2f} s" if self.coasts else "none"

    def row(self, rig: str, seed: int) -> tuple[object, ...]:
        """Return a row of the table in docs/results.md."""
        ends = ", ".join(f"{name} {number}" for name, number in sorted(self.outcomes.items()))
        bad = [len(each) for each in (self.moved, self.lost, self.untrue, self.stalls, self.tracebacks)]
        bad.insert(3, self.unwatched)
        stops = f"{len(self.coasts)} of {self.stops}"
        return (rig, sum(self.faults.values()), seed, f"{self.episodes}: {ends}", self.steps, *bad, stops, self.coast)

    @property
    def summary(self) -> str:
        """What came of it in one line."""
        listed = ", ".join(f"{name} {number}" for name, number in sorted(self.faults.items()))
        ends = ", ".join(f"{name} {number}" for name, number in sorted(self.outcomes.items()))
        return (
            f"{self.episodes} episodes ({ends}), {self.steps} steps: {len(self.moved)} motions after a stop, "
            f"{len(self.lost)} lost, {len(self.untrue)} untrue, {self.unwatched} unwatched, {len(self.stalls)} stalls, "
            f"{len(self.tracebacks)} tracebacks; {len(self.coasts)} of {self.stops} emergency stops met axes in "
            f"motion, which ended after {self.coast}; faults: {listed}"
        )

    def __str__(self) -> str:
        bad = [*self.moved[:9], *self.untrue[:9], *self.lost[:9], *self.stalls[:9], *self.tracebacks[:9]]
        said = ", ".join(f"{name} {number}" for name, number in sorted(self.plant_said.items()))
        return "\n".join([f"{sum(self.faults.values())} faults: {self.summary}", f"the plant said: {said}", *bad])


class Scene:
    """A rig, its graph, and what was seen of both."""

    def __init__(self, rig: AnyRig, graph: LivingGraph, watcher: Watcher, rng: np.random.Generator) -> None:
        from std_msgs.msg import Bool

        self.rig, self.graph, self.watcher, self.rng = rig, graph, watcher, rng
        self.broken = Broken()
        self.begun: set[int] = set()  # episodes whose first observation was seen
        self.stepped: set[tuple[int, int]] = set()
        self.ends: list[str] = []  # of episodes
        self.moves = 0
        self.rests: list[tuple[str, int, int]] = []  # why, from when to when nothing may have moved
        self.presses: list[tuple[int, int]] = []  # of emergency stops that the node could hear, and of their release
        self._button = watcher.node.create_publisher(Bool, EMERGENCY_TOPIC, 10)
        self._pressed = Bool(data=True)
        watcher.on_message = self._hear

    def _hear(self, topic: str, message: Any) -> None:
        if topic == "observation" and message.step == 0 and message.refusal == 0:
            self.begun.add(message.episode)
        elif topic == "command" and message.kind == 0:
            self.moves += 1
        elif topic == "episode":
            self.ends.append(f"{Outcome(message.outcome).name.lower()}: {message.reason}".removesuffix(": "))
        elif topic == "step":
            self.stepped.add((message.episode, message.step))

    @property
    def plant(self) -> str:
        """What the plant says of itself."""
        return self.watcher.states.get("rig", "")

    def wait_for_move(self) -> None:
        """Wait for the next command to move, and a random while into it."""
        before = self.moves
        self.watcher.wait("a move", lambda: self.moves > before)
        time.sleep(float(self.rng.random()) * (0.1 if self.rig.node_owns_devices else 0.6))

    def wait_for_slow_move(self) -> None:
        """Wait for a move that goes on, unless it is stopped, for longer than a stop may take."""
        for _ in range(SLOW_TRIES):
            self.rig.slow_down()
            if self._move_comes():
                time.sleep(float(self.rng.uniform(0.1, 0.4)))
                return
            self.consent("a slow way to a start, which took longer than moves may")
        raise Stalled(f"no slow move came: {self.watcher.status}")

    def _move_comes(self) -> bool:
        """Whether a move begins before the plant says that it cannot."""
        before = self.moves
        self.wait_at_most(60.0, lambda: self.moves > before or self.plant == "FAULT")
        return self.moves > before

    def stay(self, why: str, begun_ns: int) -> None:
        """Watch that nothing moves from a moment on, until some time from now."""
        time.sleep(self.rig.grace_seconds + STILL_SECONDS)
        self.rests.append((why, begun_ns, time.time_ns()))

    def wait_at_most(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait for something that need not come, and return whether it did."""
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def stop_by_service(self) -> None:
        """Press the emergency stop."""
        from std_srvs.srv import SetBool

        self.wait_for_slow_move()
        pressed = time.time_ns()
        self.watcher.call(SetBool, "emergency_stop", data=True)
        self.stay("emergency stop by service", time.time_ns())
        self.presses.append((pressed, time.time_ns()))

    def stop_by_topic(self) -> None:
        """Press the emergency button."""
        self.wait_for_slow_move()
        pressed = time.time_ns()
        self._button.publish(self._pressed)
        self.watcher.wait("the stop", lambda: self.plant == "EMERGENCY_STOP")
        self.stay("emergency stop by topic", time.time_ns())
        self.presses.append((pressed, time.time_ns()))

    def pause(self) -> None:
        """Pause."""
        from std_srvs.srv import Trigger

        self.watcher.call(Trigger, "pause")
        self.watcher.wait("the pause", lambda: self.watcher.states.get("arbiter") == "PAUSED")
        self.stay("pause", time.time_ns())

    def push_in_pause(self) -> None:
        """Pause, and have somebody else move an axis."""
        self.pause()
        self.rig.push()

    def freeze_arbiter(self) -> None:
        """Let commands cease."""
        self.graph.signal("arbiter", SIGSTOP)
        if self.wait_at_most(MISBEHAVING_SECONDS, lambda: self.plant in ("HOLDING", *RESTING)):
            self.stay("commands ceased", time.time_ns())
        self.graph.signal("arbiter", SIGCONT)

    def freeze_node(self) -> None:
        """Halt the rig node for a while."""
        self.graph.signal("rig", SIGSTOP)
        time.sleep(float(self.rng.uniform(0.1, 3.0)))
        self.graph.signal("rig", SIGCONT)

    def stop_frozen_node(self) -> None:
        """Press the button while the rig node is halted."""
        self.wait_for_slow_move()
        self.graph.signal("rig", SIGSTOP)
        self._button.publish(self._pressed)
        time.sleep(float(self.rng.uniform(0.1, 1.0)))
        self.graph.signal("rig", SIGCONT)
        self.watcher.wait("the stop", lambda: self.plant == "EMERGENCY_STOP")
        self.stay("emergency stop of a frozen node", time.time_ns())

    def kill_node(self) -> None:
        """End the rig node as a crash does; it is started again."""
        self.graph.kill("rig")
        time.sleep(0.5)  # what it said last is still on its way
        self.watcher.states.pop("rig", None)
        self.watcher.wait("the plant", lambda: "rig" in self.watcher.states)

    def misbehave(self, word: str) -> None:
        """Break the devices until the plant says so, or for a while where it lives with that."""
        self.rig.break_it(word)
        seconds = MISBEHAVING_SECONDS if word != "server frozen" else float(self.rng.uniform(0.2, 4.0))
        faulted = self.wait_at_most(seconds, lambda: self.plant in RESTING)
        if word == "server frozen":
            self.rig.mend()  # what was sent to it while it was frozen comes now
            faulted = self.wait_at_most(2.0, lambda: self.plant in RESTING)
        if faulted and word not in ("unplugged", "server killed"):  # which no stop reaches: see below
            self.stay(f"fault: {word}", time.time_ns())

    def go_on(self, fault: str) -> None:
        """Note what the plant says, and let the loop go on."""
        self.broken.plant_said[f"{fault}: {self.plant}"] += 1
        self.consent(fault)

    def consent(self, fault: str) -> None:
        """Mend the rig, let a person consent, and see two steps."""
        from std_srvs.srv import SetBool, Trigger

        self.rig.mend()
        end = time.monotonic() + 60.0
        before = self.watcher.steps
        while self.watcher.steps < before + 2:
            if time.monotonic() > end:
                raise Stalled(f"no step after {fault}: {self.watcher.status}")
            self.graph.restart_dead()
            if self.plant == "EMERGENCY_STOP":
                self.watcher.call(SetBool, "emergency_stop", data=False)
            if self.plant == "FAULT":
                self.watcher.call(Trigger, "reset_fault")
            if self.watcher.states.get("arbiter") == "PAUSED":
                self.watcher.call(Trigger, "resume")
            self.wait_at_most(0.3, lambda: self.watcher.steps >= before + 2)


COMMON: dict[str, Callable[[Scene], None]] = {
    "stop by service": Scene.stop_by_service,
    "stop by topic": Scene.stop_by_topic,
    "pause": Scene.pause,
    "pushed in a pause": Scene.push_in_pause,
    "commands cease": Scene.freeze_arbiter,
    "node frozen": Scene.freeze_node,
    "stop of a frozen node": Scene.stop_frozen_node,
    "node killed": Scene.kill_node,
}


def attack(
    name: str, count: int, seed: int, folder: Path | None = None, faults: Sequence[str] = (), progress: bool = False
) -> Broken:
    """Break one rig so many times, by every fault, or by those named, in turn and at random moments."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="lift-rig-faults-") as made:
            return attack(name, count, seed, Path(made), faults, progress)
    rig = RIGS[name](folder)
    try:
        return _attack(rig, count, seed, folder, faults or (*COMMON, *rig.words), progress)
    finally:
        rig.close()


def write_scenario(folder: Path, content: dict[str, Any]) -> str:
    """Write a scenario and return its name."""
    path = folder / "scenario.yaml"
    path.write_text(json.dumps(content))  # which is YAML too
    return str(path)


def _attack(rig: AnyRig, count: int, seed: int, folder: Path, names: Sequence[str], progress: bool) -> Broken:
    rng = generator(seed, "rig faults")
    scenario = write_scenario(folder, rig.scenario())
    options = GraphOptions(scenario, folder / "run", seed=seed, episodes=0, p=0.0, train_after=0, parameters=PARAMETERS)
    with (
        Progress(count, f"breaking {rig.name}", unit="faults", enabled=progress) as bar,
        living(folder, options, rig.environment) as (graph, watcher),
    ):
        scene = Scene(rig, graph, watcher, rng)
        broken = scene.broken
        for turn in range(count):
            if turn % len(names) == 0:
                order = rng.permutation(len(names))
            fault = names[order[turn % len(names)]]
            try:
                scene.wait_for_move()
                broken.faults[fault] += 1
                ended = len(scene.ends)
                if fault in COMMON:
                    COMMON[fault](scene)
                else:
                    scene.misbehave(fault)
                scene.go_on(fault)
                broken.recorded[fault] += scene.ends[ended:]
            except Stalled as stall:
                broken.stalls.append(f"{fault}: {stall}")
                break
            bar.advance(1)
    broken.tracebacks = graph.tracebacks()
    _judge(scene, rig.trace())
    return broken


def _judge(scene: Scene, trace: Trace) -> None:
    """Compare what was promised and recorded with what the axes did."""
    rig, broken = scene.rig, scene.broken
    for why, begun, ended in scene.rests:
        still_from = begun + rig.grace_seconds * 1e9
        if (span := trace.span(still_from, ended)) > rig.tolerance / 2:
            broken.moved.append(f"{rig.name}: {span:.3g} after {why}, {(ended - begun) / 1e9:.1f} s watched")
    broken.stops = len(scene.presses)
    for pressed, released in scene.presses:
        if trace.last_change(pressed - MOVING_NS, pressed) > 0:
            broken.coasts.append(trace.last_change(pressed, released))
    truth = examine(scene.graph.run, trace, rig.tolerance)
    broken.untrue += truth.untrue
    broken.unwatched = truth.unwatched
    broken.episodes, broken.steps, broken.outcomes = truth.episodes, truth.steps, truth.outcomes
    broken.lost += [f"episode {number} has no record" for number in sorted(scene.begun - truth.numbers)]
    broken.lost += [f"step {step} of episode {number}" for number, step in sorted(scene.stepped - truth.recorded)]


def main() -> int:
    """Break rigs, and return 1 where anything must not be."""
    parser = argparse.ArgumentParser(prog="python -m benchmark.attacks.rig_faults", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="faults in all (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="what moments and faults are drawn from (default: 0)")
    parser.add_argument("--rigs", nargs="+", choices=tuple(RIGS), default=tuple(RIGS), help="default: all")
    parser.add_argument("--faults", nargs="+", default=(), help="names of faults (default: all of each rig)")
    parser.add_argument("--write", action="store_true", help="put what came of it into docs/results.md")
    given = parser.parse_args()
    bad, each = 0, given.count // len(given.rigs)
    rows: list[tuple[object, ...]] = []
    with ProcessPoolExecutor(len(given.rigs), mp_context=get_context("spawn")) as pool:
        begun = {name: pool.submit(attack, name, each, given.seed, None, given.faults) for name in given.rigs}
        for name, future in begun.items():
            broken = future.result()
            print(f"{name}: {broken}", flush=True)
            bad += broken.bad
            if given.write:
                rows.append(broken.row(name, given.seed))
    if given.write:
        replace_section(RESULTS, "rig-faults", markdown_table(TITLES, rows) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
