from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pytest

from lift_ros.collection.arbiter import TRANSITIONS, Arbiter, AtOnce
from lift_ros.collection.episode_under_way import EpisodeUnderWay
from lift_ros.collection.exchange import (
    Ask,
    Deadline,
    Drop,
    Event,
    Halt,
    Hold,
    Instruction,
    Move,
    Observation,
    Party,
    Proposal,
    Receipt,
    RecordEpisode,
    RecordStep,
    Refusal,
    Reset,
    Start,
    State,
    Stop,
)
from lift_ros.collection.records import Mode, Outcome, Rejection, Source
from lift_ros.errors import UserError
from lift_ros.positioning.problem import Limits
from lift_ros.seeds import episode_seed, generator

Kind = TypeVar("Kind")
LOGGING, AUGMENTOR = Source.LOGGING_POLICY, Source.AUGMENTOR
SLOW, FAST = np.array([0.1, 0.0]), np.array([0.0, 0.4])
BOX = (np.full(2, -1.0), np.full(2, 1.0))
EPISODE, RUN_SEED = 3, 42


class Rig:
    """Feeds an arbiter and keeps what came out."""

    def __init__(
        self, mode: Mode = Mode.COLLECT, p: float = 1.0, budget: int = 20, receipts: bool = False, step_limit: int = 100
    ) -> None:
        self.arbiter = Arbiter(Limits(2, 2, 0.5, step_limit, BOX), require_receipts=receipts)
        self.log: list[Instruction] = []
        self.time_ns = 0
        self.start = Start(EPISODE, RUN_SEED, mode, p, budget, 5)

    def feed(self, event: Event) -> list[Instruction]:
        actions = self.arbiter.handle(event)
        self.log += actions
        return actions

    def begin(self, values: Any = (0.5, 0.5), **fields: Any) -> list[Instruction]:
        self.feed(self.start)
        return self.observe(values, **fields)

    def observe(self, values: Any = (0.5, 0.5), step: int | None = None, **fields: Any) -> list[Instruction]:
        refused = fields.get("refusal", Refusal.NONE) is not Refusal.NONE
        if step is None:
            step = self.arbiter.step + (self.arbiter.state is State.MOVING and not refused)
        values = np.array(values, dtype=float)
        moves = [each.action for each in self.log if isinstance(each, Move)]
        if step > 0 and moves and not refused:
            fields.setdefault("executed", moves[-1])
        return self.feed(Observation(EPISODE, step, values, fields.pop("position", values), **fields))

    def propose(self, source: Source, action: Any, step: int | None = None, **fields: Any) -> list[Instruction]:
        step = self.arbiter.step if step is None else step
        return self.feed(Proposal(EPISODE, step, source, np.array(action, dtype=float), **fields))

    def both(self, logging: Any = SLOW, augmentor: Any = FAST) -> list[Instruction]:
        return self.propose(LOGGING, logging) + self.propose(AUGMENTOR, augmentor)

    def deadline(self, party: Party) -> list[Instruction]:
        return self.feed(Deadline(EPISODE, self.arbiter.step, party))

    def receipt(self, step: int | None) -> list[Instruction]:
        return self.feed(Receipt(EPISODE, step))

    def only(self, kind: type[Kind]) -> Kind:
        found = [action for action in self.log if isinstance(action, kind)]
        assert len(found) == 1, f"{len(found)} of {kind.__name__}"
        return found[0]

    def last(self, kind: type[Kind]) -> Kind:
        return [action for action in self.log if isinstance(action, kind)][-1]


def kinds(actions: list[Instruction]) -> list[type[Instruction]]:
    return [type(action) for action in actions]


# The order of reset and question --------------------------------------------------------------------------------------


def test_an_episode_begins_with_the_reset_of_the_plant_alone() -> None:
    rig = Rig()
    assert rig.feed(rig.start) == [Reset(EPISODE, episode_seed(RUN_SEED, EPISODE))]
    assert rig.arbiter.waiting_for == {Party.PLANT}


