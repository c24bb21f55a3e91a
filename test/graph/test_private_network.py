"""A graph with a network of its own: nodes in it meet each other and nobody else, and it ends with the graph."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lift_ros.errors import UserError
from lift_ros.graph import isolation
from lift_ros.graph.isolation import private_network

TALK = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talker:
    talker.sendto(b"{word}", ("127.0.0.1", {port}))
"""
LISTEN = """
import socket
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("127.0.0.1", 0))
listener.settimeout(60)
print(listener.getsockname()[1], flush=True)
print(listener.recv(99).decode(), flush=True)
"""


@pytest.fixture(scope="module")
def allowed() -> None:
    """Skip where the system lets nobody have a network of their own; there the refusal is what counts."""
    try:
        with private_network():
            pass
    except UserError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("allowed")
def test_processes_in_it_hear_each_other_and_nobody_else() -> None:
    with private_network() as network:
        listener = subprocess.Popen(
            [sys.executable, "-c", LISTEN], stdout=subprocess.PIPE, text=True, preexec_fn=network.join
        )
        assert listener.stdout is not None
        port = int(listener.stdout.readline())
        for word, enter in (("outside", None), ("inside", network.join)):
            talk = [sys.executable, "-c", TALK.format(port=port, word=word)]
            subprocess.run(talk, check=True, preexec_fn=enter)
        assert listener.communicate(timeout=60)[0] == "inside\n"


@pytest.mark.usefixtures("allowed")
def test_it_has_loopback_alone_also_where_its_maker_has_threads() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with private_network() as network:
            cat = ["cat", "/proc/self/net/dev"]
            done = subprocess.run(cat, capture_output=True, text=True, check=True, preexec_fn=network.join)
    finally:
        stop.set()
        thread.join()
    assert [line.split(":")[0].strip() for line in done.stdout.splitlines()[2:]] == ["lo"]


@pytest.mark.usefixtures("allowed")
def test_files_are_written_as_the_same_user(tmp_path: Path) -> None:
    with private_network() as network:
        subprocess.run(["touch", tmp_path / "file"], check=True, preexec_fn=network.join)
    assert (tmp_path / "file").stat().st_uid == tmp_path.stat().st_uid


@pytest.mark.usefixtures("allowed")
def test_its_keeper_ends_with_the_block() -> None:
    with private_network() as network:
        assert Path(f"/proc/{network.keeper}").exists()
        assert f"--target {network.keeper} COMMAND" in str(network)
    assert not Path(f"/proc/{network.keeper}").exists()


def test_where_it_is_not_allowed_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = [sys.executable, "-c", "print('unshare: Operation not permitted')"]
    monkeypatch.setattr(isolation, "module_command", lambda name: refuse)
    with pytest.raises(UserError, match="no private network [(]unshare: Operation not permitted[)]"), private_network():
        pass
