"""Topics that a user wants in the bag besides the graph's own: found in the ROS graph, recorded byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from lift_ros.bags.files import EPISODE, STEP
from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.errors import UserError
from lift_ros.graph.qos import quality
from lift_ros.nodes.message_types import definition_file, message_class

DEPTH = 1000
Receive = Callable[[RecordedTopic, bytes], None]


class FurtherTopics:
    """Waits until somebody publishes each of the topics, then hands on what arrives."""

    def __init__(self, node: Node, names: Iterable[str], receive: Receive) -> None:
        self._node, self._receive = node, receive
        self.missing = {node.resolve_topic_name(name) for name in names}

    def look(self) -> None:
        """Subscribe to topics that have appeared since the last look; warn of those that nobody can record."""
        if not self.missing:
            return
        types = dict(self._node.get_topic_names_and_types())
        for name in sorted(self.missing & set(types)):
            self.missing.discard(name)
            try:
                self._subscribe(name, types[name])
            except (UserError, ImportError) as error:
                self._node.get_logger().error(f"topic {name} is not recorded: {error}")

    def _subscribe(self, name: str, types: list[str]) -> None:
        if len(types) > 1:
            raise UserError(f"it has several types ({', '.join(types)}); publish it with one")
        if types[0] in (STEP.type_name, EPISODE.type_name):
            raise UserError("it tells of steps or episodes, and a run holds those of its own graph alone")
        offered = [info.qos_profile for info in self._node.get_publishers_info_by_topic(name)]
        # What the least of all publishers offers reaches us from every one of them.
        reliable = all(profile.reliability == ReliabilityPolicy.RELIABLE for profile in offered)
        latched = bool(offered) and all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in offered)
        profile = quality(DEPTH, reliable=reliable, latched=latched)
        definition, type_hash = describe_type(types[0])
        topic = RecordedTopic(name, types[0], definition, type_hash, _qos_text(reliable, latched))
        kind = message_class(types[0])
        self._node.create_subscription(kind, name, lambda data: self._receive(topic, data), profile, raw=True)
        self._node.get_logger().info(f"records {name} ({types[0]}) along")


def _qos_text(reliable: bool, latched: bool) -> str:
    profile = {
        "history": "keep_last",
        "depth": DEPTH,
        "reliability": "reliable" if reliable else "best_effort",
        "durability": "transient_local" if latched else "volatile",
    }
    return json.dumps([profile])


def describe_type(type_name: str) -> tuple[str, str]:
    """Return the full definition of an installed message type and its hash, from the files that ROS has installed."""
    store = get_typestore(Stores.EMPTY)
    _register(type_name, store)
    definition, _ = store.generate_msgdef(type_name, ros_version=2)
    return definition, str(store.hash_rihs01(type_name))


def _register(type_name: str, store: Typestore) -> None:
    if type_name in store.fielddefs:
        return
    types: dict[str, Any] = get_types_from_msg(definition_file(type_name).read_text(encoding="utf-8"), type_name)
    for _, declared in types.values():
        for _, kind in declared:
            for other in _named_types(kind):
                _register(other, store)
    store.register(types)


def _named_types(kind: Any) -> list[str]:
    """Return the message types in what rosbags has parsed of a field: a name, or an array or sequence of one."""
    node, content = kind
    if node.name == "NAME":
        return [content]
    return _named_types(content[0]) if node.name in ("ARRAY", "SEQUENCE") else []
