"""The two topics of every run."""

from __future__ import annotations

import json

from lift_ros.bags import definitions
from lift_ros.bags.mcap_file import Topic

_QOS = json.dumps(definitions.QOS)

STEP = Topic(definitions.STEP_TOPIC, definitions.STEP_TYPE, definitions.STEP_DEFINITION, definitions.STEP_HASH, _QOS)
EPISODE = Topic(
    definitions.EPISODE_TOPIC, definitions.EPISODE_TYPE, definitions.EPISODE_DEFINITION, definitions.EPISODE_HASH, _QOS
)