def test_the_first_query_carries_reset_and_question_as_one() -> None:
    actions = Rig().begin((0.5, -0.5))
    assert kinds(actions) == [Ask]
    ask = actions[0]
    assert isinstance(ask, Ask)
    assert ask.query.handoff
    assert (ask.query.episode, ask.query.step, ask.query.seed) == (EPISODE, 0, episode_seed(RUN_SEED, EPISODE))
    assert ask.query.values.tolist() == [0.5, -0.5]


def test_after_a_step_of_the_logging_policy_there_is_no_handoff() -> None:
    rig = Rig(p=0.0)
    rig.begin()
    rig.propose(LOGGING, SLOW)
    rig.observe()
    assert not rig.last(Ask).query.handoff


def test_after_a_step_of_the_augmentor_the_same_query_that_asks_also_resets() -> None:
    rig = Rig()
    rig.begin()
    rig.both()
    assert kinds(rig.observe()) == [Ask, RecordStep]
    assert rig.last(Ask).query.handoff
    assert rig.last(Ask).query.step == 1


def test_the_policies_are_asked_before_the_step_is_put_into_its_record() -> None:
    rig = Rig(p=0.0)
    rig.begin()
    rig.propose(LOGGING, SLOW)
    ask, record = rig.observe()
    assert isinstance(ask, Ask) and isinstance(record, RecordStep)
    assert (ask.query.step, record.step.index) == (1, 0)


def test_handoff_is_raised_once_per_augmentation() -> None:
    rig = Rig(budget=1)
    rig.begin()
    rig.both()
    rig.observe()
    rig.propose(LOGGING, SLOW)
    rig.observe()
    assert [action.query.handoff for action in rig.log if isinstance(action, Ask)] == [True, True, False]


def test_a_rejected_proposal_leads_to_no_handoff() -> None:
    rig = Rig()
    rig.begin()
    rig.both(augmentor=(np.nan, 0))
    rig.observe()
    assert not rig.last(Ask).query.handoff


def test_nothing_is_asked_before_an_observation_and_nothing_commanded_before_an_answer() -> None:
    rig = Rig()
    assert kinds(rig.feed(rig.start)) == [Reset]
    assert kinds(rig.observe()) == [Ask]
    assert kinds(rig.propose(AUGMENTOR, FAST)) == []
    assert kinds(rig.propose(LOGGING, SLOW)) == [Move]


# The p-switch ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(LOGGING, AUGMENTOR), (AUGMENTOR, LOGGING)])
def test_the_order_of_answers_does_not_matter(order: tuple[Source, Source]) -> None:
    rig = Rig()
    rig.begin()
    for source in order:
        rig.propose(source, SLOW if source is LOGGING else FAST)
    assert rig.only(Move).action.tolist() == FAST.tolist()


def test_draws_come_from_the_episodes_own_stream_and_decide() -> None:
    rig = Rig(p=0.5, budget=100)
    rig.begin()
    for _ in range(30):
        rig.both()
        rig.observe()
    steps = [action.step for action in rig.log if isinstance(action, RecordStep)]
    expected = generator(episode_seed(RUN_SEED, EPISODE), "arbiter").random(30)
    assert [step.draw for step in steps] == expected.tolist()
    assert [step.source is AUGMENTOR for step in steps] == (expected <= 0.5).tolist()
    assert {LOGGING, AUGMENTOR} == {step.source for step in steps}


def test_draws_do_not_depend_on_timing() -> None:
    prompt, tardy = Rig(p=0.5), Rig(p=0.5)
    for rig in (prompt, tardy):
        rig.begin()
        for _ in range(10):
            rig.propose(LOGGING, SLOW)
            rig.propose(AUGMENTOR, FAST) if rig is prompt else rig.deadline(Party.AUGMENTOR)
            rig.observe()
    draws = [[action.step.draw for action in rig.log if isinstance(action, RecordStep)] for rig in (prompt, tardy)]
    assert draws[0] == draws[1]


def test_without_p_the_augmentor_is_not_asked_but_u_is_drawn() -> None:
    rig = Rig(p=0.0)
    rig.begin()
    assert rig.only(Ask).sources == (LOGGING,)
    rig.propose(LOGGING, SLOW)
    rig.observe()
    assert 0 <= rig.only(RecordStep).step.draw < 1


