"""Options: presets, what overrides what, and clear words about bad values."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from lift_ros.errors import UserError
from lift_ros.scenario import load_scenario, scenario_names
from lift_ros.training.options import TrainingOptions, convert_option, preset


def test_the_paper_preset_is_the_papers() -> None:
    options = preset("paper")
    assert (options.actor_learning_rate, options.critic_learning_rate) == (1e-3, 1e-3)
    assert (options.conservative_weight, options.alpha_threshold, options.batch_size) == (5.0, 10.0, 500)
    assert (options.gamma, options.tau, options.critics) == (0.99, 0.005, 2)
    assert (options.hidden, options.action_samples, options.strategy) == ((256, 256), 10, "weighted")
    assert (options.schedule, options.actor_average) == ("constant", 0.0)
    assert (options.draw, options.anchor, options.scale_observations) == ("transitions", 0.0, False)


def test_a_scenario_overrides_the_preset_and_changes_override_both() -> None:
    plain = load_scenario("po-blend-d5")
    scenario = dataclasses.replace(plain, training={**plain.training, "updates": 70})
    assert preset("fast", scenario).updates == 70
    assert preset("fast", scenario, updates=7).updates == 7
    assert preset("paper", scenario).batch_size == 500


def test_no_shipped_scenario_chooses_for_training() -> None:
    for scenario in map(load_scenario, scenario_names()):
        # What counts in a picture is a fact of the plant, and so is whether all episodes begin at one place, where
        # routines stop, and how soon pictures are understood.
        facts = {name: scenario.training[name] for name in ("shift", "jitter", "composed", "anchor_to", "lessons")}
        is_fetch = scenario.plant.kind.startswith("fetch")
        assert any(facts.values()) <= (scenario.model_sight.image and (is_fetch or scenario.is_real))
        usual = preset("fast").replaced({name: value for name, value in facts.items() if value is not None})
        assert preset("fast", scenario) == usual


@pytest.mark.parametrize(
    ("change", "far"),
    [
        ({}, True),
        ({"anchor": 0.0}, False),
        ({"anchor_to": "drawn"}, False),
        ({"anchor_to": "goal"}, True),
        ({"anchor_to": "drawn_goal"}, False),
        ({"anchor": 0, "algorithm": "clone"}, True),
    ],
)
def test_far_shortcuts_are_looked_for_where_something_imitates_them(change: dict[str, Any], far: bool) -> None:
    assert preset("fast", **change).aims_far is far


def test_a_scenarios_wish_for_rewards_arrives_and_changes_win() -> None:
    scenario = load_scenario("po-blend-d2")
    strict = dataclasses.replace(scenario, training={**scenario.training, "reward": "recorded"})
    assert (preset("fast").reward, preset("fast", scenario).reward) == ("hindsight", "hindsight")
    assert preset("fast", strict).reward == "recorded"
    assert preset("fast", strict, reward="hindsight").reward == "hindsight"


def test_survives_json() -> None:
    options = preset("fast", algorithm="IQL", expectile=0.8, hidden=[3, 4])
    assert TrainingOptions().replaced(json.loads(json.dumps(options.as_dict()))) == options
    assert options.extra == {"expectile": 0.8} and options.hidden == (3, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"updates": 0}, "updates is 0; allowed: a whole number >= 1"),
        ({"batch_size": -3}, "batch_size"),
        ({"gamma": 1.5}, "a number > 0 and <= 1"),
        ({"gamma": float("nan")}, "gamma is nan"),
        ({"actor_learning_rate": 0.0}, "a number > 0"),
        ({"critic_learning_rate": float("inf")}, "critic_learning_rate is inf"),
        ({"C": -1.0}, "C is -1.0"),
        ({"seed": -1}, "seed is -1"),
        ({"hidden": ()}, "hidden"),
        ({"hidden": (8, 0)}, "hidden"),
        ({"hidden": [8.5]}, "hidden"),
        ({"updates": "many"}, "updates is 'many'"),
        ({"batch_size": 10**400}, "batch_size"),
        ({"reward": "measured"}, "one of recorded, hindsight"),
        ({"strategy": "wheighted"}, "strategy is 'wheighted'; allowed: one of weighted"),
        ({"draw": "steps"}, "draw is 'steps'"),
        ({"schedule": "linear"}, "schedule"),
        ({"expectile": 0.9}, "CQL has no option 'expectile'"),
    ],
)
def test_refuses_bad_values(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        preset("fast", **change)


def test_refuses_unknown_presets() -> None:
    with pytest.raises(UserError, match="choose from fast, paper"):
        preset("quick")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("hidden", "32x16", (32, 16)),
        ("hidden", "32,16", (32, 16)),
        ("batch_size", "64", 64),
        ("gamma", "0.9", 0.9),
        ("scale_observations", "true", True),
        ("strategy", "best", "best"),
        ("expectile", "0.9", 0.9),
        ("n_steps", "3", 3),
        ("flag", "False", False),
        ("word", "text", "text"),
    ],
)
def test_converts_text(name: str, text: str, value: Any) -> None:
    assert convert_option(name, text) == value


@pytest.mark.parametrize(("name", "text"), [("batch_size", "many"), ("gamma", "x"), ("scale_observations", "perhaps")])
def test_refuses_text_of_another_type(name: str, text: str) -> None:
    with pytest.raises(UserError, match=f"option {name} is '{text}'; allowed"):
        convert_option(name, text)
