from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from fakes import Creep, Jitter, Jump, Line

from lift_ros.array_types import FloatArray
from lift_ros.collection.arbiter import Arbiter
from lift_ros.collection.assist import Assistant
from lift_ros.collection.exchange import Ask, Deadline, Move, Observation, Party, Proposal, Refusal, Start
from lift_ros.collection.loop import run_episode
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source
from lift_ros.policies.protocol import Policy
from lift_ros.positioning.problem import Limits
from lift_ros.scenario import DEFAULT_ASSIST, AssistSettings

LOGGING, AUGMENTOR = Source.LOGGING_POLICY, Source.AUGMENTOR
LIMITS = Limits(2, 2, 0.5, 100)
BUDGET = DEFAULT_ASSIST.budget
RIGHT, LEFT, UP, DOWN = (np.array(move) for move in ([0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.0, -0.5]))


@dataclass
class Acts:
    """An augmentor that answers as a function of its answers' count and the observation says."""

    answer: Callable[[int, FloatArray], FloatArray]
    hash: str = "abc"
    asked: int = 0

    def reset(self) -> None:
        pass

    def begin_episode(self, seed: int) -> None:
        self.asked = 0

    def act(self, observation: FloatArray) -> FloatArray:
        self.asked += 1
        return self.answer(self.asked, observation)


@dataclass
class Uncovered(Jump):
    """A model whose data end at a distance of 0.5."""

    def covers(self, observation: FloatArray) -> bool:
        return float(np.linalg.norm(observation)) > 0.5


def assisted(augmentor: Policy, plant: Line | None = None, *, index: int = 0, **changes: object) -> Episode:
    settings = replace(DEFAULT_ASSIST, **changes)  # type: ignore[arg-type]
    plant = plant or Line()
    return run_episode(plant, Creep(), augmentor, index=index, run_seed=1, mode=Mode.ASSIST, assist=settings)


def alone(index: int = 0) -> Episode:
    return run_episode(Line(), Creep(), index=index, run_seed=1)


def reason(episode: Episode) -> Rejection:
    """Why the logging policy took over, or NONE."""
    return next((step.rejection for step in episode.steps if step.rejection), Rejection.NONE)


def routine_steps(episode: Episode) -> int:
    return len(episode.steps) - episode.augmentations


# Who acts -------------------------------------------------------------------------------------------------------------


def test_a_good_policy_acts_from_the_first_step_until_it_arrives() -> None:
    episode = assisted(Jump())
    assert episode.outcome is Outcome.REACHED
    assert {step.source for step in episode.steps} == {AUGMENTOR}
    assert reason(episode) is Rejection.NONE
    assert (episode.mode, episode.steps[0].p, episode.steps[-1].augmentations_left) == (
        Mode.ASSIST,
        1.0,
        BUDGET - len(episode.steps),
    )


def hover(_: int, observation: FloatArray) -> FloatArray:
    """Go half the way to a place just outside the goal."""
    return np.asarray(0.5 * (np.array([0.08, 0.0]) - observation)).clip(-0.3, 0.3)


