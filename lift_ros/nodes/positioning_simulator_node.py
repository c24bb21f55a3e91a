"""Executable `positioning_simulator`."""

from __future__ import annotations

from lift_ros.nodes.simulator import SimulatorNode


class PositioningSimulator(SimulatorNode):
    """Simulates an active positioning problem with a distorted world."""

    executable = "positioning_simulator"
    summary = "a plant: simulates the positioning problem of a scenario"
    kinds = ("positioning",)


main = PositioningSimulator.main
