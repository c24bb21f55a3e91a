"""The two topics of every run."""

from __future__ import annotations

import json

from lift_ros.bags.mcap_records import RecordedTopic
from lift_ros.messages.definitions import full_definition, type_hash, type_name

_FOREVER = {"sec": 9223372036, "nsec": 854775807}
# As the arbiter offers both topics.
_QOS = {
    "history": "keep_last",
    "depth": 1000,
    "reliability": "reliable",
    "durability": "volatile",
    "deadline": _FOREVER,
    "lifespan": _FOREVER,
    "liveliness": "automatic",
    "liveliness_lease_duration": _FOREVER,
    "avoid_ros_namespace_conventions": False,
}


def _topic(name: str, message: str) -> RecordedTopic:
    return RecordedTopic(name, type_name(message), full_definition(message), type_hash(message), json.dumps([_QOS]))


STEP = _topic("/lift/step", "Step")
EPISODE = _topic("/lift/episode", "Episode")
