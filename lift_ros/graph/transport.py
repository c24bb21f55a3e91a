"""How Fast DDS carries messages: by UDP alone.

Its shared memory is no faster for messages of this size, and a process killed while it writes there can silence a
living one for good: everything still matches, but nothing arrives any more.
"""

from __future__ import annotations

import os

from lift_ros.distribution import distribution
from lift_ros.scenario import config_folder

DOMAIN = "ROS_DOMAIN_ID"
RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
LOCALHOST_ONLY = "ROS_LOCALHOST_ONLY"  # older, and still obeyed
LOOPBACK = "fastdds-loopback.xml"
PROFILE = "FASTDDS_DEFAULT_PROFILES_FILE"
OLD_PROFILE = "FASTRTPS_DEFAULT_PROFILES_FILE"  # the same for Fast DDS 2, which Jazzy has; later ones warn of it
BUILTIN = "FASTDDS_BUILTIN_TRANSPORTS"


def transport_settings() -> dict[str, str]:
    """Return the environment that makes Fast DDS speak UDP alone; none where the user has settings of their own.

    With the discovery range LOCALHOST ROS adds shared memory whatever Fast DDS is told, so a profile does the same
    without it: discovery and data stay on loopback.
    """
    if any(os.environ.get(name) for name in (PROFILE, OLD_PROFILE, BUILTIN)):
        return {}
    if os.environ.get(RANGE, "").upper() != "LOCALHOST":
        return {BUILTIN: "UDPv4"}
    profile = str(config_folder() / LOOPBACK)
    return {OLD_PROFILE if distribution() == "jazzy" else PROFILE: profile, RANGE: "SYSTEM_DEFAULT"}


def discovery_range() -> str:
    """Return how far nodes of this process look for others, whether or not `prepare_transport` was called before."""
    profiles = [os.environ.get(name, "") for name in (PROFILE, OLD_PROFILE)]
    if os.environ.get(LOCALHOST_ONLY) == "1" or any(profile.endswith(LOOPBACK) for profile in profiles):
        return "LOCALHOST"
    return os.environ.get(RANGE, "").upper() or "SUBNET"


def prepare_transport() -> None:
    """Make all ROS nodes of this process speak UDP alone, for its whole life; children inherit that."""
    os.environ.update(transport_settings())
