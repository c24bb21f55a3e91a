"""Convergence: batched and one by one agree, and the numbers mean what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.evaluation.convergence import (
    DIRECT,
    LOGGING_POLICY,
    OPTIMAL,
    SECANT,
    BatchPolicy,
    Convergence,
    compare,
    comparison_table,
    context_seeds,
    converge,
    make_judge,
    yardsticks,
)
from lift_ros.evaluation.plots import plot_convergence
from lift_ros.scenario import load_scenario

SCENARIO = load_scenario("po-blend-d2")


class Homeward:
    """Takes the step towards the origin, shortened to the action ball."""

    def reset(self) -> None:
        pass

    def act(self, observation: FloatArray) -> FloatArray:
        return self.act_batch(observation[None])[0]

    def act_batch(self, observations: FloatArray) -> FloatArray:
        norms = np.linalg.norm(observations, axis=1, keepdims=True)
        return -observations * np.minimum(1.0, SCENARIO.action_radius / np.maximum(norms, 1e-12))


class HomewardOneByOne:
    """The same without batches."""

    def __init__(self) -> None:
        self._policy = Homeward()

    def reset(self) -> None:
        pass

    def act(self, observation: FloatArray) -> FloatArray:
        return self._policy.act(observation)


class Still:
    """Never moves."""

    def reset(self) -> None:
        pass

    def act(self, observation: FloatArray) -> FloatArray:
        return np.zeros_like(observation)


def test_batches_and_single_contexts_agree() -> None:
    assert isinstance(Homeward(), BatchPolicy) and not isinstance(HomewardOneByOne(), BatchPolicy)
    seeds = context_seeds(0, 20)
    batched = converge(SCENARIO, Homeward(), seeds, steps=12)
    singly = converge(SCENARIO, HomewardOneByOne(), seeds, steps=12)
    assert np.allclose(batched.distances, singly.distances, atol=1e-9)
    assert np.array_equal(batched.arrivals, singly.arrivals, equal_nan=True)
    assert 0.5 < batched.success <= 1.0


def test_distances_fall_to_the_threshold_and_stay() -> None:
    result = converge(SCENARIO, Homeward(), context_seeds(1, 15), steps=40)
    assert result.distances.shape == (15, 41)
    for row, arrival in zip(result.distances, result.arrivals, strict=True):
        if np.isfinite(arrival):
            step = int(arrival)
            assert row[step] <= 0.02 < row[step - 1]
            assert (row[step:] == row[step]).all()


def test_who_does_not_move_does_not_arrive() -> None:
    result = converge(SCENARIO, Still(), context_seeds(0, 5), steps=6)
    assert result.success == 0.0 and np.isnan(result.arrivals).all()
    assert (result.distances == result.distances[:, :1]).all()
    assert result.arrival_quartiles() == [np.inf] * 3
    assert result.as_dict()["steps"] == {"q25": None, "median": None, "q75": None}


def test_patience_lets_a_slow_policy_arrive() -> None:
    walk = SCENARIO.make_logging_policy()
    seeds = context_seeds(0, 4)
    hurried = converge(SCENARIO, walk, seeds, steps=10)
    patient = converge(SCENARIO, walk, seeds, steps=10, patience=1000)
    assert hurried.success < 1.0 and patient.success == 1.0
    assert np.array_equal(hurried.distances, patient.distances)


def test_quartiles_are_those_of_the_contexts() -> None:
    distances = np.tile(np.arange(1.0, 6.0)[:, None], (1, 31))
    result = Convergence(distances, np.array([1.0, 2.0, 3.0, np.nan, np.nan]))
    assert result.success == 0.6
    assert result.distance_quartiles(5) == [2.0, 3.0, 4.0]
    assert result.arrival_quartiles() == [2.0, 3.0, np.inf]


def test_contexts_are_fresh_and_repeatable() -> None:
    assert context_seeds(3, 5) == context_seeds(3, 5)[:5]
    assert len({*context_seeds(3, 50), *context_seeds(4, 50)}) == 100
    with pytest.raises(UserError, match="at least 1"):
        context_seeds(0, 0)
    with pytest.raises(UserError, match="number of steps is 0"):
        converge(SCENARIO, Still(), [1], steps=0)


def test_compares_with_the_yardsticks_on_the_same_contexts() -> None:
    results = compare(SCENARIO, {"homeward": Homeward()}, contexts=6, seeds=(0, 1), steps=15)
    assert list(results) == ["homeward", LOGGING_POLICY, DIRECT, SECANT, OPTIMAL]
    starts = [result.distances[:, 0] for result in results.values()]
    assert len(starts[0]) == 12 and all(np.allclose(start, starts[0]) for start in starts)
    assert results[LOGGING_POLICY].success == 1.0
    assert np.allclose(results[DIRECT].distances, results["homeward"].distances, atol=1e-9)
    optimal, direct = results[OPTIMAL], results[DIRECT]
    assert optimal.success == 1.0 and np.nanmean(optimal.arrivals) <= np.nanmean(direct.arrivals)


def test_the_table_and_the_json_tell_the_same() -> None:
    results = compare(SCENARIO, {"homeward": Homeward()}, contexts=4, steps=12)
    lines = comparison_table(results).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("---")) + 1
    first_column = [line.split("  ")[0] for line in lines[begin:-1]]
    assert " ".join(filter(None, first_column)) == " ".join(results)
    data = json.loads(json.dumps({name: result.as_dict() for name, result in results.items()}, allow_nan=False))
    assert data["homeward"]["contexts"] == 4
    assert f"{data['optimal']['success']:.2f}" in next(line for line in lines if line.startswith(OPTIMAL))


def test_a_plant_without_the_optimal_policy_has_fewer_yardsticks() -> None:
    scenario = load_scenario("fetch-touch-and-place")
    assert list(yardsticks(scenario)) == [LOGGING_POLICY, DIRECT, SECANT]


def test_the_judge_prefers_who_arrives() -> None:
    judge = make_judge(SCENARIO, contexts=8)
    good, bad = judge(Homeward()), judge(Still())
    assert good["score"] > bad["score"] and good["success"] > bad["success"] == 0.0
    assert judge(Homeward()) == good


def test_the_logging_policy_is_followed_until_it_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr("lift_ros.evaluation.plots.save_figure", lambda figure, path: figures.append(figure))
    results = compare(SCENARIO, {}, contexts=6, steps=10)
    slowest = np.nanmax(results[LOGGING_POLICY].arrivals)
    assert slowest > 10 and results[LOGGING_POLICY].distances.shape[1] > slowest
    plot_convergence(tmp_path / "plot.png", results, 0.02, "title", "mm")
    (axes,) = figures[0].axes
    assert axes.get_xlim()[1] > slowest
    assert results[OPTIMAL].distances.min() < 1e-9 and 0.0005 < axes.get_ylim()[0] <= 0.002
    assert axes.get_ylabel() == "distance to the goal [mm]"


def test_draws_the_plot(tmp_path: Path) -> None:
    results = {
        "model": converge(SCENARIO, Homeward(), [1, 2], steps=5),
        "direct": converge(SCENARIO, Still(), [1, 2], steps=5),
    }
    plot_convergence(tmp_path / "new" / "plot.png", results, 0.02, "title")
    assert (tmp_path / "new" / "plot.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UserError, match="choose a known ending"):
        plot_convergence(tmp_path / "plot.doc", results, 0.02, "title")
