"""Topics, services and their quality of service, named once; relative names live in the graph's namespace."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

NAMESPACE = "lift"

OBSERVATION = "observation"
QUERY = "query"
PROPOSAL = "proposal"
COMMAND = "command"
STEP = "step"
EPISODE = "episode"
MODEL = "model"
RECEIPT = "receipt"
READY = "ready"
MARKERS = "markers"
JOINT_STATES = "joint_states"
IMAGE = "image"
DIAGNOSTICS = "/diagnostics"

START = "start"
PAUSE = "pause"
RESUME = "resume"
STOP = "stop"
EMERGENCY_STOP = "emergency_stop"

# Nothing of the loop may be lost while its receiver is busy, e.g. with loading a model or closing a file.
LOOP = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=1000, reliability=ReliabilityPolicy.RELIABLE)

# Whoever comes late must learn which model serves and whether the recorder is ready.
LATCHED = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)

# For eyes only: a viewer that cannot keep up must not hold anybody up.
VIEW = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=10, reliability=ReliabilityPolicy.RELIABLE)
