"""Who is listened to: on each topic of the loop the one who was heard first, until it is gone.

Numbers and tokens keep the messages of two graphs apart where nobody means harm. They can be copied, a publisher's
identity cannot: the middleware attaches it to every message.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node
from std_msgs.msg import Empty

from lift_ros.graph import qos

PRESENCE_SECONDS = 0.5
# A killed process stays in the graph for 20 s; one that has said that it is there, and says so no more, is gone earlier.
GONE_SECONDS = 4 * PRESENCE_SECONDS
_PARTICIPANT = 12  # bytes of a publisher's identity that name its process


@dataclass(frozen=True, slots=True)
class Sender:
    """A publisher that the graph knows."""

    identity: bytes
    node: str


class Presence:
    """Says regularly that this process is there, whatever its node is busy with."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(Empty, qos.PRESENCE, qos.VIEW)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._say, name="presence", daemon=True)
        self._thread.start()

    def _say(self) -> None:
        while not self._ended.wait(PRESENCE_SECONDS):
            self._publisher.publish(Empty())

    def close(self) -> None:
        """Say it no more."""
        self._ended.set()
        self._thread.join()


class Senders:
    """Admits messages of whoever is pinned to a topic; `stranger` is called with the topic and a name for all others."""

    def __init__(self, node: Node, stranger: Callable[[str, str], None]) -> None:
        self._node = node
        self._stranger = stranger
        self._pinned: dict[tuple[str, Hashable], bytes] = {}
        self._heard: dict[bytes, float] = {}  # when a process last said that it is there
        node.create_subscription(Empty, qos.PRESENCE, self._on_presence, qos.VIEW, raw=True)

    def _on_presence(self, _data: bytes, info: Any) -> None:
        self._heard[_identity(info)[:_PARTICIPANT]] = time.monotonic()

    def admits(self, topic: str, info: Any, key: Hashable = None, most: int = 1) -> bool:
        """Return whether a message is to be heeded; `most` publishers may share a topic, one for each `key`."""
        identity = _identity(info)
        pinned = self._pinned.get((topic, key))
        if identity == pinned:
            return True
        present = self.present(topic)
        names = {sender.identity: sender.node for sender in present}
        if identity not in names:
            return False  # the graph does not know it yet; what matters is said again
        if pinned in names or len(present) > most:
            self._stranger(topic, names[identity])
            return False
        self._pinned[topic, key] = identity
        return True

    def present(self, topic: str) -> list[Sender]:
        """Return who publishes a topic and is not gone."""
        return [sender for sender in self._known(topic) if not self._is_gone(sender.identity)]

    def others(self, topic: str, own: Iterable[bytes] = ()) -> list[str]:
        """Return the names of those who publish a topic, without `own` publishers."""
        ours = set(own)
        return [sender.node for sender in self.present(topic) if sender.identity not in ours]

    def _known(self, topic: str) -> list[Sender]:
        return [
            Sender(bytes(info.endpoint_gid), f"{info.node_namespace.rstrip('/')}/{info.node_name}")
            for info in self._node.get_publishers_info_by_topic(topic)
        ]

    def _is_gone(self, identity: bytes) -> bool:
        heard = self._heard.get(identity[:_PARTICIPANT])
        return heard is not None and time.monotonic() - heard > GONE_SECONDS


def _identity(info: Any) -> bytes:
    gid = info.get("publisher_gid")
    return bytes(gid["data"]) if gid else b""
