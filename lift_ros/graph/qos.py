"""Topics, services and their quality of service, named once; relative names live in the graph's namespace."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

NAMESPACE = "lift"

OBSERVATION = "observation"
QUERY = "query"
PROPOSAL = "proposal"
COMMAND = "command"
STEP = "step"
GLIMPSE = "glimpse"  # single steps for viewers
EPISODE = "episode"
MODEL = "model"
RECEIPT = "receipt"
READY = "ready"
PRESENCE = "presence"
MARKERS = "markers"
JOINT_STATES = "joint_states"
IMAGE = "image"
DIAGNOSTICS = "/diagnostics"

START = "start"
PAUSE = "pause"
RESUME = "resume"
STOP = "stop"
EMERGENCY_STOP = "emergency_stop"
RESET_FAULT = "reset_fault"
HOME = "home"  # of rigs whose axes have drivers


def quality(depth: int, *, reliable: bool = True, latched: bool = False) -> QoSProfile:
    """Return a profile that keeps the last `depth` messages."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


# Nothing of the loop may be lost while its receiver is busy, e.g. with loading a model or closing a file.
LOOP = quality(1000)
EMERGENCY = quality(10)
# Whoever comes late must learn which model serves and whether the recorder is ready.
LATCHED = quality(1, latched=True)
# For eyes only: a viewer that cannot keep up must not hold anybody up.
VIEW = quality(10)
GLANCE = quality(100, reliable=False)  # nobody waits for it and nothing is sent again
