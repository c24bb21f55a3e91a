"""The arbiter's node alone: what it makes of messages, services and clocks; its decisions are tested without ROS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from lone_node import Kept, lone_node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

import lift_ros.msg as msg
from lift_ros.collection.exchange import Failed, Observation, Proposal, Ready, Receipt
from lift_ros.collection.records import Source
from lift_ros.collection.run_control import Situation
from lift_ros.errors import UserError
from lift_ros.messages.records import CommandKind
from lift_ros.nodes.arbiter_node import SERVICES, ArbiterNode
from lift_ros.nodes.diagnostics import Status

VALUES = np.array([0.5, -0.25])
ACTION = np.array([0.01, 0.0])
NOTHING = np.empty(0)
LOGGING, AUGMENTOR = Source.LOGGING_POLICY, Source.AUGMENTOR


class Conversation:
    """An arbiter whose partners are played by the test."""

    def __init__(self, node: ArbiterNode) -> None:
        self.node = node
        self.moved = ACTION
        self.plant, self.policies = Kept(msg.Command), Kept(msg.Query)
        self.steps, self.episodes = Kept(msg.Step), Kept(msg.Episode)
        node._outbox.publishers = {
            "plant": self.plant,
            "policies": self.policies,
            "steps": self.steps,
            "episodes": self.episodes,
        }

    @property
    def status(self) -> Status:
        return self.node.diagnostics.status

    def ready(self, episode: int = 0, token: str = "first") -> None:
        self.node._on_ready(Ready(episode, token))

    def observe(self, episode: int, step: int, **changes: Any) -> None:
        self._note_moves()
        executed = self.moved if step and not changes.get("refusal") else NOTHING
        changes = {"reward": -1.0, "executed": executed, **changes}
        self.node._on_observation(Observation(episode, step, VALUES, VALUES, **changes))

    def propose(self, episode: int, step: int, source: Source = LOGGING, action: Any = ACTION) -> None:
        self.node._on_proposal(Proposal(episode, step, source, action))

    def confirm(self, episode: int, step: int | None) -> None:
        self.node._on_receipt(Receipt(episode, step))

    def commands(self) -> list[tuple[str, int, int]]:
        """Return what the plant was told since it was last asked."""
        self._note_moves()
        return [(CommandKind(each.kind).name, each.episode, each.step) for each in self.plant.take()]

    def _note_moves(self) -> None:
        for each in self.plant.messages:
            self.moved = np.array(each.action) if each.kind == CommandKind.MOVE else self.moved

    def queries(self) -> list[tuple[int, int]]:
        return [(query.episode, query.step) for query in self.policies.take()]

    def begin(self, episode: int = 0) -> None:
        """Come to the first question of an episode."""
        self.ready(episode)
        self.observe(episode, 0)

    def first_step(self, episode: int = 0) -> None:
        """Come to the second question, with the first step confirmed."""
        self.begin(episode)
        self.propose(episode, 0)
        self.observe(episode, 1)
        self.confirm(episode, 0)
        self.commands()
        self.queries()

    def later(self, seconds: float) -> None:
        """Let time pass for the arbiter's clocks."""
        control = self.node._control
        passed = int(seconds * 1e9)
        control.since = {party: since - passed for party, since in control.since.items()}
        control._repeated_ns -= passed
        self.node._tick()

    def call(self, service: str) -> None:
        answer = self.node._obey(*SERVICES[service], Trigger.Request(), Trigger.Response())
        assert answer.success
        assert answer.message


def conversation(**parameters: Any) -> Any:
    given = {"scenario": "po-none-d2", "p": 0.0, "plant_deadline": 100.0, "logging_policy_deadline": 100.0}
    return lone_node(ArbiterNode, **{**given, "augmentor_deadline": 100.0, "repeat_period": 10.0, **parameters})


@pytest.fixture
def talk() -> Iterator[Conversation]:
    with conversation() as node:
        yield Conversation(node)


def test_nothing_is_commanded_before_the_recorder_is_ready(talk: Conversation) -> None:
    talk.later(1000.0)
    assert talk.commands() == []
    assert talk.status is Status.WAITING_FOR_RECORDER
    talk.ready(7)
    assert talk.commands() == [("RESET", 7, 0)]


def test_a_move_waits_for_the_receipt_of_the_step_before(talk: Conversation) -> None:
    talk.begin()
    talk.propose(0, 0)
    assert talk.commands() == [("RESET", 0, 0), ("MOVE", 0, 0)]
    talk.observe(0, 1)
    assert talk.queries() == [(0, 0), (0, 1)]
    talk.propose(0, 1)
    assert talk.commands() == []
    talk.confirm(0, 0)
    assert talk.commands() == [("MOVE", 0, 1)]


