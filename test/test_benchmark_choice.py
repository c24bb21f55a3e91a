"""Choosing and reporting are kept apart: nothing that the preset was chosen on appears in the results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmark.cells import DATA_SEEDS, SCENARIOS, make_scenario, vary
from benchmark.choice import ACTORS, CANDIDATES, CONTEXTS, SEEDS, SET_ASIDE, TRIED, MeanPolicy, Outcome, report
from lift_ros.array_types import FloatArray
from lift_ros.evaluation.convergence import DIRECT
from lift_ros.scenario import Scenario
from lift_ros.training import preset


def what_moves(scenario: Scenario) -> tuple[dict[str, Any], int]:
    return scenario.plant.parameters, scenario.collection.episodes


@pytest.mark.parametrize("name", SET_ASIDE)
def test_no_scenario_to_choose_on_is_reported_on(name: str) -> None:
    scenario = vary(name, SET_ASIDE[name])
    assert name not in SCENARIOS
    assert what_moves(scenario) not in [what_moves(make_scenario(other)) for other in SCENARIOS]
    assert scenario.plant.kind in CONTEXTS


def test_no_seed_to_choose_on_is_reported_on() -> None:
    assert not set(SEEDS) & set(DATA_SEEDS)


def test_candidates_differ_from_the_preset_and_from_each_other() -> None:
    options = [preset("fast", **changes) for changes in {**CANDIDATES, **TRIED}.values() if ACTORS not in changes]
    assert options[0] == preset("fast")
    assert all(one != other for number, one in enumerate(options) for other in options[:number])


def test_the_page_tells_the_lowest_of_the_seeds() -> None:
    name = next(iter(SET_ASIDE))
    outcomes = [
        Outcome(name, candidate, success, steps, 8.0)
        for candidate in (DIRECT, *CANDIDATES, *TRIED)
        for success, steps in ((1.0, 4.0), (0.25, float("inf")))
    ]
    rows = [line for line in report(outcomes).splitlines() if line.startswith(f"| {name} ")]
    assert [row.count("0.250 / ∞") for row in rows] == [1 + len(CANDIDATES), len(TRIED)]


class Constant:
    """Stands for a learned policy that always moves the same way."""

    def __init__(self, action: float) -> None:
        self._action = action

    def reset(self) -> None:
        pass

    def act(self, observation: FloatArray) -> FloatArray:
        return np.full(len(observation), self._action)

    def act_batch(self, observations: FloatArray) -> FloatArray:
        return np.full(observations.shape, self._action)


def test_the_mean_of_policies_acts_by_the_mean_of_their_actions() -> None:
    mean = MeanPolicy([Constant(1.0), Constant(2.0)])
    np.testing.assert_array_equal(mean.act(np.zeros(3)), [1.5, 1.5, 1.5])
    np.testing.assert_array_equal(mean.act_batch(np.zeros((2, 1))), [[1.5], [1.5]])
