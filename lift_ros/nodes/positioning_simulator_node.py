"""Executable `positioning_simulator`."""

from __future__ import annotations

import sys

from lift_ros.nodes.base import run
from lift_ros.nodes.simulator import SimulatorNode


class PositioningSimulator(SimulatorNode):
    """Simulates an active positioning problem with a distorted world."""

    executable = "positioning_simulator"
    summary = "a plant: simulates the positioning problem of a scenario"
    kinds = ("positioning",)


def main() -> int:
    """Run the node."""
    return run(PositioningSimulator)


if __name__ == "__main__":
    sys.exit(main())