def test_the_augmentor_is_asked_at_every_step_whatever_the_draw() -> None:
    rig = Rig(p=0.01)
    rig.begin()
    for _ in range(10):
        rig.both()
        rig.observe()
    assert {action.sources for action in rig.log if isinstance(action, Ask)} == {(LOGGING, AUGMENTOR)}
    assert rig.last(RecordStep).step.augmentor_proposal.tolist() == FAST.tolist()


def test_the_budget_is_spent_and_then_the_logging_policy_goes_on_alone() -> None:
    rig = Rig(budget=2)
    rig.begin()
    for _ in range(2):
        rig.both()
        rig.observe()
    assert rig.last(Ask).sources == (LOGGING,)
    rig.propose(LOGGING, SLOW)
    rig.observe()
    steps = [action.step for action in rig.log if isinstance(action, RecordStep)]
    assert [step.source for step in steps] == [AUGMENTOR, AUGMENTOR, LOGGING]
    assert [step.augmentations_left for step in steps] == [1, 0, 0]
    assert [step.rejection for step in steps] == [Rejection.NONE] * 3


def test_a_rejected_proposal_costs_no_budget() -> None:
    rig = Rig(budget=2)
    rig.begin()
    rig.both(augmentor=(9, 9))
    rig.observe()
    assert rig.only(RecordStep).step.augmentations_left == 2


# Proposals that cannot be used ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "rejection"),
    [
        ((np.nan, 0.0), Rejection.NOT_FINITE),
        ((np.inf, 0.0), Rejection.NOT_FINITE),
        ((0.1,), Rejection.WRONG_SIZE),
        ((0.1, 0.1, 0.1), Rejection.WRONG_SIZE),
        ((0.5, 0.1), Rejection.TOO_LONG),
        ((1e200, 1e200), Rejection.TOO_LONG),
        ((0.0, 0.45), Rejection.OUTSIDE_WORKSPACE),
        ((), Rejection.MISSING),
    ],
)
def test_an_invalid_proposal_of_the_augmentor_is_rejected_and_the_loop_goes_on(
    action: tuple[float, ...], rejection: Rejection
) -> None:
    rig = Rig()
    rig.begin((0.0, 0.9))
    rig.both(augmentor=action)
    assert rig.only(Move).action.tolist() == SLOW.tolist()
    rig.observe()
    step = rig.only(RecordStep).step
    assert (step.source, step.rejection) == (LOGGING, rejection)
    assert rig.arbiter.state is State.ASKING


def test_where_the_position_is_unknown_the_plant_guards_the_workspace() -> None:
    rig = Rig()
    rig.begin((0.0, 0.9), position=np.empty(0))
    rig.both(augmentor=(0, 0.45))
    assert rig.only(Move).action.tolist() == [0, 0.45]


def test_a_missing_augmentor_is_not_waited_for_after_its_deadline() -> None:
    rig = Rig()
    rig.begin()
    assert rig.propose(LOGGING, SLOW) == []
    assert rig.arbiter.waiting_for == {Party.AUGMENTOR}
    assert kinds(rig.deadline(Party.AUGMENTOR)) == [Move]
    rig.observe()
    assert rig.only(RecordStep).step.rejection is Rejection.MISSING
    assert rig.only(RecordStep).step.augmentor_proposal.size == 0


@pytest.mark.parametrize("logging_first", [True, False])
def test_a_late_answer_is_recorded_as_late_and_not_used(logging_first: bool) -> None:
    rig = Rig()
    rig.begin()
    rig.deadline(Party.AUGMENTOR)
    order = (LOGGING, AUGMENTOR) if logging_first else (AUGMENTOR, LOGGING)
    for source in order:
        rig.propose(source, SLOW if source is LOGGING else FAST)
    assert rig.only(Move).action.tolist() == SLOW.tolist()
    rig.observe()
    assert rig.only(RecordStep).step.rejection is Rejection.LATE
    assert rig.arbiter.drops == {Drop.TOO_LATE: 1}


