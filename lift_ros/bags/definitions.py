"""The recorded message types as they ride in every bag, so that readers without this package decode it."""

from __future__ import annotations

STEP_TOPIC = "/lift/step"
EPISODE_TOPIC = "/lift/episode"
STEP_TYPE = "lift_ros/msg/Step"
EPISODE_TYPE = "lift_ros/msg/Episode"

# Copies of msg/*.msg, which is not beside the package in every kind of installation; a test compares them.
STEP_MSG = """\
# One executed command and all that led to it, as it is recorded.

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

std_msgs/Header header              # stamp: when the command was given [s, ns]
uint32 episode                      # number of the episode [1]
uint32 step                         # number of the command in its episode [1]
float64[<=64] observation           # o_i [units of the rig]
float64[<=64] position              # s_i where it is known, else empty [units of the rig]
float64[<=64] action                # a_i [units of the rig]
float64 reward                      # r_i; NaN where unknown [units of the rig]
uint8 source                        # who acted: one of SOURCE_* [1]
float64[<=64] logging_proposal      # the routine's answer, empty where there was none [units of the rig]
float64[<=64] augmentor_proposal    # the augmentor's answer, empty where there was none [units of the rig]
uint8 rejection                     # why the augmentor's answer was not used, one of REJECTION_* [1]
float64 draw                        # u of the p-switch; NaN where none was drawn [1]
float64 p                           # probability of asking the augmentor to act [1]
uint32 augmentations_left           # budget left after this step [1]
string<=64 model_hash               # SHA-256 of the augmentor's model, empty where there was none [hex]
sensor_msgs/Image image             # camera picture seen with the observation; width 0 where there is none [pixels]
"""

EPISODE_MSG = """\
# The end of an episode, as it is recorded after its steps.

uint8 MODE_COLLECT=0
uint8 MODE_SHADOW=1
uint8 MODE_EVALUATE=2

uint8 OUTCOME_REACHED=1
uint8 OUTCOME_STEP_LIMIT=2
uint8 OUTCOME_ABORTED=3
uint8 OUTCOME_RECOVERED=4

std_msgs/Header header              # stamp: when the episode ended [s, ns]
builtin_interfaces/Time start       # when the episode began [s, ns]
uint32 episode                      # number of the episode [1]
uint64 seed                         # seed of the episode [1]
uint8 mode                          # one of MODE_* [1]
uint8 outcome                       # one of OUTCOME_* [1]
string<=256 reason                  # why it was aborted, else empty [text]
uint32 steps                        # commands executed [1]
uint32 augmentations                # of these by the augmentor [1]
float64 episode_return              # sum of rewards; NaN where unknown [units of the rig]
float64[<=64] final_observation     # what was seen after the last step [units of the rig]
float64[<=64] final_position        # position after the last step, empty where unknown [units of the rig]
float64[<=64] goal                  # s_W where known, else empty [units of the rig]
float64[<=4096] context             # W, flattened, where known, else empty [1]
sensor_msgs/Image final_image       # camera picture after the last step; width 0 where there is none [pixels]
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

# Reliable and complete, as the arbiter offers both topics.
QOS: list[dict[str, object]] = [
    {
        "history": "keep_all",
        "depth": 0,
        "reliability": "reliable",
        "durability": "volatile",
        "deadline": _FOREVER,
        "lifespan": _FOREVER,
        "liveliness": "automatic",
        "liveliness_lease_duration": _FOREVER,
        "avoid_ros_namespace_conventions": False,
    }
]
