"""The guard lowers p and budget where augmented episodes are worse, and leaves good ones alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from fakes import Creep, Jump, Line

from lift_ros.array_types import FloatArray
from lift_ros.collection.exchange import Leash
from lift_ros.collection.guard import FULL, OFF, SMALLEST, Guard, Trial
from lift_ros.collection.loop import collect, run_episode
from lift_ros.collection.records import Episode, Mode, Outcome, Rejection, Source
from lift_ros.scenario import DEFAULT_GUARD, START_FULL, START_SMALL

SETTINGS = replace(DEFAULT_GUARD, start=START_FULL)
P, BUDGET, LIMIT = 0.6, 20, 600
Play = Callable[[np.random.Generator, float], tuple[int, bool]]  # from the share of the budget to steps and success


def play(guard: Guard, augmented: Play, seed: int, episodes: int = 60) -> tuple[int, list[float]]:
    """Return all steps, and p of each episode, where the routine needs 55 steps on average."""
    rng, total, used = np.random.default_rng(seed), 0, []
    for _ in range(episodes):
        decision = guard.decide(Mode.COLLECT, P, BUDGET)
        used.append(decision.p)
        steps, reached = int(rng.gamma(5, 11)) + 1, True
        if decision.p > 0:
            steps, reached = augmented(rng, decision.budget / BUDGET)
            if steps > decision.leash.steps:
                steps, reached = decision.leash.steps + 5 + int(rng.gamma(5, 11)), True
        total += steps
        guard.weigh(Trial(decision.p > 0, reached, steps, "model" if decision.p else ""))
    return total, used


def good(rng: np.random.Generator, share: float) -> tuple[int, bool]:
    return int(rng.gamma(5, 11 * (1 - 0.8 * math.sqrt(share)))) + 1, True


def terrible(rng: np.random.Generator, share: float) -> tuple[int, bool]:
    return LIMIT, False


def rather_bad(rng: np.random.Generator, share: float) -> tuple[int, bool]:
    return int(rng.gamma(5, 11 * (1 + share))) + 1, True


@pytest.mark.parametrize("start", [START_FULL, START_SMALL])
@pytest.mark.parametrize("augmented", [terrible, rather_bad])
def test_bad_augmentors_cost_little_and_are_switched_off(augmented: Play, start: str) -> None:
    totals, ends = [], []
    for seed in range(100):
        guard = Guard(replace(SETTINGS, start=start))
        total, used = play(guard, augmented, seed)
        totals.append(total / (60 * 55))
        ends.append(used[-1])
    assert np.mean(totals) < 1.2
    assert np.quantile(totals, 0.95) < 1.3  # the routine alone differs by 0.06 between seeds
    assert np.mean(np.array(ends) < P) > 0.9
    if augmented is terrible:
        assert set(ends) == {0.0}


@pytest.mark.parametrize("start", [START_FULL, START_SMALL])
def test_good_augmentors_end_at_the_scenarios_p(start: str) -> None:
    ends = [play(Guard(replace(SETTINGS, start=start)), good, seed)[1] for seed in range(100)]
    assert np.mean([P in used[-3:] for used in ends]) > 0.9  # one of them may be a plain one


def test_plain_episodes_come_first_and_then_now_and_then() -> None:
    used = play(Guard(SETTINGS), good, seed=0)[1]
    assert used[: SETTINGS.plain] == [0.0] * SETTINGS.plain
    assert used[SETTINGS.plain] == P
    assert sum(p == 0.0 for p in used) <= SETTINGS.plain + 4


def test_episodes_recorded_before_make_plain_ones_superfluous() -> None:
    guard = Guard(SETTINGS)
    guard.recall(collect(Line(), Creep(), episodes=20, seed=1, progress=False))
    assert guard.decide(Mode.COLLECT, P, BUDGET).p == P


def test_hardware_starts_small() -> None:
    guard = Guard(DEFAULT_GUARD.on(hardware=True))
    assert guard.level == SMALLEST
    assert Guard(DEFAULT_GUARD.on(hardware=False)).level == FULL
    for _ in range(DEFAULT_GUARD.plain):
        guard.weigh(Trial(False, True, 50))
    decision = guard.decide(Mode.COLLECT, P, BUDGET)
    assert (decision.p, decision.budget) == (0.3, 2)


def test_failures_count_even_where_the_others_are_fast() -> None:
    guard = Guard(SETTINGS)
    for _ in range(50):
        guard.weigh(Trial(False, True, 55))
    for number in range(6):
        guard.weigh(Trial(True, number % 3 > 0, 10, "model"))
    assert guard.level < FULL
    assert "arrived" in guard.why


def test_another_model_is_judged_anew() -> None:
    guard = Guard(SETTINGS)
    play(guard, terrible, seed=3)
    assert guard.level == OFF
    guard.serve("model")
    assert guard.level == OFF
    guard.serve("another")
    assert guard.decide(Mode.COLLECT, P, BUDGET).p == P


@pytest.mark.parametrize(("mode", "p", "budget"), [(Mode.SHADOW, P, 3), (Mode.ASSIST, P, 3), (Mode.COLLECT, 0.0, 3)])
def test_what_needs_no_guard_is_left_alone(mode: Mode, p: float, budget: int) -> None:
    decision = Guard(SETTINGS).decide(mode, p, budget)
    assert (decision.p, decision.budget, decision.leash, decision.why) == (p, budget, Leash(), "")


def test_a_guard_that_is_switched_off_changes_nothing() -> None:
    guard = Guard(replace(SETTINGS, enabled=False))
    free, guarded = (
        collect(Line(), Creep(), Jump(), episodes=5, p=P, seed=2, guard=one, progress=False, clock=lambda: 0)
        for one in (None, guard)
    )
    assert [[step.p for step in episode.steps] for episode in free] == [[s.p for s in e.steps] for e in guarded]
    assert [len(episode.steps) for episode in free] == [len(episode.steps) for episode in guarded]


def test_a_run_gone_through_again_gives_the_same_decisions() -> None:
    guard, replayed, decisions = Guard(SETTINGS), Guard(SETTINGS), []
    episodes = collect(Line(step_limit=40), Creep(), Away(), episodes=60, p=P, seed=5, guard=guard, progress=False)
    for episode in episodes:
        decisions.append(replayed.decide(Mode.COLLECT, P, 20))
        replayed.note(episode)
    assert [decision.p for decision in decisions] == [episode.steps[0].p for episode in episodes]
    assert (replayed.level, replayed.why) == (guard.level, guard.why)
    assert guard.level == OFF


def test_a_plain_episode_is_one_in_which_no_augmentor_was_heard() -> None:
    def heard(augmentor: object, p: float, mode: Mode = Mode.COLLECT) -> bool | None:
        trial = Trial.of(run_episode(Line(), Creep(), augmentor, index=0, run_seed=1, p=p, mode=mode))  # type: ignore[arg-type]
        return None if trial is None else trial.augmented

    assert heard(Jump(), P)
    assert heard(Jump(), 0.0) is False
    assert heard(Jump(), P, Mode.SHADOW) is False
    assert heard(Jump(), P, Mode.ASSIST) is None


# The leash --------------------------------------------------------------------------------------------------------


class Away:
    """An augmentor that always flees to the same side."""

    hash = "away"

    def reset(self) -> None:
        """Keep no state."""

    def act(self, observation: FloatArray) -> FloatArray:
        """Return the longest move."""
        return np.array([0.5, 0.0])


class Unknown(Line):
    """A line that does not tell where it is."""

    def _observed(self, reward: float) -> object:  # type: ignore[override]
        observed = super()._observed(reward)
        observed.position = np.empty(0)
        return observed


def on_leash(plant: Line, leash: Leash, budget: int = 100) -> Episode:
    return run_episode(plant, Creep(), Away(), index=0, run_seed=4, p=0.9, budget=budget, leash=leash)


@pytest.mark.parametrize("plant", [Line, Unknown])
def test_after_the_leash_the_plant_is_led_back_and_the_routine_arrives(plant: type[Line]) -> None:
    leash = Leash(steps=15, retreat=True)
    episode = on_leash(plant(step_limit=30, start=(0.6, 0.6)), leash)
    assert episode.outcome is Outcome.REACHED
    assert episode.steps[15].rejection is Rejection.LEASH
    back = [step for step in episode.steps[15:] if step.source is Source.AUGMENTOR]
    assert 0 < len(back) <= 13
    assert episode.steps[15 + len(back)].observation == pytest.approx([0.6, 0.6])
    assert len(episode.steps) <= 15 + len(back) + 10
    assert all(step.augmentations_left == 0 for step in episode.steps[15:])
    assert (
        run_episode(
            plant(step_limit=30, start=(0.6, 0.6)), Creep(), Away(), index=0, run_seed=4, p=0.9, budget=100
        ).outcome
        is Outcome.STEP_LIMIT
    )


def test_without_a_retreat_the_routine_goes_on_where_the_plant_is() -> None:
    episode = on_leash(Line(step_limit=300, start=(0.6, 0.6)), Leash(steps=15))
    assert episode.outcome is Outcome.REACHED
    assert {step.source for step in episode.steps[15:]} == {Source.LOGGING_POLICY}


def test_after_the_leash_the_routine_has_the_whole_step_limit() -> None:
    episode = on_leash(Line(step_limit=12, start=(0.6, 0.6)), Leash(steps=40, retreat=True))
    assert episode.outcome is Outcome.REACHED
    assert len(episode.steps) > 12


def test_after_a_few_bad_proposals_the_augmentor_is_not_asked_any_more() -> None:
    class TooLong(Away):
        asked = 0

        def act(self, observation: FloatArray) -> FloatArray:
            self.asked += 1
            return np.array([5.0, 0.0])

    augmentor = TooLong()
    leash = Leash(rejections=3)
    episode = run_episode(Line(), Creep(step=0.05), augmentor, index=0, run_seed=1, p=1.0, budget=20, leash=leash)
    assert augmentor.asked == 3
    assert [step.rejection for step in episode.steps[:4]] == [Rejection.TOO_LONG] * 3 + [Rejection.NONE]
    assert episode.outcome is Outcome.REACHED