def test_an_answer_to_an_earlier_step_is_stale() -> None:
    rig = Rig()
    rig.begin()
    rig.deadline(Party.AUGMENTOR)
    rig.propose(LOGGING, SLOW)
    rig.observe()
    rig.propose(AUGMENTOR, FAST, step=0)
    rig.propose(LOGGING, SLOW)
    rig.deadline(Party.AUGMENTOR)
    rig.observe()
    assert rig.last(RecordStep).step.rejection is Rejection.STALE
    assert rig.arbiter.drops == {Drop.OTHER_STEP: 1}


def test_a_draw_above_p_never_counts_as_rejection() -> None:
    rig = Rig(p=1e-9)
    rig.begin()
    rig.both(augmentor=(np.nan, 0))
    rig.observe()
    assert rig.only(RecordStep).step.rejection is Rejection.NONE


@pytest.mark.parametrize("action", [(np.nan, 0), (0.1,), (0.5, 0.5), ()])
def test_an_invalid_proposal_of_the_logging_policy_aborts_at_once(action: tuple[float, ...]) -> None:
    rig = Rig()
    rig.begin()
    assert kinds(rig.propose(LOGGING, action)) == [Hold, RecordEpisode]
    episode = rig.only(RecordEpisode).episode
    assert episode.outcome is Outcome.ABORTED
    assert "logging policy" in episode.reason
    assert rig.arbiter.state is State.IDLE


def test_the_reason_names_value_and_limit() -> None:
    rig = Rig()
    rig.begin()
    rig.propose(LOGGING, (0.6, 0.8))
    assert rig.only(RecordEpisode).episode.reason == (
        "the logging policy proposed an action of length 1, the limit is 0.5"
    )


def test_the_logging_policy_may_leave_the_workspace_as_far_as_the_arbiter_is_concerned() -> None:
    rig = Rig(p=0.0)
    rig.begin((0.95, 0.0))
    rig.propose(LOGGING, SLOW)
    assert rig.only(Move).action.tolist() == SLOW.tolist()


def test_a_silent_logging_policy_aborts_the_episode() -> None:
    rig = Rig()
    rig.begin()
    rig.propose(AUGMENTOR, FAST)
    assert kinds(rig.deadline(Party.LOGGING_POLICY)) == [Hold, RecordEpisode]
    assert rig.only(RecordEpisode).episode.reason == "the logging policy did not answer in time"


# What the plant says --------------------------------------------------------------------------------------------------


def test_the_goal_ends_the_episode_after_its_last_step_is_recorded() -> None:
    rig = Rig(p=0.0)
    rig.begin()
    rig.propose(LOGGING, SLOW)
    actions = rig.observe((0.0, 0.0), reward=-0.25, terminated=True, goal=np.zeros(2), context=np.ones(4))
    assert kinds(actions) == [RecordStep, RecordEpisode]
    episode = rig.only(RecordEpisode).episode
    assert (episode.outcome, episode.reason, len(episode.steps)) == (Outcome.REACHED, "", 1)
    assert episode.steps[0].reward == -0.25
    assert episode.final_observation.tolist() == episode.final_position.tolist() == [0.0, 0.0]
    assert (episode.goal.tolist(), episode.context.tolist()) == ([0, 0], [1, 1, 1, 1])


def test_a_plant_that_starts_at_its_goal_makes_an_episode_without_steps() -> None:
    rig = Rig()
    assert kinds(rig.begin(terminated=True)) == [RecordEpisode]
    episode = rig.only(RecordEpisode).episode
    assert (episode.outcome, episode.steps) == (Outcome.REACHED, [])
    assert episode.final_observation.tolist() == [0.5, 0.5]


def test_the_arbiter_counts_the_step_limit() -> None:
    rig = Rig(p=0.0, step_limit=3)
    rig.begin()
    for _ in range(3):
        rig.propose(LOGGING, SLOW)
        rig.observe()
    episode = rig.only(RecordEpisode).episode
    assert (episode.outcome, len(episode.steps)) == (Outcome.STEP_LIMIT, 3)
    assert [step.index for step in episode.steps] == [0, 1, 2]


def test_the_goal_at_the_last_allowed_step_counts_as_reached() -> None:
    rig = Rig(p=0.0, step_limit=1)
    rig.begin()
    rig.propose(LOGGING, SLOW)
    rig.observe(terminated=True)
    assert rig.only(RecordEpisode).episode.outcome is Outcome.REACHED


