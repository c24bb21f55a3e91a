"""A network of a graph's own: no process outside can hear it, speak to it or join it.

`python -m lift_ros.graph.isolation` makes the network and keeps it until its input ends. It is a process of its own,
since Linux lets only one without threads leave for another user namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lift_ros.errors import UserError
from lift_ros.processes import end_with_parent, module_command

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1
_READY = "ready"


@dataclass(frozen=True)
class PrivateNetwork:
    """A network in which there is nothing but loopback."""

    keeper: int  # process id of who keeps it
    _namespaces: tuple[int, int]  # open files: of its user namespace, which must be joined first, and of the network

    def join(self) -> None:
        """Move this process, which must have one thread alone, into the network."""
        for namespace in self._namespaces:
            _call("setns", namespace, 0)

    def __str__(self) -> str:
        return (
            "the graph has a network of its own, which nobody else can join; look inside with nsenter "
            f"--preserve-credentials --user --net --target {self.keeper} COMMAND"
        )


@contextlib.contextmanager
def private_network() -> Iterator[PrivateNetwork]:
    """Make a private network for the duration of the block; refuse where the system does not allow it."""
    command = module_command("lift_ros.graph.isolation")
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper,
        contextlib.ExitStack() as files,
    ):
        assert keeper.stdout is not None
        said = keeper.stdout.readline().strip()
        if said != _READY:
            raise UserError(
                f"this system allows no private network ({said or 'it ended without a word'}); allow user namespaces "
                "(sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns), or run without "
                "--isolated"
            )
        folder = Path(f"/proc/{keeper.pid}/ns")
        user, net = (files.enter_context((folder / name).open()).fileno() for name in ("user", "net"))
        yield PrivateNetwork(keeper.pid, (user, net))


def _call(name: str, *arguments: int) -> None:
    """Call a function of the C library that Python 3.11 does not offer."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _make_network() -> None:
    """Leave for a new network, as the same user as before, and switch loopback on."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _CLONE_NEWUSER | _CLONE_NEWNET)
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", file).write_text(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP))


def main() -> int:
    """Make a network, say so or why not, and keep it until nobody needs it."""
    end_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, whose nodes need the network to end
    try:
        _make_network()
    except OSError as error:
        print(error.strerror, flush=True)
        return 1
    print(_READY, flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
