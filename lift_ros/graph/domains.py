"""ROS domains on this machine: reserving one for a graph, and whether further nodes would find each other there."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.graph.transport import DOMAIN

LAST_DOMAIN = 232  # above it the ports of a domain do not exist
# Above 101 the ports of a domain reach into those that Linux hands out to anybody; 0 is where strangers meet.
OWN_DOMAINS = range(1, 101)
# On loopback a node announces itself to so many others (`maxInitialPeersRange` of our profile); beyond
# this machine there is no such limit, but Fast DDS looks at so many ports for a free one and then goes on without.
LOOPBACK_ROOM, ROOM = 64, 101
_FIRST_PORT, _PORTS_PER_DOMAIN, _FIRST_UNICAST = 7400, 250, 10
_TABLES = ("/proc/net/udp", "/proc/net/udp6")


def given_domain() -> int | None:
    """Return the domain that the user has chosen, None where nothing is chosen; refuse one that does not exist."""
    given = os.environ.get(DOMAIN, "")
    if given and not (given.isdecimal() and int(given) <= LAST_DOMAIN):
        raise UserError(f"{DOMAIN} is {given!r}; allowed: a whole number from 0 to {LAST_DOMAIN}, or unset it for 0")
    return int(given) if given else None


@contextlib.contextmanager
def reserved_domain() -> Iterator[int]:
    """Reserve a domain in which nobody is, against all other graphs on this machine; the end of the process frees it.

    The lock is a name in the abstract name space of sockets: the kernel keeps it for as long as this process lives,
    for all users, and within the network that the domain's ports belong to.
    """
    taken = _taken_ports()
    start = os.getpid() % len(OWN_DOMAINS)  # so that graphs that start together look at different ones first
    for domain in (*OWN_DOMAINS[start:], *OWN_DOMAINS[:start]):
        if not taken.isdisjoint(range(*_ports(domain))):
            continue
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
            try:
                lock.bind(f"\0lift_ros_domain_{domain}")
            except OSError:
                continue
            yield domain
            return
    raise UserError(
        f"all ROS domains from {OWN_DOMAINS[0]} to {OWN_DOMAINS[-1]} are in use on this machine; end a graph, or "
        f"choose a domain to share with {DOMAIN}"
    )


def participants(domain: int) -> int:
    """Return how many processes of this machine take part in a domain."""
    first, last = _ports(domain)
    return len(_taken_ports() & set(range(first + _FIRST_UNICAST, last, 2)))


def check_room(domain: int, wanted: int, *, loopback: bool) -> None:
    """Refuse a domain so crowded that nodes which join it would not find each other."""
    room, there = LOOPBACK_ROOM if loopback else ROOM, participants(domain)
    if there + wanted > room:
        raise UserError(
            f"ROS domain {domain} has {there} participants on this machine and {wanted} more would join, but only "
            f"{room} find each other; end some of them, or choose another domain with {DOMAIN}"
        )


def _ports(domain: int) -> tuple[int, int]:
    first = _FIRST_PORT + _PORTS_PER_DOMAIN * domain
    return first, first + _PORTS_PER_DOMAIN


def _taken_ports() -> set[int]:
    """Return the UDP ports that sockets of this machine are bound to."""
    tables = [Path(name).read_text() for name in _TABLES if Path(name).exists()]
    rows = [row for table in tables for row in table.splitlines()[1:]]
    return {int(row.split()[1].rpartition(":")[2], 16) for row in rows}
