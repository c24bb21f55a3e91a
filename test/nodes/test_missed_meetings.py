"""Nodes in real processes that miss each other say where they are and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_graph import LiveGraph, live_graph

from lift_ros.graph.run import node_command


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[LiveGraph]:
    with live_graph(tmp_path) as graph:
        yield graph


def detail(graph: LiveGraph) -> str:
    return graph.status["arbiter"].get("detail", "")


def test_the_arbiter_says_where_it_waits_for_the_plant_and_finds_it_in_another_namespace(
    graph: LiveGraph, tmp_path: Path
) -> None:
    graph.start("arbiter", scenario="po-none-d2", plant_deadline=60.0)
    graph.start("recorder", run=str(tmp_path / "run"))
    graph.wait("the reason", lambda: "Nobody publishes /lift/observation in domain" in detail(graph))
    assert graph.state("arbiter") == "WAITING_FOR_PLANT"
    assert "(discovery range LOCALHOST): start your plant node in namespace /lift" in detail(graph)

    graph.namespace = "lens"
    plant = graph.start("positioning_simulator", scenario="po-none-d2")
    graph.namespace = "lift"
    graph.wait("the other namespace", lambda: "/lens/positioning_simulator publishes" in detail(graph))
    assert "--ros-args -r __ns:=/lift" in detail(graph)
    assert plant.end() == 0

    graph.start("positioning_simulator", scenario="po-none-d2")
    graph.start("logging_policy", scenario="po-none-d2")
    graph.wait_for_steps(1)
    graph.wait("no reason any more", lambda: graph.state("arbiter") == "RUNNING" and not detail(graph))


def test_a_plant_says_when_it_is_up_and_where(graph: LiveGraph) -> None:
    log = graph.start("loopback_hardware").log
    graph.wait("the plant", lambda: graph.state("loopback_hardware") == "READY" and "is up" in log.read_text())
    assert re.search(
        r"the plant is up: it listens to /lift/command and answers on /lift/observation \(namespace /lift, domain \d+, "
        r"discovery range LOCALHOST\); observations of 2 and actions of 2 entries, at most 0.3 long",
        log.read_text(),
    )


def test_the_command_of_a_node_takes_a_namespace_with_or_without_slash(tmp_path: Path) -> None:
    assert node_command("arbiter", {}, "lift", tmp_path) == node_command("arbiter", {}, "/lift/", tmp_path)
