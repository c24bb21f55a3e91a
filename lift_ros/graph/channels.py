"""Who speaks and who listens on which topic, and who answers which service: the graph's connections in one table.

A test holds it against the nodes themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lift_ros.graph import qos

# Roles: names of executables, but for the plant, which has many.
PLANT = "plant"
ARBITER, LOGGING_POLICY, AUGMENTOR, RECORDER = "arbiter", "logging_policy", "augmentor", "recorder"
TRAINER, MONITOR, PAGE = "trainer", "monitor", "page"
ROLES = (PLANT, ARBITER, LOGGING_POLICY, AUGMENTOR, RECORDER, TRAINER, MONITOR, PAGE)


@dataclass(frozen=True)
class Topic:
    """A topic with the roles at both of its ends; viewers may listen to all."""

    name: str
    speakers: Sequence[str]
    listeners: Sequence[str] = ()


TOPICS = (
    Topic(qos.OBSERVATION, [PLANT], [ARBITER, RECORDER]),
    Topic(qos.QUERY, [ARBITER], [LOGGING_POLICY, AUGMENTOR]),
    Topic(qos.PROPOSAL, [LOGGING_POLICY, AUGMENTOR], [ARBITER]),
    Topic(qos.COMMAND, [ARBITER], [PLANT]),
    Topic(qos.STEP, [ARBITER], [RECORDER, MONITOR]),
    Topic(qos.GLIMPSE, [RECORDER], [PAGE]),
    Topic(qos.EPISODE, [ARBITER], [RECORDER, MONITOR, PAGE]),
    Topic(qos.RECEIPT, [RECORDER], [ARBITER, TRAINER]),
    Topic(qos.READY, [RECORDER], [ARBITER]),
    Topic(qos.MODEL, [TRAINER, PAGE], [AUGMENTOR]),
    Topic(qos.MARKERS, [RECORDER]),
    Topic(qos.JOINT_STATES, [PLANT]),
    Topic(qos.IMAGE, [PLANT], [PAGE]),
    Topic(qos.DIAGNOSTICS, ROLES, [MONITOR, PAGE]),
    Topic(qos.PRESENCE, ROLES, ROLES),
)
SERVICES = {
    ARBITER: (qos.START, qos.PAUSE, qos.RESUME, qos.STOP),
    PLANT: (qos.EMERGENCY_STOP, qos.RESET_FAULT, qos.HOME),
}