def test_a_refused_command_of_the_logging_policy_aborts_without_that_step() -> None:
    rig = Rig(p=0.0)
    rig.begin()
    rig.propose(LOGGING, SLOW)
    assert kinds(rig.observe(refusal=Refusal.OUTSIDE_WORKSPACE)) == [Hold, RecordEpisode]
    episode = rig.only(RecordEpisode).episode
    assert (episode.outcome, episode.reason) == (Outcome.ABORTED, "the plant refused: outside workspace")
    assert episode.steps == []
    assert episode.final_observation.tolist() == [0.5, 0.5]


def test_where_the_plant_refuses_the_augmentor_the_logging_policy_stands_in() -> None:
    rig = Rig()
    rig.begin()
    rig.both()
    actions = rig.observe(refusal=Refusal.OUTSIDE_WORKSPACE)
    assert kinds(actions) == [Move]
    assert rig.last(Move).action.tolist() == SLOW.tolist()
    assert rig.last(Move).step == 0
    rig.observe()
    step = rig.only(RecordStep).step
    assert (step.source, step.rejection, step.augmentations_left) == (LOGGING, Rejection.OUTSIDE_WORKSPACE, 20)
    assert not rig.last(Ask).query.handoff


def test_a_second_refusal_of_the_same_step_aborts() -> None:
    rig = Rig()
    rig.begin()
    rig.both()
    rig.observe(refusal=Refusal.TOO_LONG)
    assert kinds(rig.observe(refusal=Refusal.TOO_LONG)) == [Hold, RecordEpisode]


def test_an_emergency_stop_is_never_answered_with_another_command() -> None:
    rig = Rig()
    rig.begin()
    rig.both()
    assert kinds(rig.observe(refusal=Refusal.EMERGENCY_STOP)) == [Hold, RecordEpisode]


@pytest.mark.parametrize("values", [(np.nan, 0.0), (0.0,), (0.0, 0.0, 0.0)])
def test_an_unusable_observation_aborts_before_anybody_sees_it(values: tuple[float, ...]) -> None:
    rig = Rig()
    rig.begin()
    rig.both()
    assert kinds(rig.observe(values)) == [Hold, RecordEpisode]
    assert rig.only(RecordEpisode).episode.final_observation.tolist() == [0.5, 0.5]


def test_a_silent_plant_aborts() -> None:
    rig = Rig()
    rig.feed(rig.start)
    assert kinds(rig.deadline(Party.PLANT)) == [Hold, RecordEpisode]
    assert rig.only(RecordEpisode).episode.reason == "the plant did not answer in time"
    assert rig.only(RecordEpisode).episode.final_observation.size == 0


def test_an_unknown_reward_stays_unknown() -> None:
    rig = Rig()
    rig.begin()
    rig.both()
    rig.observe()
    assert np.isnan(rig.only(RecordStep).step.reward)


# Modes ----------------------------------------------------------------------------------------------------------------


def test_in_shadow_both_are_asked_and_recorded_and_the_logging_policy_acts() -> None:
    rig = Rig(Mode.SHADOW)
    rig.begin()
    assert rig.only(Ask).sources == (LOGGING, AUGMENTOR)
    rig.both()
    rig.observe()
    step = rig.only(RecordStep).step
    assert step.source is LOGGING
    assert step.action.tolist() == step.logging_proposal.tolist() == SLOW.tolist()
    assert step.augmentor_proposal.tolist() == FAST.tolist()
    assert np.isnan(step.draw)
    assert not rig.last(Ask).query.handoff


def test_in_shadow_an_invalid_proposal_is_recorded_as_such() -> None:
    rig = Rig(Mode.SHADOW)
    rig.begin()
    rig.both(augmentor=(np.nan, 0))
    rig.observe()
    assert rig.only(RecordStep).step.rejection is Rejection.NOT_FINITE


