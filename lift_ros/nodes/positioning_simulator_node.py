"""Executable `positioning_simulator`: a plant node around a `Problem` that runs in process."""

from __future__ import annotations

import time
from dataclasses import replace

from lift_ros.array_types import FloatArray
from lift_ros.errors import UserError
from lift_ros.nodes.plant import PlantNode
from lift_ros.positioning.problem import Limits, Observed, Problem
from lift_ros.scenario import Scenario


class PositioningSimulator(PlantNode):
    """Simulates an active positioning problem with a distorted world, at once or in the given time per step."""

    executable = "positioning_simulator"
    summary = "a plant: simulates the positioning problem of a scenario"
    kinds: tuple[str, ...] = ("positioning", "lens", "light_tunnel", "sensors")  # of plants that this node simulates

    problem: Problem
    _observed: Observed
    _done_ns = 0

    def make_problem(self, scenario: Scenario) -> Problem:
        """Return the problem to simulate."""
        return scenario.make_problem()

    def make_limits(self) -> Limits:
        """Build the simulation and return its limits."""
        scenario = self.scenario
        if scenario.plant.kind not in self.kinds:
            raise UserError(
                f"scenario {scenario.name} has a plant of kind {scenario.plant.kind!r}, "
                f"{self.executable} simulates {', '.join(self.kinds)}"
            )
        self.problem = self.make_problem(scenario)
        # A simulation stops at its borders by itself, so no move can leave its workspace.
        return replace(self.problem.limits, workspace=None)

    def begin(self, seed: int) -> None:
        """Begin the episode of this seed."""
        self._observed = self.problem.reset(seed)

    def move(self, action: FloatArray) -> None:
        """Simulate one step."""
        self._done_ns = time.monotonic_ns() + int(self.value("step_time") * 1e9)
        self._observed = self.problem.step(action)

    def moving(self) -> bool:
        """Whether the step would still take time."""
        return time.monotonic_ns() < self._done_ns

    def read(self) -> Observed:
        """Return what the simulation gave."""
        return self._observed

    def hold(self) -> None:
        """Do nothing: a simulation moves only when it is told to."""
        self._done_ns = 0

    def close(self) -> None:
        """Release the simulation."""
        super().close()
        self.problem.close()


main = PositioningSimulator.main
