"""The decisions of a run, told by the clock of the test: nothing here needs ROS or takes time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lift_ros.collection.exchange import (
    Ask,
    Drop,
    Failed,
    Halt,
    Hold,
    Move,
    Observation,
    Party,
    Proposal,
    Ready,
    Receipt,
    RecordEpisode,
    RecordStep,
    Refusal,
    Reset,
    State,
)
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source
from lift_ros.collection.run_control import (
    Overdue,
    Repeat,
    RunControl,
    RunEvent,
    RunInstruction,
    RunSettings,
    Situation,
    Tick,
    Wish,
)
from lift_ros.positioning.problem import Limits

LOGGING, AUGMENTOR = Source.LOGGING_POLICY, Source.AUGMENTOR
ACTION, NOTHING = np.array([0.1, 0.0]), np.empty(0)
DEADLINES = {Party.PLANT: 100.0, Party.LOGGING_POLICY: 100.0, Party.AUGMENTOR: 1.0}
REPEAT_PERIOD = 10.0


class Rig:
    """A run whose partners and clock are played by the test."""

    def __init__(self, wish: Wish = Wish.RUN, **settings: Any) -> None:
        given = {"deadlines": DEADLINES, "repeat_period": REPEAT_PERIOD, **settings}
        self.control = RunControl(Limits(2, 2, 0.5, 100), RunSettings(**given), wish)
        self.now_ns = 0
        self.log: list[RunInstruction] = []

    def __call__(self, event: RunEvent) -> list[RunInstruction]:
        told = self.control.handle(event, time_ns=1_000_000 + self.now_ns, steady_ns=self.now_ns)
        self.log += told
        return told

    def ready(self, episode: int = 0, token: str = "first") -> list[RunInstruction]:
        return self(Ready(episode, token))

    def observe(self, episode: int, step: int, **changes: Any) -> list[RunInstruction]:
        values = np.array([0.5, -0.25])
        moves = [each.action for each in self.log if isinstance(each, Move)]
        changes = {"executed": moves[-1], **changes} if moves and step else changes
        return self(Observation(episode, step, values, values, reward=-1.0, **changes))

    def propose(self, episode: int, step: int, source: Source = LOGGING, action: Any = ACTION) -> list[RunInstruction]:
        return self(Proposal(episode, step, source, np.array(action, dtype=float)))

    def confirm(self, episode: int, step: int | None) -> list[RunInstruction]:
        return self(Receipt(episode, step))

    def later(self, seconds: float) -> list[RunInstruction]:
        """Let time pass, then look at the clock."""
        self.now_ns += int(seconds * 1e9)
        return self(Tick())

    def begin(self, episode: int = 0) -> Rig:
        """Come to the first question."""
        self.ready(episode)
        self.observe(episode, 0)
        return self

    def first_step(self, episode: int = 0) -> Rig:
        """Come to the second question, with the first step confirmed."""
        self.begin(episode)
        self.propose(episode, 0)
        self.observe(episode, 1)
        self.confirm(episode, 0)
        return self

    def second_move(self) -> Rig:
        """Come to the second move."""
        self.first_step()
        self.propose(0, 1)
        return self

    @property
    def situation(self) -> Situation:
        return self.control.situation

    @property
    def recorded(self) -> list[Episode]:
        return [each.episode for each in self.log if isinstance(each, RecordEpisode)]


def kinds(told: list[RunInstruction]) -> list[type]:
    return [type(each) for each in told]


def resets(told: list[RunInstruction]) -> list[int]:
    return [each.episode for each in told if isinstance(each, Reset)]


# Which episode is next ------------------------------------------------------------------------------------------------


def test_nothing_begins_before_the_recorder_has_named_a_number() -> None:
    rig = Rig()
    assert rig.later(1000.0) == []
    assert rig.situation is Situation.WAITING_FOR_RECORDER


def test_the_recorder_names_the_first_episode() -> None:
    assert resets(Rig().ready(7)) == [7]


def test_the_next_episode_begins_with_the_receipt_of_the_last() -> None:
    rig = Rig().begin()
    rig.propose(0, 0)
    assert kinds(rig.observe(0, 1, terminated=True)) == [RecordStep, RecordEpisode]
    assert resets(rig.confirm(0, 0)) == []
    assert resets(rig.confirm(0, None)) == [1]


def test_the_receipt_of_a_step_comes_before_the_next_move() -> None:
    rig = Rig().begin()
    rig.propose(0, 0)
    assert kinds(rig.observe(0, 1)) == [Ask, RecordStep]
    assert rig.propose(0, 1) == []
    assert kinds(rig.confirm(0, 0)) == [Move]


def test_a_run_is_done_after_its_episodes_and_holds_the_plant() -> None:
    rig = Rig(episodes=1).begin()
    rig.observe(0, 0)
    rig.propose(0, 0)
    rig.observe(0, 1, terminated=True)
    assert rig.confirm(0, None) == [Hold(0, 1)]
    assert rig.situation is Situation.DONE
    assert rig.later(1000.0) == []


def test_a_run_that_was_finished_before_is_done_at_once() -> None:
    rig = Rig(episodes=3)
    assert rig.ready(3) == []
    assert rig.situation is Situation.DONE


def test_a_run_that_is_done_goes_on_when_more_episodes_are_wanted() -> None:
    rig = Rig(episodes=3)
    rig.ready(3)
    rig.control.settings = RunSettings(DEADLINES, REPEAT_PERIOD, episodes=4)
    assert resets(rig.later(0.01)) == [3]


def test_an_episode_is_made_with_the_settings_of_its_beginning() -> None:
    rig = Rig(p=1.0, mode=Mode.SHADOW).begin()
    rig.control.settings = RunSettings(DEADLINES, REPEAT_PERIOD, mode=Mode.EVALUATE)
    rig.propose(0, 0)
    rig.propose(0, 0, AUGMENTOR)
    rig.observe(0, 1, terminated=True)
    assert rig.recorded[0].mode is Mode.SHADOW


def test_a_new_p_counts_from_the_next_episode_on() -> None:
    rig = Rig(p=0.0).first_step()
    rig.control.settings = RunSettings(DEADLINES, REPEAT_PERIOD, p=1.0)
    rig.propose(0, 1)
    rig.observe(0, 2, terminated=True)
    rig.confirm(0, None)
    asked = rig.observe(1, 0)
    assert {step.p for step in rig.recorded[0].steps} == {0.0}
    assert isinstance(asked[0], Ask) and AUGMENTOR in asked[0].sources


def test_records_bear_the_wall_clock_and_not_the_steady_one() -> None:
    rig = Rig()
    rig.now_ns = 5
    rig.begin()
    rig.propose(0, 0)
    rig.observe(0, 1, terminated=True)
    assert rig.recorded[0].start_time_ns == 1_000_005


# What people want -----------------------------------------------------------------------------------------------------


def test_without_a_start_nothing_begins() -> None:
    rig = Rig(Wish.STOP)
    assert rig.situation is Situation.WAITING_FOR_START
    assert rig.ready() == []
    assert resets(rig(Wish.RUN)) == [0]


def test_pause_withholds_the_move_and_holds_the_plant() -> None:
    rig = Rig().first_step()
    assert rig(Wish.PAUSE) == []
    assert rig.propose(0, 1) == [Hold(0, 1)]
    assert rig.situation is Situation.PAUSED


def test_resume_commands_the_withheld_move_once() -> None:
    rig = Rig().first_step()
    rig(Wish.PAUSE)
    rig.propose(0, 1)
    (move,) = rig(Wish.RUN)
    assert isinstance(move, Move) and move.step == 1 and move.action.tolist() == ACTION.tolist()
    assert rig.situation is Situation.RUNNING
    assert rig(Wish.RUN) == []


def test_a_pause_may_last_beyond_every_deadline_and_repeats_nothing() -> None:
    rig = Rig().first_step()
    rig(Wish.PAUSE)
    rig.propose(0, 1)
    assert rig.later(10_000.0) == []
    assert rig.situation is Situation.PAUSED
    assert rig.recorded == []


def test_the_plant_has_its_whole_time_after_a_pause() -> None:
    rig = Rig().first_step()
    rig(Wish.PAUSE)
    rig.propose(0, 1)
    rig.later(10_000.0)
    rig(Wish.RUN)
    rig.later(99.0)
    assert rig.recorded == []
    rig.later(2.0)
    assert rig.recorded[0].reason == "the plant did not answer in time"


def test_a_move_under_way_is_not_held_back_by_a_pause() -> None:
    rig = Rig().second_move()
    assert rig(Wish.PAUSE) == []
    assert kinds(rig.observe(0, 2)) == [Ask, RecordStep]


def test_a_pause_that_is_over_before_the_move_changes_nothing() -> None:
    rig = Rig().first_step()
    rig(Wish.PAUSE)
    rig(Wish.RUN)
    assert kinds(rig.propose(0, 1)) == [Move]


def test_pause_between_episodes_begins_none() -> None:
    rig = Rig()
    rig(Wish.PAUSE)
    assert rig.ready() == []
    assert rig.situation is Situation.PAUSED
    assert resets(rig(Wish.RUN)) == [0]


def test_stop_ends_the_episode_and_waits_for_a_start() -> None:
    rig = Rig().first_step()
    assert kinds(rig(Wish.STOP)) == [Hold, RecordEpisode]
    assert (rig.recorded[0].outcome, rig.recorded[0].reason) == (Outcome.ABORTED, "stopped by the operator")
    assert resets(rig.confirm(0, None)) == []
    assert rig.situation is Situation.WAITING_FOR_START
    assert resets(rig(Wish.RUN)) == [1]


def test_stop_forgets_the_withheld_move() -> None:
    rig = Rig().first_step()
    rig(Wish.PAUSE)
    rig.propose(0, 1)
    rig(Wish.STOP)
    assert Move not in kinds(rig(Wish.RUN))
    assert kinds(rig.confirm(0, None)) == [Reset]


def test_whatever_ends_the_episode_forgets_the_withheld_move() -> None:
    rig = Rig().first_step()
    rig(Wish.PAUSE)
    rig.propose(0, 1)
    assert kinds(rig.observe(0, 1, refusal=Refusal.TOO_LONG)) == [Hold, RecordEpisode]
    assert rig(Wish.RUN) == []


def test_stop_while_the_record_is_awaited_keeps_waiting_for_it() -> None:
    rig = Rig().first_step()
    rig(Wish.STOP)
    assert rig(Wish.STOP) == []
    assert rig.control.arbiter.waiting_for == {Party.RECORDER}


def test_the_end_has_the_episode_recorded_and_begins_no_other() -> None:
    rig = Rig().first_step()
    assert kinds(rig(Wish.END)) == [Hold, RecordEpisode]
    assert rig.recorded[0].reason == "the arbiter was ended"
    assert not rig.control.idle
    assert rig.confirm(0, None) == []
    assert rig.control.idle


def test_at_the_end_a_withheld_move_does_not_keep_the_record_from_being_repeated() -> None:
    rig = Rig().first_step()
    rig(Wish.PAUSE)
    rig.propose(0, 1)
    rig(Wish.END)
    assert rig.later(11.0) == [Repeat(frozenset({Party.RECORDER}))]


@pytest.mark.parametrize("wish", [Wish.RUN, Wish.PAUSE, Wish.STOP])
def test_nobody_can_undo_the_end(wish: Wish) -> None:
    rig = Rig().first_step()
    rig(Wish.END)
    rig(wish)
    assert rig.confirm(0, None) == []


# What pauses by itself ------------------------------------------------------------------------------------------------


def test_an_emergency_stop_aborts_and_pauses() -> None:
    rig = Rig().second_move()
    rig.observe(0, 1, refusal=Refusal.EMERGENCY_STOP)
    assert "emergency stop" in rig.recorded[0].reason
    assert resets(rig.confirm(0, None)) == []
    assert (rig.situation, rig.control.detail) == (Situation.PAUSED, "The emergency stop was pressed.")
    assert resets(rig(Wish.RUN)) == [1]


def test_a_fault_of_the_plant_aborts_and_pauses() -> None:
    rig = Rig().second_move()
    rig.observe(0, 1, refusal=Refusal.HARDWARE_FAULT)
    assert "hardware fault" in rig.recorded[0].reason
    assert resets(rig.confirm(0, None)) == []
    assert (rig.situation, rig.control.detail) == (Situation.PAUSED, "The plant has a fault.")


def test_an_emergency_stop_of_another_episode_pauses_nothing() -> None:
    rig = Rig().second_move()
    rig.observe(5, 1, refusal=Refusal.EMERGENCY_STOP)
    rig.observe(0, 2)
    rig.confirm(0, 1)
    assert kinds(rig.propose(0, 2)) == [Move]


def test_an_emergency_stop_does_not_start_what_people_have_stopped() -> None:
    rig = Rig().second_move()
    rig(Wish.STOP)
    rig.observe(0, 1, refusal=Refusal.EMERGENCY_STOP)
    rig.confirm(0, None)
    assert rig.situation is Situation.WAITING_FOR_START


def test_after_an_episode_aborted_before_its_first_move_the_next_waits_and_says_why() -> None:
    rig = Rig().begin()
    rig.propose(0, 0, action=[9.0, 0.0])
    assert resets(rig.confirm(0, None)) == []
    assert rig.situation is Situation.RETRYING
    assert "aborted before its first move" in rig.control.detail and "length 9" in rig.control.detail
    assert rig.later(0.9) == []
    assert resets(rig.later(0.2)) == [1]


def test_the_wait_doubles_up_to_a_minute_and_a_move_ends_that() -> None:
    rig = Rig().begin()
    waits = []
    for episode in range(8):
        rig.propose(episode, 0, action=[9.0, 0.0])
        rig.confirm(episode, None)
        waits.append(1)
        while not resets(rig.later(1.0)):
            waits[-1] += 1
        rig.observe(episode + 1, 0)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    rig.propose(8, 0)
    rig.observe(8, 1, terminated=True)
    rig.confirm(8, 0)
    assert resets(rig.confirm(8, None)) == [9]
    rig.observe(9, 0)
    rig.propose(9, 0, action=[9.0, 0.0])
    rig.confirm(9, None)
    assert resets(rig.later(1.0)) == [10]


def test_people_need_not_wait_for_the_next_try() -> None:
    rig = Rig().begin()
    rig.propose(0, 0, action=[9.0, 0.0])
    rig.confirm(0, None)
    assert resets(rig(Wish.RUN)) == [1]


def test_the_trouble_is_forgotten_when_people_go_on() -> None:
    rig = Rig().begin()
    rig.propose(0, 0, action=[9.0, 0.0])
    rig.confirm(0, None)
    rig(Wish.RUN)
    rig.observe(1, 0)
    rig.propose(1, 0)
    assert (rig.situation, rig.control.detail) == (Situation.RUNNING, "")


def test_an_episode_aborted_after_its_first_move_is_followed_by_the_next() -> None:
    rig = Rig().first_step()
    rig.propose(0, 1, action=[9.0, 0.0])
    assert resets(rig.confirm(0, None)) == [1]


def test_an_episode_stopped_before_its_first_move_is_no_trouble() -> None:
    rig = Rig().begin()
    rig(Wish.STOP)
    rig.confirm(0, None)
    assert (rig.situation, rig.control.detail) == (Situation.WAITING_FOR_START, "")


# A recorder that fails or begins anew ---------------------------------------------------------------------------------


def test_a_failed_recorder_ends_the_episode_without_a_record() -> None:
    rig = Rig().first_step()
    assert kinds(rig(Failed("the disk is full"))) == [Hold, Halt, Hold]
    assert rig.recorded == []
    assert rig.situation is Situation.WAITING_FOR_RECORDER
    assert rig.control.detail == "The recorder failed: the disk is full."


def test_after_a_failure_nothing_begins_until_a_recorder_is_ready() -> None:
    rig = Rig().first_step()
    rig(Failed("the disk is full"))
    assert rig.later(1000.0) == []
    assert resets(rig.ready(1, "second")) == [1]


def test_after_a_failure_the_same_recorder_may_be_ready_again() -> None:
    rig = Rig().first_step()
    rig(Failed("the disk is full"))
    assert resets(rig.ready(1)) == [1]


def test_a_new_recorder_makes_the_run_go_on_where_it_says() -> None:
    rig = Rig().second_move()
    told = rig.ready(1, "second")
    assert [each for each in told if isinstance(each, Halt)] == [Halt(0, "the recorder began anew")]
    assert resets(told) == [1]
    assert rig.recorded == []


def test_a_new_recorder_that_lost_the_episode_gets_it_again() -> None:
    assert resets(Rig().begin(3).ready(3, "second")) == [3]


def test_a_new_recorder_forgets_the_withheld_move() -> None:
    rig = Rig().first_step()
    rig(Wish.PAUSE)
    rig.propose(0, 1)
    rig.ready(1, "second")
    assert kinds(rig(Wish.RUN)) == [Reset]


def test_a_new_recorder_between_episodes_gives_nothing_up() -> None:
    rig = Rig(Wish.STOP)
    rig.ready()
    assert rig.ready(4, "second") == []
    assert resets(rig(Wish.RUN)) == [4]


def test_an_episode_whose_record_is_awaited_is_given_up_too() -> None:
    rig = Rig().first_step()
    rig(Wish.STOP)
    assert Halt in kinds(rig.ready(1, "second"))


def test_what_the_same_recorder_announces_again_changes_nothing() -> None:
    rig = Rig().first_step()
    assert rig.ready(1) == rig.ready(5) == []
    assert kinds(rig.propose(0, 1)) == [Move]


# Before the first move ------------------------------------------------------------------------------------------------


def test_a_plant_that_does_not_begin_is_told_again_for_ever() -> None:
    rig = Rig()
    rig.ready()
    assert [rig.later(200.0) for _ in range(3)] == [[Repeat(frozenset({Party.PLANT}))]] * 3
    assert rig.situation is Situation.WAITING_FOR_PLANT


def test_a_silent_logging_policy_is_asked_again_for_ever() -> None:
    rig = Rig().begin()
    assert [rig.later(200.0) for _ in range(3)] == [[Repeat(frozenset({Party.LOGGING_POLICY}))]] * 3
    assert rig.situation is Situation.WAITING_FOR_LOGGING_POLICY
    assert kinds(rig.propose(0, 0)) == [Move]
    assert rig.situation is Situation.RUNNING


def test_a_logging_policy_without_an_action_is_asked_again() -> None:
    rig = Rig().begin()
    assert rig.propose(0, 0, action=NOTHING) == []
    assert rig.recorded == []
    assert kinds(rig.propose(0, 0)) == [Move]


def test_the_augmentor_is_not_waited_for_unless_a_model_is_wanted() -> None:
    rig = Rig(p=1.0).begin()
    rig.propose(0, 0)
    assert kinds(rig.propose(0, 0, AUGMENTOR, NOTHING)) == [Move]


@pytest.mark.parametrize(("model_from", "waits"), [(-1, False), (0, True), (3, True), (4, False)])
def test_a_model_is_waited_for_from_its_episode_on(model_from: int, waits: bool) -> None:
    rig = Rig(p=1.0, model_from=model_from).begin(3)
    rig.propose(3, 0)
    assert (rig.propose(3, 0, AUGMENTOR, NOTHING) == []) is waits


def test_a_model_that_withholds_its_action_has_answered() -> None:
    rig = Rig(mode=Mode.ASSIST, model_from=0).begin()
    rig.propose(0, 0)
    assert rig.propose(0, 0, AUGMENTOR, NOTHING) == [], "there is no model yet"
    (move,) = rig(Proposal(0, 0, AUGMENTOR, NOTHING, "abc"))
    assert isinstance(move, Move)
    assert move.action.tolist() == ACTION.tolist()


def test_in_assist_a_model_that_was_there_once_is_not_waited_for_again() -> None:
    rig = Rig(mode=Mode.ASSIST, model_from=0).begin()
    rig.propose(0, 0)
    assert Overdue(Party.AUGMENTOR) not in rig.later(50.0)
    rig.propose(0, 0, AUGMENTOR)
    rig.observe(0, 1, terminated=True)
    rig.confirm(0, 0)
    rig.confirm(0, None)
    rig.observe(1, 0)
    rig.propose(1, 0)
    assert kinds(rig.later(2.0)) == [Overdue, Move], "the logging policy arrives without it"


def test_people_are_told_that_a_model_is_waited_for() -> None:
    rig = Rig(p=1.0, model_from=0).begin()
    rig.propose(0, 0)
    assert rig.later(50.0) == [Repeat(frozenset({Party.AUGMENTOR}))]
    assert rig.situation is Situation.WAITING_FOR_MODEL
    assert kinds(rig.propose(0, 0, AUGMENTOR)) == [Move]


def test_a_policy_that_acts_alone_is_asked_again_before_its_first_move() -> None:
    rig = Rig(mode=Mode.EVALUATE).begin()
    assert rig.propose(0, 0, AUGMENTOR, NOTHING) == []
    assert rig.later(50.0) == [Repeat(frozenset({Party.AUGMENTOR}))]
    assert kinds(rig.propose(0, 0, AUGMENTOR)) == [Move]


# After the first move -------------------------------------------------------------------------------------------------


def test_a_silent_logging_policy_aborts() -> None:
    rig = Rig().first_step()
    assert kinds(rig.later(101.0)) == [Overdue, Hold, RecordEpisode]
    assert rig.recorded[0].reason == "the logging policy did not answer in time"
    assert len(rig.recorded[0].steps) == 1


def test_a_logging_policy_without_an_action_aborts_at_once() -> None:
    rig = Rig().first_step()
    assert kinds(rig.propose(0, 1, action=NOTHING)) == [Hold, RecordEpisode]


def test_a_silent_plant_aborts() -> None:
    rig = Rig().second_move()
    assert rig.later(101.0)[0] == Overdue(Party.PLANT)
    assert rig.recorded[0].reason == "the plant did not answer in time"


def test_a_model_is_waited_for_before_the_first_move_alone() -> None:
    rig = Rig(p=1.0, model_from=0).begin()
    rig.propose(0, 0)
    rig.propose(0, 0, AUGMENTOR)
    rig.observe(0, 1)
    rig.confirm(0, 0)
    rig.propose(0, 1)
    assert kinds(rig.later(2.0)) == [Overdue, Move]


def test_a_policy_that_acts_alone_aborts_when_it_falls_silent() -> None:
    rig = Rig(mode=Mode.EVALUATE).begin()
    rig.propose(0, 0, AUGMENTOR)
    rig.observe(0, 1)
    assert kinds(rig.later(2.0)) == [Overdue, Hold, RecordEpisode]


def test_the_recorder_is_waited_for_as_long_as_it_takes_and_nothing_moves() -> None:
    rig = Rig().begin()
    rig.propose(0, 0)
    rig.observe(0, 1)
    rig.propose(0, 1)
    assert [rig.later(10_000.0) for _ in range(3)] == [[Repeat(frozenset({Party.RECORDER}))]] * 3
    assert rig.situation is Situation.WAITING_FOR_RECORDER
    assert kinds(rig.confirm(0, 0)) == [Move]


@pytest.mark.parametrize("party", list(Party))
def test_before_the_first_observation_nobody_has_a_deadline(party: Party) -> None:
    rig = Rig()
    rig.ready()
    assert rig.control.has_no_deadline(party)


@pytest.mark.parametrize(
    ("party", "patient"),
    [(Party.PLANT, False), (Party.LOGGING_POLICY, False), (Party.AUGMENTOR, False), (Party.RECORDER, True)],
)
def test_after_the_first_move_the_recorder_alone_has_no_deadline(party: Party, patient: bool) -> None:
    rig = Rig(model_from=0).first_step()
    assert rig.control.has_no_deadline(party) is patient
    rig.propose(0, 1)
    assert rig.control.has_no_deadline(party) is patient


# An augmentor that falls silent ---------------------------------------------------------------------------------------


@pytest.fixture
def silent() -> Rig:
    """A run at its second question, whose augmentor missed its first deadline."""
    rig = Rig(p=1.0).begin()
    rig.propose(0, 0)
    assert kinds(rig.later(2.0)) == [Overdue, Move]
    rig.observe(0, 1)
    rig.confirm(0, 0)
    return rig


def test_a_silent_augmentor_is_asked_on(silent: Rig) -> None:
    asked = [each for each in silent.log if isinstance(each, Ask)]
    assert [each.sources for each in asked] == [(LOGGING, AUGMENTOR)] * 2


def test_a_silent_augmentor_is_not_waited_for(silent: Rig) -> None:
    assert kinds(silent.propose(0, 1)) == [Move]
    assert silent.log.count(Overdue(Party.AUGMENTOR)) == 1


def test_a_silent_augmentor_is_waited_for_again_once_it_speaks(silent: Rig) -> None:
    silent.propose(0, 1)
    silent.propose(0, 0, AUGMENTOR)  # late, but it is back
    silent.observe(0, 2)
    silent.confirm(0, 1)
    assert silent.propose(0, 2) == []
    (move,) = silent.propose(0, 2, AUGMENTOR, 2 * ACTION)
    assert isinstance(move, Move) and move.action.tolist() == (2 * ACTION).tolist()


def test_the_record_says_that_a_silent_augmentor_was_missing(silent: Rig) -> None:
    silent.propose(0, 1)
    silent.observe(0, 2, terminated=True)
    assert [step.rejection for step in silent.recorded[0].steps] == [Rejection.MISSING] * 2


def test_a_silent_augmentor_is_waited_for_where_a_model_is_wanted(silent: Rig) -> None:
    silent.control.settings = RunSettings(DEADLINES, REPEAT_PERIOD, p=1.0, model_from=1)
    silent.propose(0, 1)
    silent.observe(0, 2, terminated=True)
    silent.confirm(0, None)
    silent.observe(1, 0)
    assert silent.propose(1, 0) == []
    assert silent.control.arbiter.waiting_for == {Party.AUGMENTOR}


def test_answers_of_an_augmentor_that_was_not_asked_are_no_drops() -> None:
    rig = Rig(p=0.0).begin()
    assert rig.propose(0, 0, AUGMENTOR) == []
    assert not rig.control.arbiter.drops


# Repeats and what people are told -------------------------------------------------------------------------------------


def test_repeats_do_not_come_faster_than_their_period() -> None:
    rig = Rig().begin()
    told = [rig.later(1.0) for _ in range(45)]
    assert sum(map(len, told)) == 4


def test_nothing_is_repeated_before_its_period_is_over() -> None:
    rig = Rig().begin()
    assert rig.later(9.9) == []
    assert kinds(rig.later(0.2)) == [Repeat]


def test_all_who_are_waited_for_are_told_again() -> None:
    rig = Rig(p=1.0, model_from=0).begin()
    assert rig.later(11.0) == [Repeat(frozenset({Party.LOGGING_POLICY, Party.AUGMENTOR}))]


def test_people_are_not_bothered_with_short_waits() -> None:
    rig = Rig().second_move()
    rig.later(0.4)
    assert rig.situation is Situation.RUNNING
    rig.later(0.2)
    assert rig.situation is Situation.WAITING_FOR_PLANT


def test_people_are_not_told_of_an_augmentor_whose_deadline_comes() -> None:
    rig = Rig(p=1.0).begin()
    rig.propose(0, 0)
    rig.later(0.9)
    assert rig.situation is not Situation.WAITING_FOR_MODEL


@pytest.mark.parametrize("party", [Party.LOGGING_POLICY, Party.AUGMENTOR])
def test_waiting_for_a_policy_begins_with_its_question(party: Party) -> None:
    rig = Rig()
    rig.ready()
    rig.now_ns = 77
    rig.observe(0, 0)
    assert rig.control.since[party] == 77


def test_what_belongs_to_another_episode_is_dropped_and_counted() -> None:
    rig = Rig().first_step()
    assert rig.propose(9, 1) == []
    assert rig.control.arbiter.drops == {Drop.OTHER_EPISODE: 1}


def test_the_plant_is_told_to_hold_once_when_a_run_comes_to_rest() -> None:
    rig = Rig().first_step()
    rig(Wish.STOP)
    assert rig.confirm(0, None) == [Hold(0, 1)]
    assert rig(Wish.STOP) == []
    assert rig.later(100.0) == []
    assert rig.control.arbiter.state is State.IDLE
