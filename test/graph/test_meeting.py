"""Where a graph's nodes meet, and what people are told where somebody is missing; nothing here starts a node."""

from __future__ import annotations

import pytest

from lift_ros.collection.exchange import Party
from lift_ros.graph.meeting import Place, explain_waiting
from lift_ros.graph.run import meeting_settings
from lift_ros.graph.table import HARDWARE, SIMULATOR
from lift_ros.graph.transport import DOMAIN, RANGE

PLACE = Place("/lift", 7, "SUBNET")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (DOMAIN, RANGE, "ROS_SECURITY_ENABLE"):
        monkeypatch.delenv(name, raising=False)


def test_with_hardware_the_users_domain_and_range_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with meeting_settings(HARDWARE) as settings:
        assert settings == {DOMAIN: "0"}
    monkeypatch.setenv(DOMAIN, "12")
    with meeting_settings(HARDWARE) as settings:
        assert settings == {DOMAIN: "12"}


def test_simulated_graphs_stay_on_this_machine_in_domains_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with meeting_settings(SIMULATOR) as settings, meeting_settings(SIMULATOR) as others:
        assert settings[RANGE] == others[RANGE] == "LOCALHOST"
        assert settings[DOMAIN] != others[DOMAIN]
    monkeypatch.setenv(DOMAIN, "0")
    with meeting_settings(SIMULATOR) as settings:
        assert settings == {DOMAIN: "0", RANGE: "LOCALHOST"}


def test_with_security_a_graph_stays_in_the_domain_of_its_permissions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    with meeting_settings(SIMULATOR) as settings:
        assert settings[DOMAIN] == "0"


def test_where_nobody_is_the_sentence_names_topic_namespace_domain_range_and_remedy() -> None:
    assert explain_waiting(Party.PLANT, PLACE, {"/lift/observation": []}) == (
        "Nobody publishes /lift/observation in domain 7 (discovery range SUBNET): start your plant node in namespace "
        "/lift, in a terminal with the same ROS_DOMAIN_ID and ROS_AUTOMATIC_DISCOVERY_RANGE."
    )
    assert "start the recorder in namespace /lift" in explain_waiting(Party.RECORDER, PLACE, {})
    assert "Nobody publishes /lift/proposal" in explain_waiting(Party.LOGGING_POLICY, PLACE, {})


@pytest.mark.parametrize(("topic", "namespace"), [("/lens/observation", "/lens"), ("/observation", "/")])
def test_a_node_in_another_namespace_is_named(topic: str, namespace: str) -> None:
    sentence = explain_waiting(Party.PLANT, PLACE, {topic: ["/lens/stage"], "/lift/observation": []})
    assert f"but /lens/stage publishes {topic}: start it with --ros-args -r __ns:=/lift" in sentence
    assert f"start the graph in namespace {namespace} (lift run --namespace)" in sentence


def test_a_node_that_is_there_but_silent_is_named() -> None:
    there = {"/lift/observation": ["/lift/stage"], "/lens/observation": ["/lens/stage"]}
    assert explain_waiting(Party.PLANT, PLACE, there) == (
        "/lift/stage publishes /lift/observation, but the plant has not answered yet; its log says why."
    )
    policies = {"/lift/proposal": ["/lift/logging_policy", "/lift/augmentor"]}
    assert "the augmentor has no model yet" in explain_waiting(Party.AUGMENTOR, PLACE, policies)


def test_topics_of_the_root_namespace_have_one_slash() -> None:
    assert Place("/", 0, "SUBNET").topic("observation") == "/observation"
