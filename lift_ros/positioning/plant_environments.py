"""Plants with pictures or sensors as gymnasium environments, registered when this is imported.

`gymnasium.make("lift_ros.positioning.plant_environments:lift/Lens-v0")` imports it by itself. Keyword arguments are the
parameters of the kind of plant, as in a scenario.
"""

from __future__ import annotations

from typing import Any, Literal, SupportsFloat

import gymnasium
import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.configuration import check_mapping
from lift_ros.errors import UserError
from lift_ros.positioning.environment import SEED_LIMIT
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.positioning.plants import PLANTS
from lift_ros.positioning.problem import Observed

Info = dict[str, Any]
SeenKind = Literal["image", "values", "both"]
SEEN_KINDS: tuple[SeenKind, ...] = ("image", "values", "both")

# By identifier: the kind of plant, and what differs from its defaults.
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "lift/Lens-v0": {"kind": "lens"},
    "lift/LightTunnel-v0": {"kind": "light_tunnel"},
    "lift/Sensors-v0": {"kind": "sensors", "observation": "values"},
    "lift/FetchReach-v0": {"kind": "fetch_reach", "picture_size": 64},
    "lift/FetchTouchAndPlace-v0": {"kind": "fetch_touch_and_place", "picture_size": 64, "step_limit": 600},
}
_FARTHEST = 2.0  # entries of values: displacements within [−1, 1]^d, readings about 1, or metres

for _name, _arguments in ENVIRONMENTS.items():
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=f"{__name__}:PlantEnvironment", kwargs=_arguments)


class PlantEnvironment(gymnasium.Env[Any, FloatArray]):
    """A plant of a scenario whose observation is its picture, its values, or a dictionary of both.

    The action space is the box around the ball of radius λ; a longer action is shortened onto the ball. `info` carries
    position, goal and values, whatever is observed.
    """

    def __init__(
        self, kind: str, observation: SeenKind = "image", render_mode: str | None = None, **parameters: Any
    ) -> None:
        if render_mode is not None:
            raise UserError(f"{kind} shows its picture in observations: leave out render_mode={render_mode!r}")
        plant = PLANTS[kind]
        given = check_mapping(parameters, plant.keys, kind)
        limits = plant.limits(given)
        values = gymnasium.spaces.Box(-_FARTHEST, _FARTHEST, (limits.observation_size,), np.float64)
        self.observation_space = _space(observation, values, limits.picture)
        radius = limits.action_radius
        self.action_space = gymnasium.spaces.Box(-radius, radius, (limits.action_size,), np.float64)
        self.metadata = {"render_modes": []}
        self.render_mode = None
        self._seen_kind = observation
        self._problem = plant.build(given, None)
        self._step_limit = limits.step_limit
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Info]:
        """Begin the episode of this seed, or the next one of the environment's own stream."""
        super().reset(seed=seed)
        self._steps = 0
        observed = self._problem.reset(int(self.np_random.integers(SEED_LIMIT)) if seed is None else seed)
        return self._seen(observed), _info(observed)

    def step(self, action: FloatArray) -> tuple[Any, SupportsFloat, bool, bool, Info]:
        """Apply one action."""
        observed = self._problem.step(action)
        self._steps += 1
        truncated = not observed.terminated and self._steps >= self._step_limit
        return self._seen(observed), observed.reward, observed.terminated, truncated, _info(observed)

    def close(self) -> None:
        """Release the plant."""
        self._problem.close()

    def _seen(self, observed: Observed) -> Any:
        if self._seen_kind == "values":
            return observed.values
        return observed.image if self._seen_kind == "image" else {"values": observed.values, "image": observed.image}


def _info(observed: Observed) -> Info:
    return {"position": observed.position, "goal": observed.goal, "values": observed.values}


def _space(observation: str, values: gymnasium.spaces.Box, picture: PictureFormat | None) -> gymnasium.Space[Any]:
    if observation not in SEEN_KINDS:
        raise UserError(f"observation is {observation!r}; allowed: {', '.join(SEEN_KINDS)}")
    if observation == "values":
        return values
    if picture is None:
        raise UserError(f"observation is {observation!r}, but this plant sends no picture; allowed: values")
    low, high = (-1.0, 1.0) if picture.dtype.kind == "f" else (0, np.iinfo(picture.dtype).max)
    image = gymnasium.spaces.Box(low, high, picture.shape, picture.dtype.type)
    return image if observation == "image" else gymnasium.spaces.Dict({"values": values, "image": image})
