"""Whether DDS security is switched on, and in which enclave a node finds its keys; needs no ROS."""

from __future__ import annotations

import os

ENABLE = "ROS_SECURITY_ENABLE"


def is_secured() -> bool:
    """Whether the user has switched DDS security on."""
    return os.environ.get(ENABLE, "").lower() == "true"


def enclave_words(namespace: str, name: str) -> list[str]:
    """Return the ROS arguments that lead a node to its keys; none where security is off."""
    return ["--enclave", enclave_of(namespace, name)] if is_secured() else []


def enclave_of(namespace: str, name: str) -> str:
    """Return the enclave of a node, which is named like the node."""
    return f"/{namespace.strip('/')}/{name}"
