"""The logging policy and the augmentor alone: who answers what, and from memory when asked again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_graph import write_model
from lone_node import Kept, lone_node

import lift_ros.msg as msg
from lift_ros.collection.exchange import Model, Query
from lift_ros.collection.records import Mode, Source
from lift_ros.errors import UserError
from lift_ros.nodes.augmentor_node import Augmentor
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.logging_policy_node import LoggingPolicy
from lift_ros.nodes.policy import PolicyNode
from lift_ros.scenario import load_scenario

SCENARIO = "po-none-d2"


def query(step: int, episode: int = 0, seed: int = 5, handoff: bool = False, mode: Mode = Mode.COLLECT) -> Query:
    return Query(episode, step, seed, np.array([0.5, -0.25]), handoff or step == 0, mode)


class Asked:
    """A policy node, and the actions it answers with."""

    def __init__(self, node: PolicyNode) -> None:
        self.node = node
        self.answers = Kept(msg.Proposal)
        node._publisher = self.answers

    def __call__(self, *queries: Query) -> list[list[float]]:
        for each in queries:
            self.node._on_query(each)
        return [list(answer.action) for answer in self.answers.take()]


class Counting:
    """A routine whose answer tells how often it was asked since its reset."""

    def __init__(self) -> None:
        self.calls = 0

    def reset(self) -> None:
        self.calls = 0

    def act(self, observation: Any) -> Any:
        self.calls += 1
        return np.array([0.001 * self.calls, 0.0])


class Failing(Counting):
    """A routine that raises at its second call."""

    def act(self, observation: Any) -> Any:
        if self.calls == 1:
            raise ValueError("no calibration")
        return super().act(observation)


class AlwaysFailing(Counting):
    """A routine that never answers."""

    def act(self, observation: Any) -> Any:
        raise ValueError("no calibration")


@pytest.fixture
def routine() -> Iterator[Asked]:
    with lone_node(LoggingPolicy, scenario=SCENARIO) as node:
        node.serve(Counting())
        yield Asked(node)


@pytest.fixture
def augmentor() -> Iterator[Asked]:
    with lone_node(Augmentor, scenario=SCENARIO) as node:
        yield Asked(node)


def test_queries_are_answered_in_order(routine: Asked) -> None:
    assert routine(query(0), query(1), query(2)) == [[0.001, 0.0], [0.002, 0.0], [0.003, 0.0]]


def test_repeated_query_is_answered_from_memory(routine: Asked) -> None:
    assert routine(query(0), query(1), query(1), query(2)) == [[0.001, 0.0], [0.002, 0.0], [0.002, 0.0], [0.003, 0.0]]
    assert routine.node.diagnostics.counts["repeats"] == 1


def test_handoff_resets_before_the_answer(routine: Asked) -> None:
    assert routine(query(0), query(1), query(2, handoff=True)) == [[0.001, 0.0], [0.002, 0.0], [0.001, 0.0]]


def test_stale_query_is_dropped_and_does_not_disturb(routine: Asked) -> None:
    assert routine(query(0), query(1), query(2)) != []
    assert routine(query(1)) == []
    assert routine(query(3)) == [[0.004, 0.0]]
    assert routine.node.diagnostics.drops["query of a step that was answered before"] == 1


def test_routine_that_missed_the_beginning_of_an_episode_says_so(routine: Asked) -> None:
    assert routine(query(7)) == [[]]
    assert routine(query(8, handoff=True)) == [[]]
    assert routine(query(0, episode=1)) == [[0.001, 0.0]]


def test_routine_is_silent_in_evaluate_mode(routine: Asked) -> None:
    assert routine(query(0, mode=Mode.EVALUATE)) == []


def test_routine_that_raises_in_an_episode_answers_with_nothing(routine: Asked) -> None:
    routine.node.serve(Failing())
    assert routine(query(0), query(1)) == [[0.001, 0.0], []]
    assert routine.node.diagnostics.status is Status.POLICY_FAILED
    assert "no calibration" in routine.node.diagnostics.detail
    assert routine(query(0, episode=1)) == [[0.001, 0.0]]
    assert routine.node.diagnostics.status is Status.SERVING


def test_routine_that_raises_before_the_first_move_keeps_silent(routine: Asked) -> None:
    routine.node.serve(AlwaysFailing())
    assert routine(query(0), query(0)) == []
    assert routine.node.diagnostics.counts["errors of the policy"] == 2


def test_routine_of_ones_own_is_loaded_by_name() -> None:
    with lone_node(LoggingPolicy, scenario=SCENARIO, policy="test_policy_nodes:Counting") as node:
        assert Asked(node)(query(0)) == [[0.001, 0.0]]


def test_augmentor_without_a_model_answers_at_once_with_nothing(augmentor: Asked) -> None:
    assert augmentor(query(0), query(0), query(1)) == [[], [], []]
    assert augmentor.node.diagnostics.status is Status.NO_MODEL


def announce(augmentor: Asked, path: Path, sha256: str) -> None:
    assert isinstance(augmentor.node, Augmentor)
    augmentor.node._on_model(Model(str(path), sha256, "pull", 1))


def test_augmentor_serves_an_announced_model_from_the_next_query_on(augmentor: Asked, tmp_path: Path) -> None:
    radius = load_scenario(SCENARIO).action_radius
    path = tmp_path / "m.safetensors"
    sha256 = write_model(path, 2, 2, radius)
    augmentor(query(0))
    announce(augmentor, path, sha256)
    augmentor.node._on_query(query(1))
    (answer,) = augmentor.answers.take()
    assert answer.model_hash == sha256
    assert answer.source == Source.AUGMENTOR
    assert answer.action[0] < 0 < answer.action[1]
    assert augmentor.node.diagnostics.status is Status.SERVING


@pytest.mark.parametrize("fault", ["missing", "corrupt", "cut off", "another file", "sizes", "radius"])
def test_bad_model_leaves_the_old_one_serving(augmentor: Asked, tmp_path: Path, fault: str) -> None:
    radius = load_scenario(SCENARIO).action_radius
    good = write_model(tmp_path / "good.safetensors", 2, 2, radius)
    announce(augmentor, tmp_path / "good.safetensors", good)
    before = augmentor(query(0))
    path = tmp_path / "bad.safetensors"
    size, reach = (3 if fault == "sizes" else 2), (2 * radius if fault == "radius" else radius)
    sha256 = write_model(path, size, size, reach, pull=1.0)
    if fault == "missing":
        path.unlink()
    if fault == "corrupt":
        path.write_bytes(path.read_bytes().replace(b"pull", b"pill"))
    if fault == "cut off":
        path.write_bytes(path.read_bytes()[:-8])
    announce(augmentor, path, good if fault == "another file" else sha256)
    assert augmentor.node.diagnostics.status is Status.BAD_MODEL
    assert augmentor(query(0, episode=1)) == before
    assert augmentor.node.diagnostics.facts["model"] == good


def test_model_given_at_start_must_be_good(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes(b"nonsense")
    with pytest.raises(UserError, match="safetensors"), lone_node(Augmentor, model=str(tmp_path / "m.safetensors")):
        pass
