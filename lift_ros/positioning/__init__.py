"""Active positioning problems: what is seen, what a move does, and when the goal is reached.

`problem` says what a plant's simulation offers and `plants` makes one by its kind; `distortions` and `dynamics` are
the paper's, `simulated` and `batched` run them, `environment` wraps them for gymnasium; `fetch` is the arm in MuJoCo.
"""

import gymnasium

from lift_ros.positioning.distortions import DISTORTIONS

__all__ = ["DISTORTIONS"]

ENVIRONMENT_ID = "lift/Positioning-v0"

if ENVIRONMENT_ID not in gymnasium.registry:
    gymnasium.register(ENVIRONMENT_ID, entry_point="lift_ros.positioning.environment:ActivePositioning")