DAMAGED = {
    "no number": (lambda n, o: np.full(2, np.nan), Rejection.NOT_FINITE),
    "too long": (lambda n, o: np.array([0.6, 0.0]), Rejection.TOO_LONG),
    "wrong size": (lambda n, o: np.zeros(3), Rejection.WRONG_SIZE),
    "nothing": (lambda n, o: np.empty(0), Rejection.UNCOVERED),
    "stands still": (lambda n, o: np.zeros(2), Rejection.TOO_SHORT),
    "hovers": (hover, Rejection.TOO_SHORT),
    "there and back": (lambda n, o: RIGHT if n % 2 else LEFT, Rejection.CANCELLING),
    "in a square": (lambda n, o: (RIGHT, UP, LEFT, DOWN)[n % 4], Rejection.CANCELLING),
    "straight away": (lambda n, o: np.array([0.3, 0.3]), Rejection.BUDGET_USED),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_every_stall_is_recorded_with_its_reason_and_the_routine_arrives(name: str) -> None:
    answer, expected = DAMAGED[name]
    episode = assisted(Acts(answer))
    assert reason(episode) is expected
    assert episode.outcome is Outcome.REACHED


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize("name", [name for name in DAMAGED if name != "hovers"])
def test_a_damaged_model_costs_no_more_than_the_budget(name: str, index: int) -> None:
    episode = assisted(Acts(DAMAGED[name][0]), index=index)
    assert routine_steps(episode) == len(alone(index).steps), "it goes on from where the episode began"
    assert episode.augmentations <= BUDGET


@pytest.mark.parametrize("budget", [0, 1, 5, 12])
@pytest.mark.parametrize("size", [0.1, 0.35])
def test_moves_and_those_that_take_them_back_keep_to_the_budget(budget: int, size: float) -> None:
    for index in range(5):
        episode = assisted(Jitter(size), index=index, budget=budget)
        assert episode.augmentations <= budget
        assert episode.outcome is Outcome.REACHED


def test_a_model_that_hovers_is_left_where_it_settled() -> None:
    episode = assisted(Acts(hover))
    assert routine_steps(episode) <= 2 < len(alone().steps)


def test_without_retreat_the_routine_takes_over_where_the_plant_is() -> None:
    answer, _ = DAMAGED["straight away"]
    episode = assisted(Acts(answer), retreat=False, budget=5)
    assert [step.source for step in episode.steps[:6]] == [AUGMENTOR] * 5 + [LOGGING]
    assert routine_steps(episode) > len(alone().steps)


def test_after_the_hand_over_the_augmentor_is_not_asked_again() -> None:
    cycle = Acts(DAMAGED["there and back"][0])
    episode = assisted(cycle)
    assert cycle.asked == DEFAULT_ASSIST.window
    assert len(episode.steps) > cycle.asked


def test_the_routine_is_reset_before_its_first_step_and_not_later() -> None:
    creep = Creep()
    episode = run_episode(Line(), creep, Acts(DAMAGED["there and back"][0]), index=0, run_seed=1, mode=Mode.ASSIST)
    assert creep.answers == routine_steps(episode)


def test_a_move_back_is_told_from_a_proposed_one_by_the_record() -> None:
    steps = assisted(Acts(DAMAGED["straight away"][0])).steps
    stalled = next(step.index for step in steps if step.rejection)
    back = [step for step in steps[stalled:] if step.source is AUGMENTOR]
    assert [step.index for step in back] == list(range(stalled, stalled + len(back)))
    assert all(step.rejection or not step.augmentor_proposal.size for step in back)
    np.testing.assert_allclose(sum(step.action for step in steps[: stalled + len(back)]), 0.0, atol=1e-12)


def test_the_routine_has_the_whole_step_limit_to_itself() -> None:
    needed = len(alone().steps)
    enough, too_few = (
        assisted(Acts(DAMAGED["there and back"][0]), Line(step_limit=limit)) for limit in (needed, needed - 1)
    )
    assert enough.outcome is Outcome.REACHED
    assert (too_few.outcome, routine_steps(too_few)) == (Outcome.STEP_LIMIT, needed - 1)


# What the augmentor says of itself ------------------------------------------------------------------------------------


def test_a_model_that_leaves_its_data_withholds_its_action() -> None:
    episode = assisted(Uncovered(), Line(start=(0.9, 0.0)))
    assert reason(episode) is Rejection.UNCOVERED
    handed_over = next(step for step in episode.steps if step.rejection)
    assert handed_over.augmentor_proposal.size == 0
    assert handed_over.model_hash == "abc"


def test_coverage_is_not_watched_where_the_scenario_says_so() -> None:
    episode = assisted(Uncovered(), Line(start=(0.9, 0.0)), coverage=False)
    assert {step.source for step in episode.steps} == {AUGMENTOR}


@pytest.mark.parametrize("mode", [Mode.COLLECT, Mode.SHADOW, Mode.EVALUATE])
def test_coverage_changes_nothing_in_the_other_modes(mode: Mode) -> None:
    one, other = (
        run_episode(Line(), Creep(), policy, index=0, run_seed=1, mode=mode, p=0.5) for policy in (Jump(), Uncovered())
    )
    assert [step.action.tolist() for step in one.steps] == [step.action.tolist() for step in other.steps]


# The arbiter's table --------------------------------------------------------------------------------------------------


class Rig:
    """An arbiter in assist mode whose augmentor has made `moves`."""

    def __init__(self, *moves: FloatArray, position: FloatArray | None = None) -> None:
        self.arbiter = Arbiter(LIMITS)
        self.moved = np.empty(0)
        self.position = np.empty(0) if position is None else position
        self.arbiter.handle(Start(0, 1, Mode.ASSIST))
        self.asked = self.observe()
        for move in moves:
            self.propose(move)
            self.asked = self.observe()

    def observe(self, refusal: Refusal = Refusal.NONE) -> list[object]:
        step = self.arbiter.step + (Party.PLANT in self.arbiter.waiting_for and refusal is Refusal.NONE)
        step = 0 if self.arbiter.step == 0 and not hasattr(self, "asked") else step
        executed = self.moved if step and refusal is Refusal.NONE else np.empty(0)
        seen = Observation(0, step, np.ones(2), self.position, refusal=refusal, executed=executed)
        told = list(self.arbiter.handle(seen))
        self.moved = next((each.action for each in told if isinstance(each, Move)), self.moved)
        return told

    def propose(self, augmentor: FloatArray | None, logging: FloatArray = 0.1 * RIGHT) -> Move:
        told = self.arbiter.handle(Proposal(0, self.arbiter.step, LOGGING, logging))
        if Party.AUGMENTOR in self.arbiter.waiting_for:
            step = self.arbiter.step
            silent = Deadline(0, step, Party.AUGMENTOR)
            told += self.arbiter.handle(silent if augmentor is None else Proposal(0, step, AUGMENTOR, augmentor))
        (move,) = [each for each in told if isinstance(each, Move)]
        self.moved = move.action
        return move

    @property
    def sources(self) -> tuple[Source, ...]:
        (ask,) = [each for each in self.asked if isinstance(each, Ask)]
        return ask.sources


def test_both_are_asked_until_the_hand_over() -> None:
    rig = Rig(RIGHT)
    assert rig.sources == (LOGGING, AUGMENTOR)
    rig.propose(None)
    rig.asked = rig.observe()
    assert rig.sources == (LOGGING,)


def test_an_augmentor_that_misses_its_deadline_is_left_where_it_is() -> None:
    move = Rig(RIGHT, RIGHT).propose(None)
    assert move.action.tolist() == (0.1 * RIGHT).tolist()


def test_where_the_plant_refuses_the_routine_stands_in_and_then_the_moves_are_taken_back() -> None:
    rig = Rig(RIGHT, UP)
    rig.propose(RIGHT)
    (stand_in,) = rig.observe(Refusal.OUTSIDE_WORKSPACE)
    assert isinstance(stand_in, Move)
    assert stand_in.action.tolist() == (0.1 * RIGHT).tolist()
    rig.asked = rig.observe()
    assert rig.sources == (LOGGING,)
    back = rig.propose(None).action
    assert back.tolist() == (-UP).tolist(), "the last one first"
    (given_up,) = rig.observe(Refusal.OUTSIDE_WORKSPACE)
    assert isinstance(given_up, Move)
    assert given_up.action.tolist() == (0.1 * RIGHT).tolist(), "the routine again, and for good"
    rig.asked = rig.observe()
    assert rig.propose(None).action.tolist() == (0.1 * RIGHT).tolist()


# The assistant alone --------------------------------------------------------------------------------------------------


def assistant(*moves: FloatArray, **changes: object) -> Assistant:
    made = Assistant(replace(AssistSettings(budget=100), **changes), LIMITS)  # type: ignore[arg-type]
    made.see(np.empty(0))
    for move in moves:
        assert made.judge(move) is Rejection.NONE
        made.note(move)
    return made


def test_one_way_there_and_back_is_no_stall() -> None:
    """A task with two goals: the object lies to the right, where it belongs to the left."""
    watched = assistant(*[RIGHT] * 4, *[LEFT] * 4, *[LEFT] * 4)
    assert watched.judge(LEFT) is Rejection.NONE


def test_moves_that_cancel_out_are_a_stall_after_a_full_window_only() -> None:
    watched = assistant(*[RIGHT, LEFT] * 3, window=8)
    assert watched.judge(RIGHT) is Rejection.NONE
    watched.note(RIGHT)
    assert watched.judge(LEFT) is Rejection.CANCELLING


def test_what_counts_as_too_short_is_a_share_of_the_radius() -> None:
    watched = assistant(smallest=0.1)
    assert watched.judge(0.099 * RIGHT) is Rejection.TOO_SHORT
    assert watched.judge(0.101 * RIGHT) is Rejection.NONE


def test_the_way_back_is_kept_free_in_the_budget() -> None:
    assert assistant(RIGHT, RIGHT, budget=7).judge(LEFT) is Rejection.NONE, (
        "two moves, this one, one back, two to spare"
    )
    assert assistant(RIGHT, RIGHT, budget=7).judge(UP * 0.1) is Rejection.BUDGET_USED
    assert assistant(RIGHT, RIGHT, budget=3, retreat=False).judge(RIGHT) is Rejection.NONE


def test_where_the_plant_tells_its_position_what_is_missing_is_taken_back_too() -> None:
    """The plant moves only half of what is commanded to the left."""
    position, watched = np.zeros(2), Assistant(AssistSettings(), LIMITS)
    for move in (RIGHT, RIGHT):
        watched.see(position)
        assert watched.judge(move) is Rejection.NONE
        watched.note(move)
        position = position + move
    watched.hand_over(Rejection.NOT_FINITE)
    watched.see(position)
    while (move := watched.next_back()) is not None:  # type: ignore[assignment]
        watched.note(move)
        position = position + move / 2
        watched.see(position)
    assert 0 <= position[0] <= 0.02
    assert watched.used <= AssistSettings().budget


def test_a_plant_that_met_a_stop_is_led_back_by_its_position() -> None:
    watched = Assistant(AssistSettings(), LIMITS)
    for place in (0.0, 0.5, 0.6):
        watched.see(np.array([place, 0.0]))
        watched.note(RIGHT)
    watched.see(np.array([0.6, 0.0]))
    watched.hand_over(Rejection.NOT_FINITE)
    move = watched.next_back()
    assert move is not None
    np.testing.assert_allclose(move, [-0.3, 0.0])


def test_moves_back_end_where_they_do_not_lead_closer() -> None:
    watched = Assistant(AssistSettings(), LIMITS)
    watched.see(np.zeros(2))
    watched.note(RIGHT)
    watched.hand_over(Rejection.NOT_FINITE)
    stuck = np.array([0.4, 0.0])
    moves = []
    for _ in range(10):
        watched.see(stuck)
        if (move := watched.next_back()) is not None:
            moves.append(move)
            watched.note(move)
    assert len(moves) == 2


def test_moves_back_stay_in_the_workspace() -> None:
    box = (np.array([0.0, -1.0]), np.array([2.0, 1.0]))
    watched = Assistant(AssistSettings(), replace(LIMITS, workspace=box))
    watched.see(np.array([0.2, 0.0]))
    watched.note(RIGHT)
    watched.hand_over(Rejection.NOT_FINITE)
    watched.see(np.array([0.3, 0.0]))  # it came less far than commanded
    move = watched.next_back()
    assert move is not None
    np.testing.assert_allclose(move, [-0.1, 0.0])


def test_the_way_back_is_the_way_it_came_or_straight_where_that_would_cost_too_much() -> None:
    for budget, expected in ((8, [-UP, -RIGHT, -RIGHT]), (7, [-(2 * RIGHT + UP) / 3] * 3)):
        watched = assistant(RIGHT, RIGHT, UP, budget=100)
        watched.left = budget - 3
        watched.hand_over(Rejection.NOT_FINITE)
        made = []
        while (move := watched.next_back()) is not None:
            made.append(move)
            watched.note(move)
        np.testing.assert_allclose(made, expected)
