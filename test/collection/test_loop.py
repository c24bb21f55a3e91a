from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from fakes import Creep, FloatArray, Jitter, Jump, Line
from timeless import without_times

from lift_ros.collection.loop import CollectionInterrupted, collect, run_episode
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source, same
from lift_ros.errors import UserError
from lift_ros.scenario import load_scenario

quietly = partial(collect, progress=False)


def timeless(episodes: list[Episode]) -> list[Episode]:
    return [without_times(episode) for episode in episodes]


def test_the_logging_policy_alone_reaches_the_goal() -> None:
    episode = run_episode(Line(), Creep(), index=0, run_seed=1)
    assert episode.outcome is Outcome.REACHED
    assert episode.augmentations == 0
    assert np.linalg.norm(episode.final_position) <= 0.05
    for before, after in itertools.pairwise(episode.steps):
        np.testing.assert_array_equal(before.position + before.action, after.position)
        assert before.reward == -np.linalg.norm(after.position)


def test_an_augmentor_shortens_the_episode() -> None:
    alone = run_episode(Line(), Creep(), index=0, run_seed=1)
    helped = run_episode(Line(), Creep(), Jump(), index=0, run_seed=1, p=0.6)
    assert 0 < helped.augmentations < len(helped.steps) < len(alone.steps)
    assert {step.model_hash for step in helped.steps} == {"abc"}


def test_the_logging_policy_forgets_after_every_step_of_the_augmentor_and_only_then() -> None:
    policy = Creep()
    episode = run_episode(Line(step_limit=30, threshold=0), policy, Jump(), index=0, run_seed=1, p=0.5)
    handoffs = sum(step.source is Source.AUGMENTOR for step in episode.steps[:-1])
    assert policy.resets == 1 + handoffs
    assert handoffs > 1


def test_the_budget_bounds_the_augmentations() -> None:
    augmentor = Jump(reach=0.01)
    episode = run_episode(Line(), Creep(), augmentor, index=0, run_seed=1, p=1.0, budget=3)
    assert episode.augmentations == 3
    assert [step.augmentations_left for step in episode.steps[:4]] == [2, 1, 0, 0]
    assert augmentor.asked == 3


def test_the_step_limit_ends_an_episode() -> None:
    episode = run_episode(Line(step_limit=4, threshold=0), Creep(step=0.001), index=0, run_seed=1)
    assert (episode.outcome, len(episode.steps)) == (Outcome.STEP_LIMIT, 4)


def test_a_logging_policy_that_goes_too_far_aborts_with_a_reason() -> None:
    episode = run_episode(Line(start=(0.9, 0.9)), Creep(step=0.7), index=0, run_seed=1)
    assert (episode.outcome, episode.steps) == (Outcome.ABORTED, [])
    assert "0.7" in episode.reason
    assert "0.5" in episode.reason


def test_an_augmentor_that_answers_nonsense_never_stops_the_loop() -> None:
    class Nonsense(Jump):
        def act(self, observation: FloatArray) -> FloatArray:
            self.asked += 1
            return [np.full(2, np.nan), np.ones(5), np.full(2, 9.0), np.empty(0)][self.asked % 4]

    episode = run_episode(Line(), Creep(), Nonsense(), index=0, run_seed=1, p=1.0)
    assert episode.outcome is Outcome.REACHED
    assert episode.augmentations == 0
    assert {step.rejection for step in episode.steps} == {
        Rejection.NOT_FINITE,
        Rejection.WRONG_SIZE,
        Rejection.TOO_LONG,
        Rejection.MISSING,
    }


def test_shadow_changes_nothing_in_what_the_plant_does() -> None:
    alone = run_episode(Line(), Creep(), index=0, run_seed=1)
    shadow = run_episode(Line(), Creep(), Jump(), index=0, run_seed=1, mode=Mode.SHADOW)
    assert [step.action.tolist() for step in alone.steps] == [step.action.tolist() for step in shadow.steps]
    assert all(step.augmentor_proposal.size == 2 for step in shadow.steps)


def test_evaluate_needs_no_logging_policy() -> None:
    episode = run_episode(Line(), None, Jump(), index=0, run_seed=1, mode=Mode.EVALUATE)
    assert (episode.outcome, episode.augmentations) == (Outcome.REACHED, len(episode.steps))


def test_a_policy_with_full_information_learns_the_context_before_its_first_answer() -> None:
    scenario = load_scenario("po-blend-d2")
    optimal, problem = scenario.make_policy("optimal"), scenario.make_problem()
    for index in range(3):
        episode = run_episode(problem, None, optimal, index=index, run_seed=1, mode=Mode.EVALUATE)
        distance = float(np.linalg.norm(episode.steps[0].position - episode.goal))
        assert episode.outcome is Outcome.REACHED
        assert len(episode.steps) <= np.ceil(2 * distance / scenario.action_radius)


@pytest.mark.parametrize(("mode", "p"), [(Mode.COLLECT, 0.5), (Mode.SHADOW, 0.0), (Mode.EVALUATE, 0.0)])
def test_a_missing_augmentor_is_told_beforehand(mode: Mode, p: float) -> None:
    with pytest.raises(UserError, match="needs an augmentor"):
        run_episode(Line(), Creep(), index=0, run_seed=1, mode=mode, p=p)


