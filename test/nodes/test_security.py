"""The SROS 2 policy says what the nodes really do: the table that it is made from is held against a living graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from live_graph import LiveGraph, live_graph

from lift_ros.cli import main
from lift_ros.graph.channels import PLANT, ROLES, SERVICES, TOPICS
from lift_ros.graph.security import make_policy

pytest.importorskip("pymmcore", reason="pip install 'lift_ros[micromanager]', which the rig is tried with")

PLANTS = ("positioning_simulator", "fetch_simulator", "loopback_hardware", "rig")
NODES = (*PLANTS, *(role for role in ROLES if role != PLANT))
Names = dict[str, set[str]]
ONLY_WHILE_LOOKED_AT = {"page": ["image", "glimpse"]}  # heard while a browser is open, and then not any more


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGraph]:
    """All nodes at once, with nothing to do."""
    with live_graph(tmp_path_factory.mktemp("graph")) as graph:
        graph.start_idle(NODES)
        graph.wait("all nodes", lambda: {*NODES} <= {*graph.node.get_node_names()})
        graph.wait("their words", lambda: all(map(graph.state, NODES)))
        yield graph


def done(graph: LiveGraph, node: str) -> dict[str, set[str]]:
    """Return what a node speaks, hears and answers, by full names."""
    observer, namespace = graph.node, f"/{graph.namespace}"
    asked = {
        "publish": observer.get_publisher_names_and_types_by_node,
        "subscribe": observer.get_subscriber_names_and_types_by_node,
        "reply": observer.get_service_names_and_types_by_node,
    }
    return {what: {name for name, _ in ask(node, namespace)} for what, ask in asked.items()}


def allowed(policy: str, namespace: str) -> dict[str, Names]:
    """Return what a policy allows to each node, by full names."""
    found: dict[str, Names] = {}
    for profile in ElementTree.fromstring(policy).iter("profile"):
        node = profile.attrib["node"]
        names = found.setdefault(node, defaultdict(set))
        for rule in profile:
            ((what, verdict),) = rule.attrib.items()
            assert verdict == "ALLOW"
            names[what] |= {full(item.text or "", namespace, node) for item in rule}
    return found


def full(name: str, namespace: str, node: str) -> str:
    if name.startswith("~/"):
        return f"/{namespace}/{node}/{name[2:]}"
    return name if name.startswith("/") else f"/{namespace}/{name}"


@pytest.mark.parametrize("node", NODES)
def test_a_node_may_do_all_that_it_does(graph: LiveGraph, node: str) -> None:
    permitted = allowed(make_policy(graph.namespace, PLANTS), graph.namespace)[node]
    does = done(graph, node)
    assert {what: names - permitted[what] for what, names in does.items()} == {what: set() for what in does}


@pytest.mark.parametrize("role", ROLES)
def test_the_table_allows_nothing_that_nobody_does(graph: LiveGraph, role: str) -> None:
    nodes = PLANTS if role == PLANT else (role,)
    does = {
        what: set().union(*(done(graph, node)[what] for node in nodes)) for what in ("publish", "subscribe", "reply")
    }
    wanted = {
        "publish": [topic.name for topic in TOPICS if role in topic.speakers],
        "subscribe": [topic.name for topic in TOPICS if role in topic.listeners],
        "reply": SERVICES.get(role, ()),
    }
    does["subscribe"] |= {full(name, graph.namespace, role) for name in ONLY_WHILE_LOOKED_AT.get(role, ())}
    for what, names in wanted.items():
        assert {full(name, graph.namespace, role) for name in names} - does[what] == set(), what


def test_only_the_arbiter_moves_the_plant_and_viewers_only_look() -> None:
    rights = allowed(make_policy("lens", ["stage"], ["/force"]), "lens")
    assert [node for node, right in rights.items() if "/lens/command" in right["publish"]] == ["arbiter"]
    assert [node for node, right in rights.items() if "/lens/observation" in right["publish"]] == ["stage"]
    assert [node for node, right in rights.items() if "/force" in right["subscribe"]] == ["recorder"]
    assert [node for node, right in rights.items() if right["request"]] == ["page", "operator"]
    assert rights["page"]["request"] == rights["operator"]["request"]
    assert "/lens/emergency_stop" in rights["operator"]["request"]
    assert rights["viewer"]["publish"] == {"/rosout", "/parameter_events"}


def test_the_command_prints_the_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["security", "--namespace", "lens", "--plant", "stage"]) == 0
    paths = [entry.attrib["path"] for entry in ElementTree.fromstring(capsys.readouterr().out).iter("enclave")]
    assert paths[:2] == ["/lens/stage", "/lens/arbiter"]
    assert main(["security", "--namespace", "7 seas"]) == 2


def test_the_page_names_the_policys_enclaves() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    assert "lift security" in page
    for name in ("viewer", "operator"):
        assert f"`/lift/{name}`" in page
