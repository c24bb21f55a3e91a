"""Things break while real processes collect: nothing unrecorded moves, nothing recorded is lost, all goes on."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_graph import LiveGraph, live_graph, recorded, write_model
from std_srvs.srv import SetBool, Trigger

import lift_ros.msg as msg
from lift_ros.collection.records import Outcome, Rejection, Source
from lift_ros.graph import qos
from lift_ros.scenario import load_scenario

SCENARIO = "po-none-d2"
DEADLINE = 2.0  # of logging policy and augmentor; nobody alive is that late, and a killed one is noticed soon
PARAMETERS: dict[str, dict[str, Any]] = {
    "recorder": {},
    "positioning_simulator": {"scenario": SCENARIO, "watchdog": 0.5, "step_time": 0.02},
    "logging_policy": {"scenario": SCENARIO},
    "augmentor": {"scenario": SCENARIO},
    "arbiter": {
        "scenario": SCENARIO,
        "p": 0.3,
        "guard_enabled": False,
        "plant_deadline": 30.0,
        "logging_policy_deadline": DEADLINE,
        "augmentor_deadline": DEADLINE,
        "repeat_period": 0.2,
    },
}


GARBAGE = 10**6  # an episode and a step that no arbiter reaches


class Collecting:
    """A graph that collects without end, and how to break and mend it."""

    def __init__(self, graph: LiveGraph) -> None:
        self.graph = graph
        self.run = graph.folder / "run"
        model = graph.folder / "model.safetensors"
        self.model_hash = write_model(model, 2, 2, load_scenario(SCENARIO).action_radius, pull=0.05)
        self.parameters = {name: dict(values) for name, values in PARAMETERS.items()}
        self.parameters["recorder"]["run"] = str(self.run)
        self.parameters["augmentor"]["model"] = str(model)

    def start(self, executable: str, **changes: Any) -> None:
        self.graph.start(executable, **{**self.parameters[executable], **changes})

    def restart(self, executable: str, **changes: Any) -> None:
        """Put another process in the place of one, with other parameters."""
        self.graph.processes[executable].kill()
        self.start(executable, **changes)

    def heal(self) -> None:
        """Start what is not running, and wait until steps are made by both policies."""
        for executable in self.parameters:
            process = self.graph.processes.get(executable)
            if process is None or process.process.poll() is not None:
                self.start(executable)
        self.graph.wait_for_steps()
        self.wait_for_augmentation()

    def wait_for_augmentation(self) -> None:
        before = len(self.graph.seen[qos.STEP])
        self.graph.wait(
            "an augmented step",
            lambda: any(step.source == Source.AUGMENTOR for step in self.graph.seen[qos.STEP][before:]),
        )

    def last(self, topic: str) -> Any:
        return self.graph.seen[topic][-1]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collecting]:
    with live_graph(tmp_path_factory.mktemp("failures")) as graph:
        yield Collecting(graph)


@pytest.fixture
def collecting(shared: Collecting) -> Collecting:
    """The graph of all tests of this file, sound again whatever the test before has done to it."""
    shared.heal()
    return shared


def unrecorded_moves(collecting: Collecting) -> list[tuple[int, int]]:
    """Return moves that were commanded although the step before is not in the bag."""
    kept = {(step.episode, step.index) for episode in recorded(collecting.run) for step in episode.steps}
    moves = [c for c in collecting.graph.seen[qos.COMMAND] if c.kind == msg.Command.KIND_MOVE]
    real = [(move.episode, move.step) for move in moves if 0 < move.step < GARBAGE > move.episode]
    return [(episode, step) for episode, step in real if (episode, step - 1) not in kept]


def test_killed_augmentor_lets_the_loop_go_on_and_rejoins(collecting: Collecting) -> None:
    graph = collecting.graph
    graph.processes["augmentor"].kill()
    graph.wait(
        "steps without the augmentor",
        lambda: all(len(step.augmentor_proposal) == 0 for step in graph.seen[qos.STEP][-5:]),
    )
    graph.wait_for_steps(5)
    assert collecting.last(qos.STEP).source == Source.LOGGING_POLICY
    collecting.start("augmentor")
    collecting.wait_for_augmentation()


def test_killed_logging_policy_aborts_the_episode_and_collecting_resumes(collecting: Collecting) -> None:
    graph = collecting.graph
    graph.wait("an episode under way", lambda: collecting.last(qos.STEP).step >= 1)
    aborted = len([e for e in graph.seen[qos.EPISODE] if e.outcome == Outcome.ABORTED])
    graph.processes["logging_policy"].kill()
    graph.wait(
        "the arbiter to wait for the logging policy", lambda: graph.state("arbiter") == "WAITING_FOR_LOGGING_POLICY"
    )
    assert len([e for e in graph.seen[qos.EPISODE] if e.outcome == Outcome.ABORTED]) <= aborted + 1
    number = collecting.last(qos.QUERY).episode
    collecting.start("logging_policy")
    graph.wait("the episode that waited", lambda: collecting.last(qos.STEP).episode >= number)
    assert all(episode.steps > 0 for episode in graph.seen[qos.EPISODE])


def test_killed_recorder_stops_collecting_before_unrecorded_steps_are_made(collecting: Collecting) -> None:
    graph = collecting.graph
    graph.wait("an episode under way", lambda: collecting.last(qos.STEP).step >= 1)
    graph.processes["recorder"].kill()
    graph.wait("the arbiter to wait for the recorder", lambda: graph.state("arbiter") == "WAITING_FOR_RECORDER")
    graph.wait("the plant to hold", lambda: graph.state("positioning_simulator") in ("HOLDING", "HELD", "READY"))
    assert unrecorded_moves(collecting) == []
    under_way = collecting.last(qos.STEP).episode
    collecting.start("recorder")
    graph.wait("the next episode", lambda: collecting.last(qos.STEP).episode > under_way)
    graph.wait_for_episodes()
    episodes = recorded(collecting.run)
    assert [episode.index for episode in episodes] == list(range(len(episodes)))


def test_killed_arbiter_makes_the_plant_hold_and_a_new_one_takes_the_next_number(collecting: Collecting) -> None:
    graph = collecting.graph
    graph.wait("an episode under way", lambda: collecting.last(qos.STEP).step >= 3)
    graph.processes["arbiter"].kill()
    under_way = collecting.last(qos.STEP).episode
    graph.wait("the plant to hold", lambda: graph.state("positioning_simulator") in ("HOLDING", "READY"))
    collecting.start("arbiter")
    graph.wait("the next episode that moves", lambda: collecting.last(qos.STEP).episode > under_way)
    graph.wait_for_episodes()
    episodes = recorded(collecting.run)
    assert [episode.index for episode in episodes] == list(range(len(episodes)))
    assert len(episodes[under_way].steps) >= 4
    # A new arbiter that is quicker than the 2 s after which the old one counts as gone is not heeded at first: what it
    # begins is aborted before the first move, and tried again.
    moved = [episode for episode in episodes[under_way + 1 :] if episode.steps]
    assert moved[0].outcome is Outcome.REACHED
    assert all(episode.outcome is Outcome.ABORTED for episode in episodes[under_way + 1 : moved[0].index])


def test_killed_plant_aborts_and_collecting_resumes(collecting: Collecting) -> None:
    collecting.restart("arbiter", plant_deadline=1.0)
    collecting.heal()
    graph = collecting.graph
    graph.wait("an episode under way", lambda: collecting.last(qos.STEP).step >= 1)
    episodes = len(graph.seen[qos.EPISODE])
    graph.processes["positioning_simulator"].kill()
    graph.wait(
        "the episode to be aborted",
        lambda: any(e.outcome == Outcome.ABORTED for e in graph.seen[qos.EPISODE][episodes:]),
    )
    graph.wait("the arbiter to wait for the plant", lambda: graph.state("arbiter") == "WAITING_FOR_PLANT")
    collecting.start("positioning_simulator")
    graph.wait_for_steps()
    collecting.restart("arbiter")


def test_slow_augmentor_delays_no_step_beyond_the_deadline(collecting: Collecting) -> None:
    graph = collecting.graph
    collecting.restart("augmentor", delay=30.0)
    collecting.restart("arbiter", augmentor_deadline=0.05)
    graph.wait("the augmentor to be late", lambda: graph.number("arbiter", "deadlines missed: augmentor") >= 1)
    before = len(graph.seen[qos.STEP])
    graph.wait_for_steps(10)
    later = graph.seen[qos.STEP][before:]
    assert all(step.source == Source.LOGGING_POLICY for step in later)
    assert {step.rejection for step in later} <= {Rejection.NONE, Rejection.MISSING, Rejection.LATE, Rejection.STALE}
    # Ten steps went by although one answer of the augmentor takes longer than all of them together.
    first, last = later[0].header.stamp, later[9].header.stamp
    assert (last.sec + last.nanosec * 1e-9) - (first.sec + first.nanosec * 1e-9) < 30.0
    collecting.restart("augmentor")
    collecting.restart("arbiter")


def test_corrupt_model_leaves_the_old_one_serving(collecting: Collecting, tmp_path: Path) -> None:
    graph = collecting.graph
    bad = tmp_path / "bad.safetensors"
    sha256 = write_model(bad, 2, 2, load_scenario(SCENARIO).action_radius, pull=1.0)
    bad.write_bytes(bad.read_bytes()[:-3])
    publisher = graph.node.create_publisher(msg.Model, qos.MODEL, qos.LATCHED)
    publisher.publish(msg.Model(path=str(bad), sha256=sha256, algorithm="pull"))
    graph.wait("the model to be refused", lambda: graph.state("augmentor") == "BAD_MODEL")
    collecting.wait_for_augmentation()
    assert collecting.last(qos.STEP).model_hash in ("", collecting.model_hash)
    used = {step.model_hash for step in graph.seen[qos.STEP] if step.source == Source.AUGMENTOR}
    assert used == {collecting.model_hash}
    graph.node.destroy_publisher(publisher)


def test_garbage_on_any_topic_is_dropped_counted_and_reported(collecting: Collecting) -> None:
    graph = collecting.graph
    vector, odd = array("d", [0.1, 0.1]), array("d", [0.1] * 7)
    nan = array("d", [float("nan"), 0.0])
    future, foreign = {"episode": collecting.last(qos.STEP).episode, "step": GARBAGE}, {"episode": GARBAGE, "step": 0}
    garbage: dict[str, list[Any]] = {
        qos.OBSERVATION: [
            msg.Observation(values=odd, **foreign),
            msg.Observation(values=nan, **foreign),
            msg.Observation(values=vector, refusal=99, **foreign),
            msg.Observation(values=vector, **foreign),
            msg.Observation(values=vector, **future),
        ],
        qos.PROPOSAL: [
            msg.Proposal(source=9, action=vector, **foreign),
            msg.Proposal(source=1, action=vector, **foreign),
            msg.Proposal(source=1, action=vector, **future),
        ],
        qos.COMMAND: [
            msg.Command(kind=9, **foreign),
            msg.Command(kind=0, action=vector, **foreign),
            msg.Command(kind=0, action=vector, **future),
        ],
        qos.QUERY: [msg.Query(values=odd, **foreign), msg.Query(values=nan, **foreign), msg.Query(mode=9, **foreign)],
        qos.STEP: [
            msg.Step(observation=nan, source=1, **foreign),
            msg.Step(observation=vector, action=vector, source=1, **foreign),
        ],
        qos.EPISODE: [msg.Episode(episode=GARBAGE, outcome=9), msg.Episode(episode=GARBAGE, outcome=1, steps=3)],
        qos.RECEIPT: [msg.Receipt(kind=9), msg.Receipt(kind=1, **foreign)],
    }
    listeners = {
        qos.OBSERVATION: ("arbiter", ["malformed observation", "observation of a stranger"]),
        qos.PROPOSAL: ("arbiter", ["malformed proposal", "proposal of a stranger"]),
        qos.COMMAND: ("positioning_simulator", ["malformed command", "command of a stranger"]),
        qos.QUERY: ("logging_policy", ["malformed query"]),
        qos.STEP: ("recorder", ["malformed step", "step of a stranger"]),
        qos.EPISODE: ("recorder", ["malformed episode"]),
        qos.RECEIPT: ("arbiter", ["malformed receipt"]),
    }
    assert set(garbage) == set(listeners)
    for topic, messages in garbage.items():
        graph.publish(topic, *messages)
    for executable, reasons in listeners.values():
        for reason in reasons:
            graph.wait(
                f"{executable} to report {reason}",
                lambda name=executable, text=reason: graph.number(name, f"drops: {text}") >= 1,
            )
    collecting.wait_for_augmentation()


def test_plant_refuses_whatever_another_arbiter_commands(collecting: Collecting) -> None:
    graph = collecting.graph
    graph.call(Trigger, qos.STOP)
    graph.wait("the arbiter to stop", lambda: graph.state("arbiter") == "WAITING_FOR_START")
    stranger = 4_000_000
    radius = load_scenario(SCENARIO).action_radius
    moves = [[9 * radius, 0.0], [float("nan"), 0.0], [0.0], [0.5 * radius, 0.0]]
    graph.publish(
        qos.COMMAND,
        msg.Command(kind=msg.Command.KIND_RESET, episode=stranger, seed=1),
        *(msg.Command(episode=stranger, step=0, action=array("d", move)) for move in moves),
    )
    answers = lambda: [o for o in graph.seen[qos.OBSERVATION] if o.episode == stranger]  # noqa: E731
    graph.wait("five answers", lambda: len(answers()) == 5)
    assert {answer.refusal for answer in answers()} == {msg.Observation.REFUSAL_OTHER_ARBITER}
    assert all(answer.step == 0 for answer in answers())
    graph.call(Trigger, qos.START)
    graph.wait_for_steps()


def test_emergency_stop_latches_and_collecting_goes_on_after_release_and_resume(collecting: Collecting) -> None:
    graph = collecting.graph
    assert graph.call(SetBool, qos.EMERGENCY_STOP, SetBool.Request(data=True)).success
    graph.wait("the plant to be stopped", lambda: graph.state("positioning_simulator") == "EMERGENCY_STOP")
    graph.wait("the arbiter to pause", lambda: graph.state("arbiter") == "PAUSED")
    steps = len(graph.seen[qos.STEP])
    graph.call(Trigger, qos.RESUME)
    graph.wait("the arbiter to pause again", lambda: graph.state("arbiter") == "PAUSED")
    assert len(graph.seen[qos.STEP]) == steps
    graph.call(SetBool, qos.EMERGENCY_STOP, SetBool.Request(data=False))
    graph.wait("the plant to be released", lambda: graph.state("positioning_simulator") == "READY")
    assert len(graph.seen[qos.STEP]) == steps
    graph.call(Trigger, qos.RESUME)
    graph.wait_for_steps()


def test_pause_and_resume_leave_the_episode_whole(collecting: Collecting) -> None:
    graph = collecting.graph
    graph.call(Trigger, qos.PAUSE)
    graph.wait("the arbiter to pause", lambda: graph.state("arbiter") == "PAUSED")
    paused = collecting.last(qos.STEP).episode
    graph.call(Trigger, qos.RESUME)
    graph.wait("the next episode", lambda: collecting.last(qos.STEP).episode > paused)
    assert recorded(collecting.run)[paused].outcome is Outcome.REACHED
