"""How messages are carried: within this machine unless the user says otherwise, and by Fast DDS over UDP alone.

Shared memory is no faster for messages of this size, and a process killed while it writes there can silence a
living one for good: everything still matches, but nothing arrives any more.
"""

from __future__ import annotations

import os

from lift_ros.distribution import distribution
from lift_ros.scenario import config_folder

DOMAIN = "ROS_DOMAIN_ID"
RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
LOCALHOST = "LOCALHOST"  # the range that ends at this machine
LOCALHOST_ONLY = "ROS_LOCALHOST_ONLY"  # older, and still obeyed
FARTHER = ("ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")  # they name other machines
MIDDLEWARE = "RMW_IMPLEMENTATION"
FAST_DDS = "rmw_fastrtps"  # there are two of them, and one is the default
LOOPBACK = "fastdds-loopback.xml"
PROFILE = "FASTDDS_DEFAULT_PROFILES_FILE"
OLD_PROFILE = "FASTRTPS_DEFAULT_PROFILES_FILE"  # the same for Fast DDS 2, which Jazzy has; later ones warn of it
BUILTIN = "FASTDDS_BUILTIN_TRANSPORTS"


def discovery_range() -> str:
    """Return how far nodes of this process look for others: no farther than this machine, unless the user says so.

    That holds before and after `prepare_transport`.
    """
    profiles = [os.environ.get(name, "") for name in (PROFILE, OLD_PROFILE)]
    if os.environ.get(LOCALHOST_ONLY) == "1" or any(profile.endswith(LOOPBACK) for profile in profiles):
        return LOCALHOST
    return os.environ.get(RANGE, "").upper() or ("SUBNET" if _names_others() else LOCALHOST)


def _names_others() -> bool:
    """Whether the user has told where other machines are, or how to look for them."""
    return os.environ.get(LOCALHOST_ONLY) == "0" or any(map(os.environ.get, (PROFILE, OLD_PROFILE, *FARTHER)))


def transport_settings() -> dict[str, str]:
    """Return the environment that keeps nodes within `discovery_range` and makes Fast DDS speak UDP alone.

    Where the user has settings of their own for Fast DDS, these stay as they are. With the discovery range LOCALHOST
    ROS adds shared memory whatever Fast DDS is told, so a profile does the same without it: discovery and data stay on
    loopback. Other middlewares know the range alone.
    """
    if any(map(os.environ.get, (PROFILE, OLD_PROFILE))):
        return {}
    reach = discovery_range()
    if os.environ.get(BUILTIN) or not (os.environ.get(MIDDLEWARE) or FAST_DDS).startswith(FAST_DDS):
        return {RANGE: reach}
    if reach != LOCALHOST or os.environ.get(LOCALHOST_ONLY) == "1":
        return {BUILTIN: "UDPv4"}
    profile = str(config_folder() / LOOPBACK)
    return {OLD_PROFILE if distribution() == "jazzy" else PROFILE: profile, RANGE: "SYSTEM_DEFAULT"}


def prepare_transport() -> None:
    """Make all ROS nodes of this process speak UDP alone, for its whole life; children inherit that."""
    os.environ.update(transport_settings())
