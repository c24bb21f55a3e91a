"""Domains are reserved against each other, and one that is too crowded is refused in a sentence."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lift_ros.errors import UserError
from lift_ros.graph.domains import LOOPBACK_ROOM, OWN_DOMAINS, check_room, given_domain, participants, reserved_domain
from lift_ros.graph.transport import DOMAIN

HOLD = """
from lift_ros.graph.domains import reserved_domain
with reserved_domain() as domain:
    print(domain, flush=True)
    input()
"""


@contextlib.contextmanager
def taken(domain: int, count: int) -> Iterator[None]:
    """Bind the ports that so many participants of a domain would have."""
    with contextlib.ExitStack() as sockets:
        for number in range(count):
            port = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            port.bind(("127.0.0.1", 7400 + 250 * domain + 10 + 2 * number))
        yield


def test_domains_reserved_at_the_same_time_differ() -> None:
    with contextlib.ExitStack() as held:
        domains = [held.enter_context(reserved_domain()) for _ in range(8)]
    assert len(set(domains)) == 8
    assert set(domains) <= set(OWN_DOMAINS)


def test_a_domain_is_free_again_when_its_process_was_killed() -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdin is not None
    domain = int(holder.stdout.readline())
    lock = f"\0lift_ros_domain_{domain}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other, pytest.raises(OSError, match="in use"):
        other.bind(lock)
    holder.kill()
    holder.communicate()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(lock)


def test_a_domain_in_which_somebody_is_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with reserved_domain() as first, taken(first, 1):
        monkeypatch.setattr("lift_ros.graph.domains.OWN_DOMAINS", (first,))
        with pytest.raises(UserError, match=rf"all ROS domains from {first} to {first} are in use"), reserved_domain():
            pass


def test_participants_are_counted() -> None:
    with reserved_domain() as domain:
        assert participants(domain) == 0
        with taken(domain, 5):
            assert participants(domain) == 5


def test_a_crowded_domain_is_refused_in_a_sentence() -> None:
    with reserved_domain() as domain, taken(domain, LOOPBACK_ROOM - 4):
        check_room(domain, 4, loopback=True)
        check_room(domain, 5, loopback=False)
        sentence = (
            f"ROS domain {domain} has 60 participants on this machine and 5 more would join, but only 64 find each"
        )
        with pytest.raises(UserError, match=sentence):
            check_room(domain, 5, loopback=True)


@pytest.mark.parametrize("domain", ["seven", "-1", "1.5", "233"])
def test_a_domain_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch, domain: str) -> None:
    monkeypatch.setenv(DOMAIN, domain)
    with pytest.raises(UserError, match=f"ROS_DOMAIN_ID is '{domain}'; allowed: a whole number from 0 to 232"):
        given_domain()