def test_the_record_is_repeated_while_no_receipt_comes_and_nothing_moves(talk: Conversation) -> None:
    talk.begin()
    talk.propose(0, 0)
    talk.observe(0, 1)
    talk.propose(0, 1)
    talk.commands()
    for _ in range(3):
        talk.later(11.0)
    assert [(step.episode, step.step) for step in talk.steps.take()] == [(0, 0)] * 4
    assert talk.commands() == []
    assert talk.status is Status.WAITING_FOR_RECORDER
    assert talk.node.diagnostics.counts["repeats"] == 3


def test_pause_withholds_the_next_move_and_resume_makes_it(talk: Conversation) -> None:
    talk.first_step()
    talk.call("pause")
    talk.propose(0, 1)
    assert talk.commands() == [("HOLD", 0, 1)]
    assert talk.status is Status.PAUSED
    talk.later(1000.0)
    assert talk.commands() == []
    assert talk.episodes.take() == []
    talk.call("resume")
    assert talk.commands() == [("MOVE", 0, 1)]
    assert talk.status is Status.RUNNING


def test_stop_ends_the_episode_and_start_begins_the_next(talk: Conversation) -> None:
    talk.first_step()
    talk.call("stop")
    (ended,) = talk.episodes.take()
    assert ended.reason == "stopped by the operator"
    talk.confirm(0, None)
    assert talk.status is Status.WAITING_FOR_START
    talk.commands()
    talk.call("start")
    assert talk.commands() == [("RESET", 1, 0)]


def test_without_autostart_it_waits_for_start() -> None:
    with conversation(autostart=False) as node:
        talk = Conversation(node)
        talk.ready()
        assert talk.commands() == []
        assert talk.status is Status.WAITING_FOR_START
        talk.call("start")
        assert talk.commands() == [("RESET", 0, 0)]


def test_new_recorder_makes_the_arbiter_give_up_its_episode_and_go_on_where_it_says(talk: Conversation) -> None:
    talk.first_step()
    talk.propose(0, 1)
    talk.observe(0, 2)
    talk.commands()
    talk.ready(1, token="second")
    assert talk.commands() == [("HOLD", 0, 2), ("HOLD", 0, 2), ("RESET", 1, 0)]
    assert talk.episodes.take() == []
    talk.later(200.0)
    assert talk.steps.take()[-1].episode == 0
    talk.later(200.0)
    assert talk.steps.take() == []


def test_failed_recorder_stops_collecting_until_it_is_ready_again(talk: Conversation) -> None:
    talk.first_step()
    talk.node._on_receipt(Failed("the disk is full"))
    talk.later(1000.0)
    assert ("MOVE", 0, 1) not in talk.commands()
    assert talk.status is Status.WAITING_FOR_RECORDER
    assert "disk is full" in talk.node.diagnostics.detail
    talk.ready(1, token="second")
    assert talk.commands() == [("RESET", 1, 0)]


def test_what_does_not_belong_on_a_topic_of_the_recorder_is_not_heard_there(talk: Conversation) -> None:
    talk.first_step()
    talk.node._on_receipt(Ready(9, "somebody"))
    talk.node._on_ready(Failed("nobody"))
    talk.propose(0, 1)
    assert talk.commands() == [("MOVE", 0, 1)]


def test_run_is_done_after_its_episodes_and_a_restarted_arbiter_knows() -> None:
    with conversation(episodes=3, exit_when_done=True) as node:
        talk = Conversation(node)
        talk.ready(3)
        assert talk.commands() == []
        assert talk.status is Status.DONE
        assert node.ended.done()


def test_observations_of_another_size_are_dropped_and_do_not_abort(talk: Conversation) -> None:
    talk.first_step()
    talk.propose(0, 1)
    talk.node._on_observation(Observation(0, 2, np.zeros(3)))
    assert talk.episodes.take() == []
    assert talk.node.diagnostics.drops["malformed observation"] == 1
    talk.observe(0, 2)
    assert talk.queries() == [(0, 2)]


