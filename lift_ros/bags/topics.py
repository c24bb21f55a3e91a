"""The two topics of every run."""

from __future__ import annotations

import json

from lift_ros.bags import definitions
from lift_ros.bags.records import RecordedTopic

_QOS = json.dumps(definitions.QOS)

STEP = RecordedTopic(
    definitions.STEP_TOPIC, definitions.STEP_TYPE, definitions.STEP_DEFINITION, definitions.STEP_HASH, _QOS
)
EPISODE = RecordedTopic(
    definitions.EPISODE_TOPIC, definitions.EPISODE_TYPE, definitions.EPISODE_DEFINITION, definitions.EPISODE_HASH, _QOS
)
