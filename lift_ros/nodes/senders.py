"""Who is listened to: on each topic of the loop the one who was heard first, until it is gone.

Numbers and tokens keep the messages of two graphs apart where nobody means harm. They can be copied, a publisher's
identity cannot: the middleware attaches it to every message.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rclpy.node import Node
from std_msgs.msg import Empty

from lift_ros.collection.exchange import Ready
from lift_ros.graph import qos
from lift_ros.nodes.executor import with_sender

PRESENCE_SECONDS = 0.5
# A killed process stays in the graph for 20 s; one that used to say that it is there, and says so no more, is gone.
GONE_SECONDS = 4 * PRESENCE_SECONDS
LOOK_SECONDS = 0.1  # so often the graph is asked at most who publishes a topic
_PARTICIPANT = 12  # bytes of a publisher's identity that name its process
ANYONE = object()  # a role in which everybody is listened to


class Verdict(Enum):
    """What becomes of a message."""

    HEEDED = "its sender is the one who is listened to"
    UNKNOWN = "the graph does not know its sender yet; what matters is said again"
    STRANGER = "somebody else is listened to"
    CROWDED = "nobody is listened to, since more want to be than can"


@dataclass(frozen=True)
class Roles:
    """How many publishers a topic has, and which of their roles a message is of; each role has one publisher."""

    most: int = 1
    of: Callable[[Any], Hashable] = lambda _content: None
    run: Callable[[Any], str] = lambda content: str(content.run)  # the token that a message carries


RECORDS = Roles(run=lambda content: str(content[1]))  # of content that comes with its token
RECEIPTS = Roles(run=lambda content: str(content.token if isinstance(content, Ready) else content.run))


@dataclass(frozen=True, slots=True)
class Sender:
    """A publisher that the graph knows."""

    identity: bytes
    node: str
    is_ours: bool = False  # a node of this package in this namespace, which says that it is there


class Presence:
    """Says regularly that this process is there, whatever its node is busy with."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(Empty, qos.PRESENCE, qos.VIEW)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._say, name="presence", daemon=True)
        self._thread.start()

    def _say(self) -> None:
        while not self._ended.is_set():
            self._publisher.publish(Empty())
            self._ended.wait(PRESENCE_SECONDS)

    def close(self) -> None:
        """Say it no more."""
        self._ended.set()
        self._thread.join()


class Senders:
    """Judges messages by who sent them."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._pinned: dict[tuple[str, Hashable], bytes] = {}
        self._heard: dict[bytes, float] = {}  # when a process last said that it is there, or was first looked for
        self._looked: dict[str, tuple[float, list[Sender]]] = {}  # by topic
        node.create_subscription(Empty, qos.PRESENCE, with_sender(self._on_presence), qos.VIEW, raw=True)

    def _on_presence(self, _data: bytes, info: Any) -> None:
        self._heard[_identity(info)[:_PARTICIPANT]] = time.monotonic()

    def judge(self, topic: str, info: Any, role: Hashable = None, most: int = 1) -> Verdict:
        """Say whether a message is to be heeded: whoever comes first to a topic that is not crowded has its role.

        Nodes of ours come before all others: a script that publishes, too, neither takes their place nor is in the way.
        """
        identity = _identity(info)
        if identity and identity == self._pinned.get((topic, role)):
            return Verdict.HEEDED
        present = {sender.identity: sender for sender in self.present(topic)}
        if not identity:  # this ROS does not tell: as long as there is a stranger, nobody is listened to
            return Verdict.CROWDED if len(present) > most else Verdict.HEEDED
        sender, pinned = present.get(identity), present.get(self._pinned.get((topic, role), b""))
        if sender is None:
            return Verdict.UNKNOWN
        if pinned is not None and pinned.is_ours >= sender.is_ours:
            return Verdict.STRANGER
        if sum(rival.is_ours >= sender.is_ours for rival in present.values()) > most:
            return Verdict.CROWDED
        self._pinned[topic, role] = identity
        return Verdict.HEEDED

    def name(self, topic: str, info: Any) -> str:
        """Return the name of the node that sent a message, as far as the graph tells."""
        identity = _identity(info)
        return next((each.node for each in self._known(topic) if each.identity == identity), "a node without a name")

    def present(self, topic: str) -> list[Sender]:
        """Return who publishes a topic and is not gone."""
        ours = {sender.identity[:_PARTICIPANT] for sender in self._known(qos.PRESENCE)}
        return [
            Sender(sender.identity, sender.node, is_ours)
            for sender in self._known(topic)
            if not (is_ours := sender.identity[:_PARTICIPANT] in ours) or self._speaks(sender.identity[:_PARTICIPANT])
        ]

    def _known(self, topic: str) -> list[Sender]:
        now = time.monotonic()
        looked, known = self._looked.get(topic, (-math.inf, []))
        if now - looked >= LOOK_SECONDS:
            known = [
                Sender(bytes(info.endpoint_gid), f"{info.node_namespace.rstrip('/')}/{info.node_name}")
                for info in self._node.get_publishers_info_by_topic(topic)
            ]
            self._looked[topic] = (now, known)
        return known

    def _speaks(self, process: bytes) -> bool:
        """Whether a process of ours still says that it is there."""
        return time.monotonic() - self._heard.setdefault(process, time.monotonic()) <= GONE_SECONDS


def _identity(info: Any) -> bytes:
    gid = info.get("publisher_gid")
    return bytes(gid["data"]) if gid else b""
