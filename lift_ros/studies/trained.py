"""What every training of a study gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lift_ros.policies.protocol import Policy


@dataclass(frozen=True)
class Trained:
    """A policy, and what its training tells."""

    policy: Policy
    facts: Mapping[str, Any] = field(default_factory=dict)
