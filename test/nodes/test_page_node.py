"""The page's node in a living graph, without a browser: what it serves, what its desk does, and that it may die."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from isolation import udp_alone
from live_graph import LiveGraph, live_graph, write_model
from rclpy.parameter import Parameter

from lift_ros.errors import UserError
from lift_ros.graph import qos

pytest.importorskip("nicegui", reason="pip install 'lift_ros[page]'")
from lift_ros.nodes.page_node import Desk, PageNode


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGraph]:
    """A graph without end, with its page."""
    with live_graph(tmp_path_factory.mktemp("page")) as graph:
        run = str(graph.folder / "run")
        (graph.folder / "models").mkdir()
        folders = {"model_folders": str(graph.folder / "models")}
        graph.start("positioning_simulator", step_time=0.01)
        graph.start("logging_policy")
        graph.start("augmentor", **folders)
        graph.start("recorder", run=run)
        graph.start("arbiter", p=0.5, logging_policy_deadline=30.0, plant_deadline=30.0)
        graph.start("page", address="127.0.0.1:0", run=run, **folders)
        graph.wait("the page", lambda: graph.state("page"))
        graph.wait_for_steps()
        yield graph


@pytest.fixture(scope="module")
def desk(graph: LiveGraph) -> Iterator[Desk]:
    """A desk of a node in this process, whose calls the graph answers."""
    overrides = [
        Parameter("address", value="127.0.0.1:0"),
        Parameter("model_folders", value=str(graph.folder / "models")),
    ]
    with udp_alone():
        node = PageNode(context=graph.node.context, namespace=graph.namespace, parameter_overrides=overrides)
    graph.add(node)
    yield node.desk
    node.close()
    node.destroy_node()


def urls_of(graph: LiveGraph) -> list[str]:
    """Return where the page was at each of its starts."""
    return re.findall(r"the page is at (http\S+)", graph.processes["page"].log.read_text())


def url_of(graph: LiveGraph) -> str:
    return urls_of(graph)[-1]


def done(doing: Coroutine[Any, Any, str]) -> str:
    return asyncio.run(doing)


def eventually(graph: LiveGraph, doing: Callable[[], Coroutine[Any, Any, str]]) -> str:
    """Do something as soon as the services are found, which takes a moment after a node has started."""
    answers: list[str] = []

    def works() -> bool:
        try:
            answers.append(done(doing()))
        except UserError:
            return False
        return True

    graph.wait("an answer", works)
    return answers[0]


def post(url: str) -> dict[str, Any]:
    """Return what is answered, also where it could not be done, which is status 503."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=60) as answer:
            return dict(json.loads(answer.read()))
    except urllib.error.HTTPError as error:
        assert error.code == 503
        return dict(json.loads(error.read()))


def test_the_page_is_served_and_asks_for_nothing_outside(graph: LiveGraph) -> None:
    with urllib.request.urlopen(url_of(graph), timeout=60) as answer:
        text = answer.read().decode()
    assert "EMERGENCY STOP" in text
    assert "po-blend-d2" in text
    assert not re.findall(r'(?:src|href|from|import)\s*[=(]?\s*["\'](?:https?:)?//', text)


def test_an_emergency_stop_by_request_holds_and_only_a_release_ends_it(graph: LiveGraph, desk: Desk) -> None:
    graph.wait("its service", lambda: post(f"{url_of(graph)}emergency_stop")["held"])
    graph.wait("the stop", lambda: graph.state("positioning_simulator") == "EMERGENCY_STOP")
    graph.wait("the pause", lambda: graph.state("arbiter") == "PAUSED")
    assert "released" in eventually(graph, lambda: desk.emergency_stop(stopped=False))
    graph.wait("the release", lambda: graph.state("positioning_simulator") != "EMERGENCY_STOP")
    assert done(desk.call("resume")) == "resumed"
    graph.wait_for_steps()


def test_pause_holds_and_resume_goes_on(graph: LiveGraph, desk: Desk) -> None:
    assert eventually(graph, lambda: desk.call("pause")) == "paused"
    graph.wait("the pause", lambda: graph.state("arbiter") == "PAUSED")
    assert done(desk.call("resume")) == "resumed"
    graph.wait_for_steps()


def test_settings_are_parameters_of_the_arbiter_which_refuses_what_is_out_of_range(
    graph: LiveGraph, desk: Desk
) -> None:
    eventually(graph, lambda: desk.set("budget", 3))
    assert "allowed" in str(refusal(desk.set("p", 1.5)))
    assert done(desk.set("mode", "shadow")) == "mode is shadow"
    graph.wait("the mode", lambda: graph.status["arbiter"].get("mode") == "shadow")
    assert done(desk.set("mode", "collect")) == "mode is collect"


def refusal(doing: Coroutine[Any, Any, str]) -> UserError:
    with pytest.raises(UserError) as caught:
        done(doing)
    return caught.value


def test_a_model_is_swapped_and_what_is_none_is_refused(graph: LiveGraph, desk: Desk) -> None:
    path = graph.folder / "models" / "one.safetensors"
    hash_of_it = write_model(path, 2, 2, 0.3)
    assert desk.models() == [str(path)]
    assert done(desk.serve_model(str(path))) == "one.safetensors is announced to the augmentor"
    graph.wait("the swap", lambda: graph.status["augmentor"].get("model") == hash_of_it)
    other = path.with_name("other.safetensors")
    other.write_bytes(b"no model")
    assert "other.safetensors" in str(refusal(desk.serve_model(str(other))))
    other.unlink()


def test_the_graph_goes_on_while_the_page_dies_and_comes_back(graph: LiveGraph) -> None:
    graph.processes["page"].kill()
    graph.wait_for_steps(20)
    before, starts = len(graph.seen[qos.EPISODE]), len(urls_of(graph))
    graph.start("page", address="127.0.0.1:0", run=str(graph.folder / "run"))
    graph.wait("the page again", lambda: len(urls_of(graph)) > starts)
    graph.wait("another episode", lambda: len(graph.seen[qos.EPISODE]) > before)
    assert post(f"{url_of(graph)}emergency_stop")
    assert graph.processes["page"].end() == 0


def test_a_graph_without_a_plant_says_that_nobody_stops(tmp_path: Path) -> None:
    with live_graph(tmp_path) as lonely:
        lonely.start("page", address="127.0.0.1:0")
        lonely.wait("the page", lambda: lonely.state("page"))
        said = post(f"{url_of(lonely)}emergency_stop")
        assert (said["held"], said["words"]) == (False, "nobody answers the service emergency_stop")
