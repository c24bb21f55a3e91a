"""Nodes speak UDP alone, unless the user has settings of their own."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from isolation import udp_alone
from lone_node import lone_node

from lift_ros.graph.transport import (
    BUILTIN,
    FARTHER,
    LOCALHOST_ONLY,
    LOOPBACK,
    MIDDLEWARE,
    OLD_PROFILE,
    PROFILE,
    RANGE,
    discovery_range,
    transport_settings,
)
from lift_ros.nodes.loopback_hardware_node import LoopbackHardware


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (BUILTIN, PROFILE, OLD_PROFILE, LOCALHOST_ONLY, MIDDLEWARE, *FARTHER, "ROS_DISTRO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(RANGE, "LOCALHOST")


def test_loopback_is_kept_by_a_profile_that_exists() -> None:
    settings = transport_settings()
    (profile,) = (value for name, value in settings.items() if name in (PROFILE, OLD_PROFILE))
    assert "127.0.0.1" in Path(profile).read_text()
    assert settings[RANGE] == "SYSTEM_DEFAULT"


def test_beyond_this_machine_only_the_transport_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RANGE, "SUBNET")
    assert transport_settings() == {BUILTIN: "UDPv4"}


@pytest.mark.parametrize("name", [PROFILE, OLD_PROFILE])
def test_a_profile_of_the_user_is_left_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "/etc/mine.xml")
    assert transport_settings() == {}


def test_transports_of_the_user_are_left_alone_but_reach_no_farther(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RANGE)
    monkeypatch.setenv(BUILTIN, "LARGE_DATA")
    assert transport_settings() == {RANGE: "LOCALHOST"}


def test_nodes_stay_on_this_machine_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    told = transport_settings()
    monkeypatch.delenv(RANGE)
    assert discovery_range() == "LOCALHOST"
    assert transport_settings() == told


@pytest.mark.parametrize(
    ("name", "value", "reach"),
    [
        (RANGE, "subnet", "SUBNET"),
        (RANGE, "off", "OFF"),
        (LOCALHOST_ONLY, "0", "SUBNET"),
        (LOCALHOST_ONLY, "1", "LOCALHOST"),
        (PROFILE, "/etc/mine.xml", "SUBNET"),
        *((name, "10.0.0.7", "SUBNET") for name in FARTHER),
    ],
)
def test_whoever_says_otherwise_is_heard(monkeypatch: pytest.MonkeyPatch, name: str, value: str, reach: str) -> None:
    monkeypatch.delenv(RANGE)
    monkeypatch.setenv(name, value)
    assert discovery_range() == reach
    assert LOOPBACK not in str(transport_settings())


def test_the_range_is_the_same_after_it_was_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RANGE)
    for name, value in transport_settings().items():
        monkeypatch.setenv(name, value)
    assert discovery_range() == "LOCALHOST"
    assert transport_settings() == {}


def test_another_middleware_gets_the_range_that_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIDDLEWARE, "rmw_cyclonedds_cpp")
    assert transport_settings() == {RANGE: "LOCALHOST"}
    monkeypatch.setenv(MIDDLEWARE, "rmw_fastrtps_dynamic_cpp")
    assert RANGE in transport_settings() and len(transport_settings()) == 2


def test_jazzy_has_its_own_name_for_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    assert OLD_PROFILE in transport_settings()
    monkeypatch.setenv("ROS_DISTRO", "kilted")
    assert PROFILE in transport_settings()


def test_environment_is_as_before_afterwards() -> None:
    before = dict(os.environ)
    with udp_alone():
        assert os.environ != before
    assert dict(os.environ) == before


def threads() -> dict[str, str]:
    """Return the names of this process's threads by number; one may end while they are listed."""
    found = {}
    for path in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):
            found[path.parent.name] = path.read_text().strip()
    return found


def test_no_thread_of_a_node_serves_shared_memory() -> None:
    before = threads()
    with lone_node(LoopbackHardware):
        names = [name for number, name in threads().items() if number not in before]
    assert any(name.startswith("dds.udp") for name in names)
    assert not any(name.startswith("dds.shm") for name in names)