def test_a_plant_that_answers_its_reset_with_another_size_again_and_again_is_given_up(talk: Conversation) -> None:
    talk.ready(0)
    talk.commands()
    for _ in range(2):
        talk.node._on_observation(Observation(7, 0, np.zeros(3)))  # a stranger's
        talk.node._on_observation(Observation(0, 0, np.zeros(3)))
    assert not talk.node.ended.done()
    talk.node._on_observation(Observation(0, 0, np.zeros(3)))
    with pytest.raises(UserError, match=r"the plant observes 3 values, but scenario .* says 2"):
        talk.node.ended.result()


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (Observation(9, 2, VALUES), "other episode"),
        (Observation(0, 9, VALUES), "other step"),
        (Proposal(9, 1, LOGGING, ACTION), "other episode"),
        (Proposal(0, 9, LOGGING, ACTION), "other step"),
    ],
)
def test_what_belongs_elsewhere_is_dropped_and_reported(
    talk: Conversation, event: Observation | Proposal, reason: str
) -> None:
    talk.first_step()
    if isinstance(event, Observation):
        talk.propose(0, 1)
        talk.node._on_observation(event)
    else:
        talk.node._on_proposal(event)
    talk.node.report()
    assert talk.node.diagnostics.drops[reason] == 1
    assert talk.episodes.take() == []


def test_an_episode_in_which_the_plant_did_something_else_is_aborted(talk: Conversation) -> None:
    talk.first_step()
    talk.propose(0, 1)
    talk.observe(0, 2, executed=2 * ACTION)
    (end,) = talk.episodes.take()
    assert end.outcome == msg.Episode.OUTCOME_ABORTED
    assert end.steps == 1
    assert "executed [0.02, 0.0], but [0.01, 0.0] was commanded" in end.reason


def test_all_that_is_sent_carries_the_token_of_this_start(talk: Conversation) -> None:
    talk.begin()
    talk.propose(0, 0)
    talk.observe(0, 1, terminated=True)
    token = talk.node._outbox.run
    sent = [*talk.plant.messages, *talk.policies.messages, *talk.steps.messages, *talk.episodes.messages]
    assert len(sent) >= 5
    assert {each.header.frame_id for each in sent} == {token}
    with conversation(graph="a graph") as other:
        assert other._outbox.run.startswith("a graph-")
        assert other._outbox.run != token


def test_augmentor_that_missed_a_deadline_is_not_waited_for_until_it_speaks() -> None:
    with conversation(p=1.0, augmentor_deadline=1.0, guard_enabled=False) as node:
        talk = Conversation(node)
        talk.begin()
        talk.propose(0, 0)
        assert ("MOVE", 0, 0) not in talk.commands()
        talk.later(2.0)
        assert talk.commands() == [("MOVE", 0, 0)]
        talk.observe(0, 1)
        talk.confirm(0, 0)
        talk.propose(0, 1)
        assert talk.commands() == [("MOVE", 0, 1)]  # at once
        talk.propose(0, 0, AUGMENTOR)  # late, but it is back
        talk.observe(0, 2)
        talk.confirm(0, 1)
        talk.propose(0, 2)
        assert talk.commands() == []
        talk.propose(0, 2, AUGMENTOR, 2 * ACTION)
        assert talk.commands() == [("MOVE", 0, 2)]
        talk.observe(0, 3)
        steps = talk.steps.take()
        assert [step.source for step in steps] == [LOGGING, LOGGING, AUGMENTOR]
        assert node.diagnostics.counts["deadlines missed: augmentor"] == 1


def test_parameters_set_at_run_time_reach_the_run(talk: Conversation) -> None:
    talk.begin()
    talk.node.set_parameters([Parameter("repeat_period", value=0.05), Parameter("p", value=1.0)])
    settings = talk.node._control.settings
    assert (settings.repeat_period, settings.p) == (0.05, 1.0)
    talk.later(0.06)
    assert talk.queries() == [(0, 0), (0, 0)]


def test_every_situation_of_a_run_is_a_status() -> None:
    assert {situation.name for situation in Situation} <= {status.name for status in Status}


def test_the_receipt_of_an_episode_ends_the_repeats_of_its_steps(talk: Conversation) -> None:
    talk.first_step()
    talk.propose(0, 1)
    talk.observe(0, 2, terminated=True)
    talk.confirm(0, None)  # that of step 1 was lost
    assert not talk.node._outbox.records


def test_end_of_the_process_holds_the_plant_and_has_the_episode_recorded(talk: Conversation) -> None:
    talk.first_step()
    talk.node.finish()
    (ended,) = talk.episodes.take()
    assert ended.reason == "the arbiter was ended"
    assert talk.commands() == [("HOLD", 0, 1)]
    assert not talk.node.finished()
    talk.confirm(0, None)
    assert talk.node.finished()
    assert talk.commands() == []


def test_latencies_are_reported(talk: Conversation) -> None:
    talk.first_step()
    talk.propose(0, 1)
    values = {item.key for item in talk.node.diagnostics.message().values}
    assert {"step p50 [ms]", "plant p99 [ms]", "logging policy max [ms]", "recorder p50 [ms]"} <= values