def test_in_evaluate_the_augmentor_acts_alone() -> None:
    rig = Rig(Mode.EVALUATE)
    rig.begin()
    assert rig.only(Ask).sources == (AUGMENTOR,)
    rig.propose(LOGGING, SLOW)
    rig.propose(AUGMENTOR, FAST, model_hash="abc")
    rig.observe()
    step = rig.only(RecordStep).step
    assert (step.source, step.model_hash, step.logging_proposal.size) == (AUGMENTOR, "abc", 0)
    assert step.action.tolist() == FAST.tolist()
    assert rig.arbiter.drops == {Drop.NOT_ASKED: 1}
    assert not rig.last(Ask).query.handoff, "nobody else has moved the plant"


def test_in_evaluate_there_is_no_budget() -> None:
    rig = Rig(Mode.EVALUATE, budget=1)
    rig.begin()
    for _ in range(5):
        rig.propose(AUGMENTOR, FAST)
        rig.observe()
    assert rig.arbiter.step == 5


@pytest.mark.parametrize("action", [(np.nan, 0), (0.6, 0), ()])
def test_in_evaluate_an_invalid_proposal_aborts(action: tuple[float, ...]) -> None:
    rig = Rig(Mode.EVALUATE)
    rig.begin()
    assert kinds(rig.propose(AUGMENTOR, action)) == [Hold, RecordEpisode]
    assert "augmentor" in rig.only(RecordEpisode).episode.reason


def test_in_evaluate_a_silent_augmentor_aborts() -> None:
    rig = Rig(Mode.EVALUATE)
    rig.begin()
    assert kinds(rig.deadline(Party.AUGMENTOR)) == [Hold, RecordEpisode]


# Receipts -------------------------------------------------------------------------------------------------------------


def test_no_command_leaves_before_the_step_before_it_is_recorded() -> None:
    rig = Rig(receipts=True)
    rig.begin()
    assert kinds(rig.both()) == [Move], "nothing is to be confirmed before the first step"
    rig.observe()
    assert rig.both() == []
    assert rig.arbiter.state is State.CONFIRMING
    assert rig.arbiter.waiting_for == {Party.RECORDER}
    assert kinds(rig.receipt(0)) == [Move]


def test_a_receipt_may_come_before_the_answers() -> None:
    rig = Rig(receipts=True)
    rig.begin()
    rig.both()
    rig.observe()
    assert rig.receipt(0) == []
    assert kinds(rig.both()) == [Move]


def test_the_next_episode_waits_for_the_receipt_of_the_last() -> None:
    rig = Rig(receipts=True)
    rig.begin(terminated=True)
    assert rig.arbiter.state is State.FINISHING
    assert rig.feed(rig.start) == []
    rig.receipt(None)
    assert rig.arbiter.state is State.IDLE
    assert kinds(rig.feed(rig.start)) == [Reset]


def test_a_silent_recorder_aborts_and_then_halts() -> None:
    rig = Rig(receipts=True)
    rig.begin()
    rig.both()
    rig.observe()
    rig.both()
    assert kinds(rig.deadline(Party.RECORDER)) == [Hold, RecordEpisode]
    assert kinds(rig.deadline(Party.RECORDER)) == [Halt]
    assert rig.only(Halt).reason == "the recorder did not answer in time"
    assert rig.arbiter.state is State.IDLE


def test_foreign_receipts_confirm_nothing() -> None:
    rig = Rig(receipts=True)
    rig.begin()
    rig.both()
    rig.observe()
    rig.both()
    rig.receipt(7)
    rig.feed(Receipt(EPISODE + 1, 0))
    rig.receipt(None)
    assert rig.arbiter.state is State.CONFIRMING
    assert rig.arbiter.drops == {Drop.OTHER_STEP: 1, Drop.OTHER_EPISODE: 1, Drop.UNEXPECTED: 1}


# Foreign events and stops ---------------------------------------------------------------------------------------------


def test_a_duplicate_answer_does_not_command_twice() -> None:
    rig = Rig(p=0.0)
    rig.begin()
    rig.propose(LOGGING, SLOW)
    assert rig.propose(LOGGING, -SLOW) == []
    assert len([action for action in rig.log if isinstance(action, Move)]) == 1
    assert rig.arbiter.drops == {Drop.DUPLICATE: 1}


