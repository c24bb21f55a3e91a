"""No sequence of events, in whatever order and however wrong, breaks what the arbiter promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lift_ros.array_types import FloatArray
from lift_ros.collection.arbiter import Arbiter
from lift_ros.collection.exchange import (
    Ask,
    Deadline,
    Event,
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
from lift_ros.collection.records import Mode, Source, same
from lift_ros.positioning.problem import Limits
from lift_ros.scenario import AssistSettings

# The same examples everywhere, and no clock: a loaded machine must not fail what is right.
CALM = settings(
    deadline=None, max_examples=100, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
EPISODES = st.integers(0, 1)
STEPS = st.integers(0, 4)
NUMBERS = st.sampled_from([0.0, 0.1, -0.2, 0.49, 3.0, float("nan"), float("inf")])
VECTORS = st.lists(NUMBERS, max_size=3).map(np.array) | st.just(np.array([0.1, 0.1]))
MODES = st.sampled_from(list(Mode))

ASSISTS = st.builds(AssistSettings, st.integers(0, 6), st.just(4), smallest=st.sampled_from([0.0, 0.5]))
STARTS = st.builds(
    Start, EPISODES, st.just(1), MODES, st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 3), st.just(0), ASSISTS
)
REFUSALS = st.sampled_from([Refusal.NONE] * 4 + list(Refusal))
OBSERVATIONS = st.builds(
    lambda episode, step, values, terminated, refusal, executed: Observation(
        episode, step, values, values, terminated=terminated, refusal=refusal, executed=executed
    ),
    EPISODES,
    STEPS,
    VECTORS,
    st.sampled_from([False, False, False, True]),
    REFUSALS,
    VECTORS,
)
PROPOSALS = st.builds(Proposal, EPISODES, STEPS, st.sampled_from(list(Source)), VECTORS)
DEADLINES = st.builds(Deadline, EPISODES, STEPS, st.sampled_from(list(Party)))
RECEIPTS = st.builds(Receipt, EPISODES, st.none() | STEPS)
ANYTHING = st.one_of(STARTS, OBSERVATIONS, PROPOSALS, DEADLINES, RECEIPTS, st.builds(Stop, st.just("stop")))


def fitting(draw: st.DrawFn, arbiter: Arbiter, moved: FloatArray) -> Event:
    """Return an event that the arbiter waits for, so that episodes get somewhere between the nonsense."""
    episode, step = arbiter.episode or 0, arbiter.step
    match arbiter.state:
        case State.IDLE:
            return draw(STARTS)
        case State.RESETTING:
            return Observation(episode, 0, np.array([0.5, 0.5]), np.array([0.5, 0.5]))
        case State.MOVING:
            refusal = draw(REFUSALS)
            values = np.array([0.5, 0.5])
            made = refusal is Refusal.NONE
            return Observation(episode, step + made, values, values, refusal=refusal, executed=moved)
        case State.ASKING:
            source = draw(st.sampled_from(list(Source)))
            return Proposal(episode, step, source, draw(VECTORS | st.just(np.array([0.1, 0.1]))))
        case State.CONFIRMING:
            return Receipt(episode, step - 1)
        case State.FINISHING:
            return Receipt(episode, None)


@st.composite
def histories(draw: st.DrawFn) -> tuple[bool, list[Event]]:
    receipts = draw(st.booleans())
    arbiter = Arbiter(limits(), require_receipts=receipts)
    events: list[Event] = []
    moved: FloatArray = np.empty(0)
    for sensible in draw(st.lists(st.integers(0, 4), max_size=40)):
        events.append(fitting(draw, arbiter, moved) if sensible else draw(ANYTHING))
        for told in arbiter.handle(events[-1]):
            moved = told.action if isinstance(told, Move) else moved
    return receipts, events


def limits() -> Limits:
    return Limits(2, 2, 0.5, 4, (np.full(2, -1.0), np.full(2, 1.0)))


def play(receipts: bool, events: list[Event]) -> list[tuple[Event, list[Instruction]]]:
    arbiter = Arbiter(limits(), require_receipts=receipts)
    return [(event, arbiter.handle(event)) for event in events]


def flat(history: list[tuple[Event, list[Instruction]]]) -> list[Instruction]:
    return [action for _, actions in history for action in actions]


def episodes_of(actions: list[Instruction]) -> list[list[Instruction]]:
    parts: list[list[Instruction]] = []
    for action in actions:
        if isinstance(action, Reset):
            parts.append([])
        parts[-1].append(action)
    return parts


@CALM
@given(histories())
def test_a_step_is_commanded_once_unless_the_plant_refused_it(history: tuple[bool, list[Event]]) -> None:
    refused: Counter[int] = Counter()
    commanded: Counter[int] = Counter()
    for event, actions in play(*history):
        if isinstance(event, Observation) and event.refusal is not Refusal.NONE:
            refused[event.step] += 1
        for action in actions:
            if isinstance(action, Reset):
                refused.clear()
                commanded.clear()
            if isinstance(action, Move):
                commanded[action.step] += 1
                assert commanded[action.step] <= min(2, 1 + refused[action.step])


@CALM
@given(histories())
def test_every_command_follows_an_observation_and_a_question_of_its_own(history: tuple[bool, list[Event]]) -> None:
    for part in episodes_of(flat(play(*history))):
        asked = -1
        for action in part:
            if isinstance(action, Ask):
                assert action.query.step == asked + 1
                assert np.isfinite(action.query.values).all()
                asked = action.query.step
            if isinstance(action, Move):
                assert action.step == asked


@CALM
@given(histories())
def test_every_recorded_step_is_what_the_plant_says_it_executed(history: tuple[bool, list[Event]]) -> None:
    executed: FloatArray = np.empty(0)
    for event, actions in play(*history):
        if isinstance(event, Observation):
            executed = event.executed
        for action in actions:
            if isinstance(action, RecordStep):
                assert np.array_equal(action.step.action, executed)


@CALM
@given(histories())
def test_every_command_is_finite_and_within_the_ball(history: tuple[bool, list[Event]]) -> None:
    for action in flat(play(*history)):
        if isinstance(action, Move):
            assert action.action.shape == (2,)
            assert np.linalg.norm(action.action) <= 0.5 * (1 + 1e-6)


@CALM
@given(histories())
def test_the_budget_is_never_negative_and_matches_the_augmentations(history: tuple[bool, list[Event]]) -> None:
    receipts, events = history
    arbiter = Arbiter(limits(), require_receipts=receipts)
    budget, used, mode = 0, 0, Mode.COLLECT
    budgets = {Mode.COLLECT: lambda start: start.budget, Mode.ASSIST: lambda start: start.assist.budget}
    for event in events:
        idle = arbiter.state is State.IDLE
        actions = arbiter.handle(event)
        if idle and isinstance(event, Start):
            budget, used, mode = budgets.get(event.mode, lambda start: 0)(event), 0, event.mode
        for action in actions:
            if isinstance(action, RecordStep) and mode in budgets:
                used += action.step.source is Source.AUGMENTOR
                assert action.step.augmentations_left == budget - used >= 0


@CALM
@given(histories())
def test_handoff_is_at_step_0_and_after_exactly_the_augmentors_steps(history: tuple[bool, list[Event]]) -> None:
    for part in episodes_of(flat(play(*history))):
        sources = {action.step.index: action.step.source for action in part if isinstance(action, RecordStep)}
        for query in [action.query for action in part if isinstance(action, Ask)]:
            another_acts = query.mode in (Mode.COLLECT, Mode.ASSIST)
            augmented = another_acts and sources.get(query.step - 1) is Source.AUGMENTOR
            assert query.handoff == (query.step == 0 or augmented)


@CALM
@given(histories())
def test_records_are_complete_and_in_order(history: tuple[bool, list[Event]]) -> None:
    for part in episodes_of(flat(play(*history))):
        steps = [action.step for action in part if isinstance(action, RecordStep)]
        assert [step.index for step in steps] == list(range(len(steps)))
        ends = [action.episode for action in part if isinstance(action, RecordEpisode)]
        assert len(ends) <= 1
        if ends:
            assert same(ends[0].steps, steps)
            assert not [action for action in part[part.index(RecordEpisode(ends[0])) :] if isinstance(action, Move)]
            assert (ends[0].reason != "") == any(isinstance(action, Hold) for action in part)


@CALM
@given(histories())
def test_what_is_recorded_is_what_was_commanded(history: tuple[bool, list[Event]]) -> None:
    commanded = np.empty(0)
    for action in flat(play(*history)):
        if isinstance(action, Move):
            commanded = action.action
        if isinstance(action, RecordStep):
            assert same(action.step.action, commanded)
            proposals = {
                Source.LOGGING_POLICY: action.step.logging_proposal,
                Source.AUGMENTOR: action.step.augmentor_proposal,
            }
            refused_or_not_asked = action.step.rejection or not action.step.augmentor_proposal.size
            if not (action.step.source is Source.AUGMENTOR and refused_or_not_asked):  # else a move back, in assist
                assert same(action.step.action, proposals[action.step.source])


@CALM
@given(histories())
def test_with_receipts_no_command_overtakes_the_recorder(history: tuple[bool, list[Event]]) -> None:
    _, events = history
    unconfirmed: set[int] = set()
    episode = -1
    for event, actions in play(True, events):
        if isinstance(event, Receipt) and event.episode == episode and event.step is not None:
            unconfirmed.discard(event.step)
        for action in actions:
            if isinstance(action, Reset):
                episode, unconfirmed = action.episode, set()
            if isinstance(action, Move):
                assert not unconfirmed
            if isinstance(action, RecordStep):
                unconfirmed.add(action.step.index)


@CALM
@given(histories())
def test_whoever_is_idle_waits_for_nobody_and_whoever_is_not_waits_for_somebody(
    history: tuple[bool, list[Event]],
) -> None:
    receipts, events = history
    arbiter = Arbiter(limits(), require_receipts=receipts)
    for event in events:
        arbiter.handle(event)
        assert (arbiter.state is State.IDLE) == (not arbiter.waiting_for)


@CALM
@given(histories())
def test_deadlines_alone_bring_every_episode_to_an_end(history: tuple[bool, list[Event]]) -> None:
    receipts, events = history
    arbiter = Arbiter(limits(), require_receipts=receipts)
    for event in events:
        arbiter.handle(event)
    for _ in range(5):
        for party in arbiter.waiting_for:
            arbiter.handle(Deadline(arbiter.episode or 0, arbiter.step, party))
    assert arbiter.state is State.IDLE


@CALM
@given(histories())
def test_the_same_events_give_the_same_actions(history: tuple[bool, list[Event]]) -> None:
    first, second = flat(play(*history)), flat(play(*history))
    assert [type(action) for action in first] == [type(action) for action in second]
    for one, other in zip(first, second, strict=True):
        if isinstance(one, RecordEpisode) and isinstance(other, RecordEpisode):
            assert same(one.episode, other.episode)
