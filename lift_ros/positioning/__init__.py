"""Active positioning problems: distortions, simulators and gymnasium environments."""

import gymnasium

from lift_ros.positioning.distortions import DISTORTIONS

__all__ = ["DISTORTIONS"]

ENVIRONMENT_ID = "lift/Positioning-v0"

if ENVIRONMENT_ID not in gymnasium.registry:
    gymnasium.register(ENVIRONMENT_ID, entry_point="lift_ros.positioning.environment:ActivePositioning")