def test_events_of_other_episodes_and_steps_are_counted_and_dropped() -> None:
    rig = Rig()
    rig.begin()
    for event in (
        Proposal(EPISODE - 1, 0, LOGGING, SLOW),
        Proposal(EPISODE, 1, LOGGING, SLOW),
        Observation(EPISODE, 0, np.zeros(2)),
        Deadline(EPISODE, 4, Party.LOGGING_POLICY),
        Deadline(EPISODE, 0, Party.PLANT),
    ):
        assert rig.feed(event) == []
    assert rig.arbiter.state is State.ASKING
    assert rig.arbiter.drops == {Drop.OTHER_EPISODE: 1, Drop.OTHER_STEP: 2, Drop.UNEXPECTED: 2}


def test_an_observation_seen_twice_makes_no_second_step() -> None:
    rig = Rig(p=0.0)
    rig.begin()
    rig.propose(LOGGING, SLOW)
    rig.observe((0.4, 0.5))
    rig.propose(LOGGING, SLOW)
    assert rig.observe((0.4, 0.5), step=1) == []
    assert rig.arbiter.state is State.MOVING


@pytest.mark.parametrize("feeds", [1, 2, 3])
def test_a_stop_ends_the_episode_safely_wherever_it_is(feeds: int) -> None:
    rig = Rig(p=0.0)
    events = [
        rig.start,
        Observation(EPISODE, 0, np.array([0.5, 0.5])),
        Proposal(EPISODE, 0, LOGGING, SLOW),
    ]
    for event in events[:feeds]:
        rig.feed(event)
    assert kinds(rig.feed(Stop("operator"))) == [Hold, RecordEpisode]
    assert rig.only(RecordEpisode).episode.reason == "operator"


def test_a_stop_while_idle_does_nothing() -> None:
    rig = Rig()
    assert rig.feed(Stop("operator")) == []
    assert rig.arbiter.drops == {Drop.UNEXPECTED: 1}


def test_episodes_follow_each_other_without_traces() -> None:
    rig = Rig(budget=1)
    rig.begin()
    rig.both()
    rig.observe(terminated=True)
    first = rig.last(RecordEpisode).episode
    rig.begin()
    assert rig.last(Ask).query.handoff
    assert rig.last(Ask).sources == (LOGGING, AUGMENTOR), "a new episode has a new budget"
    rig.both()
    rig.observe(terminated=True)
    second = rig.last(RecordEpisode).episode
    assert len(first.steps) == len(second.steps) == 1
    assert first.steps[0].draw == second.steps[0].draw


def test_times_are_those_of_the_events() -> None:
    rig = Rig(p=0.0)
    rig.begin(time_ns=10)
    rig.propose(LOGGING, SLOW, time_ns=20)
    rig.observe(terminated=True, time_ns=30)
    episode = rig.only(RecordEpisode).episode
    assert (episode.start_time_ns, episode.steps[0].time_ns, episode.end_time_ns) == (5, 20, 30)


@pytest.mark.parametrize(("p", "budget", "word"), [(1.5, 20, "1.5"), (-0.1, 20, "-0.1"), (0.5, -1, "-1")])
def test_bad_settings_are_refused_by_name(p: float, budget: int, word: str) -> None:
    rig = Rig(p=p, budget=budget)
    with pytest.raises(UserError, match=word):
        rig.feed(rig.start)
    assert rig.arbiter.state is State.IDLE


# The table itself -----------------------------------------------------------------------------------------------------


def test_every_state_can_be_entered_and_left() -> None:
    left = {state for state, _ in TRANSITIONS}
    entered = {row[2] for rows in TRANSITIONS.values() for row in rows}
    assert left == entered == set(State)


def test_the_last_row_of_every_event_is_unconditional() -> None:
    for (_, trigger), rows in TRANSITIONS.items():
        if trigger is not AtOnce:
            assert rows[-1][0] is EpisodeUnderWay.always
            assert all(row[0] is not EpisodeUnderWay.always for row in rows[:-1])


def test_every_state_with_an_episode_can_be_stopped_and_can_run_out_of_time() -> None:
    for state in set(State) - {State.IDLE}:
        assert (state, Stop) in TRANSITIONS
        assert (state, Deadline) in TRANSITIONS
