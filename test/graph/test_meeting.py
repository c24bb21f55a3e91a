"""Where a graph's nodes meet, and what people are told where somebody is missing; nothing here starts a node."""

from __future__ import annotations

import pytest

from lift_ros.collection.exchange import Party
from lift_ros.errors import UserError
from lift_ros.graph.meeting import Place, explain_waiting
from lift_ros.graph.run import LAST_DOMAIN, meeting_settings
from lift_ros.graph.table import HARDWARE, SIMULATOR
from lift_ros.graph.transport import DOMAIN, LOCALHOST_ONLY, OLD_PROFILE, PROFILE, RANGE, discovery_range

PLACE = Place("/lift", 7, "SUBNET")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (DOMAIN, RANGE, PROFILE, OLD_PROFILE, LOCALHOST_ONLY):
        monkeypatch.delenv(name, raising=False)


def test_with_hardware_the_users_domain_and_range_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert meeting_settings(HARDWARE) == {DOMAIN: "0"}
    monkeypatch.setenv(DOMAIN, "12")
    assert meeting_settings(HARDWARE) == {DOMAIN: "12"}


def test_a_simulated_graph_stays_on_this_machine_in_a_domain_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = meeting_settings(SIMULATOR)
    assert settings[RANGE] == "LOCALHOST"
    assert 1 <= int(settings[DOMAIN]) <= 100
    monkeypatch.setenv(DOMAIN, "0")
    assert meeting_settings(SIMULATOR)[DOMAIN] == "0"


@pytest.mark.parametrize("domain", ["seven", "-1", "1.5", str(LAST_DOMAIN + 1)])
def test_a_domain_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch, domain: str) -> None:
    monkeypatch.setenv(DOMAIN, domain)
    with pytest.raises(UserError, match=f"ROS_DOMAIN_ID is '{domain}'; allowed: a whole number from 0 to 232"):
        meeting_settings(HARDWARE)


def test_the_range_is_what_nodes_really_have(monkeypatch: pytest.MonkeyPatch) -> None:
    assert discovery_range() == "SUBNET"
    monkeypatch.setenv(RANGE, "off")
    assert discovery_range() == "OFF"
    monkeypatch.setenv(RANGE, "SYSTEM_DEFAULT")
    monkeypatch.setenv(PROFILE, "/share/lift_ros/config/fastdds-loopback.xml")
    assert discovery_range() == "LOCALHOST"


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
