"""The recorded message types as they ride in every bag, so that readers without this package decode it."""

from __future__ import annotations

STEP_TOPIC = "/lift/step"
EPISODE_TOPIC = "/lift/episode"
STEP_TYPE = "lift_ros/msg/Step"
EPISODE_TYPE = "lift_ros/msg/Episode"

# msg/*.msg without comments: they ride twice in every file, and msg/ is not beside the package in every kind of
# installation. A test compares them.
STEP_MSG = """\
uint8 SOURCE_LOGGING_POLICY=1
uint8 SOURCE_AUGMENTOR=2
uint8 REJECTION_NONE=0
uint8 REJECTION_MISSING=1
uint8 REJECTION_LATE=2
uint8 REJECTION_NOT_FINITE=3
uint8 REJECTION_WRONG_SIZE=4
uint8 REJECTION_TOO_LONG=5
uint8 REJECTION_OUTSIDE_WORKSPACE=6
uint8 REJECTION_STALE=7
std_msgs/Header header
uint32 episode
uint32 step
float64[<=64] observation
float64[<=64] position
float64[<=64] action
float64 reward
uint8 source
float64[<=64] logging_proposal
float64[<=64] augmentor_proposal
uint8 rejection
float64 draw
float64 p
uint32 augmentations_left
string<=64 model_hash
sensor_msgs/Image image
"""

EPISODE_MSG = """\
uint8 MODE_COLLECT=0
uint8 MODE_SHADOW=1
uint8 MODE_EVALUATE=2
uint8 OUTCOME_REACHED=1
uint8 OUTCOME_STEP_LIMIT=2
uint8 OUTCOME_ABORTED=3
uint8 OUTCOME_RECOVERED=4
std_msgs/Header header
builtin_interfaces/Time start
uint32 episode
uint64 seed
uint8 mode
uint8 outcome
string<=256 reason
uint32 steps
uint32 augmentations
float64 episode_return
float64[<=64] final_observation
float64[<=64] final_position
float64[<=64] goal
float64[<=4096] context
sensor_msgs/Image final_image
"""

_SEPARATOR = "=" * 80
_DEPENDENCIES = {
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id\n",
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec\n",
    "sensor_msgs/Image": (
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\n"
        "uint8 is_bigendian\nuint32 step\nuint8[] data\n"
    ),
}


def _with_dependencies(text: str) -> str:
    parts = [text, *(f"MSG: {name}\n{body}" for name, body in _DEPENDENCIES.items())]
    return f"{_SEPARATOR}\n".join(parts)


STEP_DEFINITION = _with_dependencies(STEP_MSG)
EPISODE_DEFINITION = _with_dependencies(EPISODE_MSG)

# REP 2011 hashes of the two types; a test computes them anew from msg/*.msg.
STEP_HASH = "RIHS01_9035ca2b56c83ebe1b592c7cb2194ffe56473b1dfdb38f41aeb764232ff25cba"
EPISODE_HASH = "RIHS01_e0ebfadcd7d4ea4ac8f09e6ba168f98cf37c9fbe0f5ea8902dfecb43589c02e4"

_FOREVER = {"sec": 9223372036, "nsec": 854775807}

# As the arbiter offers both topics.
QOS: list[dict[str, object]] = [
    {
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
]
