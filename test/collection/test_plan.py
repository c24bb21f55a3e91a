"""What a run's plan makes of a scenario and of what a user says."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lift_ros.collection.plan import CollectionPlan
from lift_ros.collection.records import Mode
from lift_ros.errors import UserError
from lift_ros.scenario import load_scenario

SCENARIO = load_scenario("po-blend-d2")  # 100 episodes, p 0.6, training after 50


def plan(**wishes: object) -> CollectionPlan:
    return CollectionPlan.make(SCENARIO, **wishes)  # type: ignore[arg-type]


def test_the_scenario_alone_is_algorithm_2() -> None:
    made = plan()
    assert (made.mode, made.episodes, made.p, made.budget) == (Mode.COLLECT, 100, 0.6, 20)
    assert (made.augmentation, made.train_after, made.trains) == ("learned", 50, True)


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({}, "100 episodes: the logging policy alone until episode 50, then with the model trained on them, p=0.6"),
        ({"train_after": 7, "p": 0.2}, "alone until episode 7, then with the model trained on them, p=0.2"),
        ({"episodes": 30}, "30 episodes: the logging policy alone; the model trained on them would come after 50 ep"),
        ({"episodes": 0}, "episodes without end: the logging policy alone until episode 50, then"),
        ({"episodes": 60, "p": 0.0}, "60 episodes: the logging policy alone"),
        ({"train_after": 0}, "100 episodes: the logging policy with an augmentor that waits for a model, p=0.6"),
        ({"model": Path("m/a.safetensors")}, "100 episodes: the logging policy with the model a.safetensors, p=0.6"),
        ({"augmentation": "uniform"}, "100 episodes: the logging policy with the augmentation uniform, p=0.6"),
        ({"augmentation": "uncertainty"}, "until episode 50, then with the uncertainty model fitted to them, p=0.6"),
        ({"augmentation": "uncertainty", "data": [Path("x/a")]}, "with the uncertainty model fitted to a, p=0.6"),
        ({"mode": "shadow", "model": Path("a")}, "alone; the model a is asked and recorded, but never acts"),
        ({"mode": "evaluate", "model": Path("a")}, "100 episodes: the model a alone"),
        (
            {"mode": "assist", "model": Path("a"), "budget": 9},
            "the model a until it stalls, at most 9 moves; then the log",
        ),
        ({"mode": "assist", "augmentation": "uniform"}, "the augmentation uniform until it stalls, at most 30 moves"),
    ],
)
def test_it_says_in_one_line_what_will_happen(wishes: dict[str, object], words: str) -> None:
    line = plan(**wishes).describe()
    assert words in line
    if not wishes or "episodes" not in wishes:
        assert line.startswith("100 episodes: ")


def test_nobody_is_asked_besides_the_logging_policy_without_need() -> None:
    assert not plan(p=0.0).has_augmentor
    assert plan(p=0.0, augmentation="uniform").has_augmentor
    assert plan(p=0.0).facts(SCENARIO, seed=0, made_by="test")["augmentation"] is None


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"augmentation": "uniform", "model": Path("a")}, "a model and the augmentation uniform exclude each other"),
        ({"data": [Path("a")]}, "data belong to the augmentation uncertainty"),
        ({"augmentation": "uniform", "train_after": 5}, "uniform is never trained"),
        ({"augmentation": "uncertainty", "train_after": 5, "data": [Path("a")]}, "learns from the given data"),
        ({"augmentation": "uncertainty", "train_after": 0}, "needs the runs whose actions count as seen"),
        ({"augmentation": "uncertainty", "mode": "evaluate"}, "needs the runs whose actions count as seen"),
        ({"mode": "evaluate"}, "mode evaluate needs a model"),
        ({"mode": "assist"}, "mode assist needs a model"),
        ({"mode": "shadow"}, "mode shadow needs a model; give one with --model FILE"),
        ({"assist": {"window": 2}}, "window is 2; allowed: a whole number >= 4"),
        ({"p": 1.5}, "p is 1.5; allowed: between 0 and 1"),
        ({"p": float("nan")}, "p is nan; allowed: between 0 and 1"),
        ({"episodes": -1}, "episodes is -1; allowed: 0 or more"),
        ({"train_after": -1}, "train_after is -1; allowed: 0 or more"),
        ({"mode": "sleep"}, "mode is 'sleep'; allowed: collect, shadow, evaluate, assist"),
    ],
)
def test_contradictions_are_refused(wishes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan(**wishes)


def test_facts_say_how_a_run_was_made(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.write_bytes(b"weights")
    facts = plan(model=model, p=0.5).facts(SCENARIO, seed=3, made_by="test")
    assert facts["parameters"] == SCENARIO.as_dict()
    assert (facts["scenario"], facts["seed"], facts["mode"], facts["p"]) == ("po-blend-d2", 3, "collect", 0.5)
    assert (facts["policy"], facts["augmentation"], facts["made_by"]) == ("coordinate_walk", "learned", "test")
    assert facts["model"] == hashlib.sha256(b"weights").hexdigest()
    assert set(facts["versions"]) == {"lift_ros", "numpy", "python"}


def test_facts_of_assist_say_when_it_was_to_stall(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.write_bytes(b"weights")
    made = plan(mode="assist", model=model, budget=9, assist={"smallest": 0.1})
    facts = made.facts(SCENARIO, seed=3, made_by="test")
    assert (facts["mode"], facts["assist"]["budget"], facts["assist"]["smallest"]) == ("assist", 9, 0.1)
    assert plan().facts(SCENARIO, seed=3, made_by="test")["assist"] is None