def test_a_missing_logging_policy_is_told_beforehand() -> None:
    with pytest.raises(UserError, match="needs a logging policy"):
        run_episode(Line(), None, Jump(), index=0, run_seed=1)


def test_the_clock_is_read_where_something_happens() -> None:
    times = itertools.count(1)
    episode = run_episode(Line(), Creep(), index=0, run_seed=1, clock=lambda: next(times))
    stamps = [episode.start_time_ns, *(step.time_ns for step in episode.steps), episode.end_time_ns]
    assert stamps == sorted(set(stamps))


# Many episodes --------------------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_episodes_bit_for_bit() -> None:
    runs = [quietly(Line(), Creep(), Jitter(), episodes=5, p=0.5, seed=seed) for seed in (7, 7, 8)]
    assert same(timeless(runs[0]), timeless(runs[1]))
    assert not same(timeless(runs[0]), timeless(runs[2]))
    assert [episode.index for episode in runs[0]] == [0, 1, 2, 3, 4]


def test_an_episode_depends_on_its_number_not_on_those_before_it() -> None:
    whole = quietly(Line(), Creep(), Jitter(), episodes=6, p=0.5, seed=7)
    rest = quietly(Line(), Creep(), Jitter(), episodes=2, first=4, p=0.5, seed=7)
    assert same(timeless(whole[4:]), timeless(rest))


def test_several_processes_change_no_number() -> None:
    serial = quietly(Line(), Creep(), Jitter(), episodes=9, p=0.5, seed=7)
    seen: list[int] = []
    parallel = quietly(
        Line, Creep, Jitter, episodes=9, p=0.5, seed=7, processes=2, on_episode=lambda one: seen.append(one.index)
    )
    assert same(timeless(serial), timeless(parallel))
    assert seen == list(range(9))


def test_a_scenario_brings_its_logging_policy_along() -> None:
    episodes = quietly(load_scenario("po-blend-d2"), episodes=2, seed=1)
    assert {episode.outcome for episode in episodes} == {Outcome.REACHED}


def test_a_scenario_runs_on_several_processes() -> None:
    scenario = load_scenario("po-rot-d2")
    serial, parallel = (quietly(scenario, episodes=4, seed=3, processes=count) for count in (1, 2))
    assert same(timeless(serial), timeless(parallel))


def test_no_episodes_are_no_error() -> None:
    assert quietly(Line(), Creep(), episodes=0, seed=1) == []


@pytest.mark.parametrize(("episodes", "processes"), [(-1, 1), (1, 0)])
def test_bad_numbers_are_refused(episodes: int, processes: int) -> None:
    with pytest.raises(UserError, match="must be"):
        quietly(Line(), Creep(), episodes=episodes, processes=processes, seed=1)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    collect(Line(), Creep(), episodes=3, seed=1)
    assert "collecting 3/3 episodes" in capsys.readouterr().err


# Ctrl-C ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Make SIGINT raise KeyboardInterrupt, also where a test runner ignores it."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread alone")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


class Interrupting(Creep):
    """Somebody presses Ctrl-C in the third episode of this policy."""

    episodes = 0

    def reset(self) -> None:
        super().reset()
        self.episodes += 1
        if self.episodes == 3:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_the_finished_episodes() -> None:
    kept: list[Episode] = []
    with pytest.raises(CollectionInterrupted) as interruption:
        quietly(Line(), Interrupting(), episodes=10, seed=1, on_episode=kept.append)
    assert [episode.index for episode in kept] == [0, 1]
    assert same(interruption.value.episodes, kept)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_does_not_cut_the_record_of_an_episode() -> None:
    written: list[str] = []

    def write(episode: Episode) -> None:
        written.append(f"begin {episode.index}")
        if episode.index == 1:
            os.kill(os.getpid(), signal.SIGINT)
        written.append(f"end {episode.index}")

    with pytest.raises(KeyboardInterrupt):
        quietly(Line(), Creep(), episodes=10, seed=1, on_episode=write)
    assert written == ["begin 0", "end 0", "begin 1", "end 1"]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_with_several_processes_finishes_what_is_under_way_and_leaves_no_gap(
    capfd: pytest.CaptureFixture[str],
) -> None:
    kept: list[int] = []

    def write(episode: Episode) -> None:
        kept.append(episode.index)
        if episode.index == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(CollectionInterrupted):
        quietly(Line, Creep, episodes=500, seed=1, processes=2, on_episode=write)
    assert kept == list(range(len(kept)))
    assert 3 <= len(kept) < 500
    assert capfd.readouterr().err == "", "the workers end quietly"


def test_in_another_thread_collecting_works_without_signals() -> None:
    found: list[list[Episode]] = []
    thread = threading.Thread(target=lambda: found.append(quietly(Line(), Creep(), episodes=2, seed=1)))
    thread.start()
    thread.join(60)
    assert len(found[0]) == 2
