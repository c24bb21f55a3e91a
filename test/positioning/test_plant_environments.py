from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from lift_ros.errors import UserError
from lift_ros.positioning import plant_environments
from lift_ros.positioning.plant_environments import ENVIRONMENTS, PlantEnvironment

ON_PAPER = ("lift/Lens-v0", "lift/LightTunnel-v0")
FETCH = ("lift/FetchReach-v0", "lift/FetchTouchAndPlace-v0")
SMALL: dict[str, dict[str, Any]] = {name: {"picture_size": 16} for name in (*ON_PAPER, *FETCH)}


def make(name: str, **arguments: Any) -> PlantEnvironment:
    try:
        environment = gymnasium.make(name, **arguments).unwrapped
    except UserError as error:
        if name in FETCH:
            pytest.skip(f"no offscreen rendering here: {error}")
        raise
    assert isinstance(environment, PlantEnvironment)
    return environment


@pytest.mark.parametrize("observation", ["image", "values", "both"])
@pytest.mark.parametrize("name", ON_PAPER)
def test_gymnasium_accepts_plants_with_pictures(name: str, observation: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(name, observation=observation, **SMALL[name]))


def test_gymnasium_accepts_sensors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make("lift/Sensors-v0"))


@pytest.mark.parametrize("name", FETCH)
def test_gymnasium_accepts_fetch_with_pictures(name: str) -> None:
    pytest.importorskip("mujoco", reason="Fetch needs mujoco and gymnasium-robotics")
    environment = make(name, observation="both", cameras=2, **SMALL[name])
    assert environment.observation_space["image"].shape == (16, 32, 3)  # type: ignore[index]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(environment)
    environment.close()


@pytest.mark.parametrize("name", ON_PAPER)
def test_observations_are_those_of_the_plant(name: str) -> None:
    both = make(name, observation="both", **SMALL[name])
    alone = make(name, observation="image", **SMALL[name])
    seen, info = both.reset(seed=3)
    assert np.array_equal(seen["image"], alone.reset(seed=3)[0])
    assert np.array_equal(seen["values"], info["values"])
    action = np.full(both.action_space.shape, 0.05)  # type: ignore[arg-type]
    seen, reward, *_ = both.step(action)
    picture, other, *_ = alone.step(action)
    assert np.array_equal(seen["image"], picture) and reward == other


def test_pictures_with_a_sign_have_a_space_with_a_sign() -> None:
    space = make("lift/LightTunnel-v0").observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    assert (space.low.min(), space.high.max(), space.dtype) == (-1, 1, np.float32)


def test_it_ends_at_the_step_limit() -> None:
    environment = make("lift/Sensors-v0", step_limit=3)
    environment.reset(seed=0)
    assert [environment.step(np.zeros(3))[2:4] for _ in range(3)] == [(False, False)] * 2 + [(False, True)]


def test_unseeded_resets_go_on_from_the_seed() -> None:
    first, second = make("lift/Sensors-v0"), make("lift/Sensors-v0")
    first.reset(seed=3)
    second.reset(seed=3)
    assert np.array_equal(first.reset()[0], second.reset()[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observation": "image"}, "sends no picture; allowed: values"),
        ({"observation": "sound"}, "allowed: image, values, both"),
        ({"render_mode": "human"}, "leave out render_mode"),
        ({"dims": 2}, "unknown key 'dims'; did you mean 'dim'"),
    ],
)
def test_bad_use_says_what_is_wrong(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        PlantEnvironment("sensors", **{"observation": "values", **arguments})


def test_every_environment_is_found_by_the_name_of_its_module() -> None:
    for name in ENVIRONMENTS:
        assert gymnasium.spec(name).entry_point == f"{plant_environments.__name__}:PlantEnvironment"
    found = gymnasium.make("lift_ros.positioning.plant_environments:lift/Sensors-v0")
    assert isinstance(found.unwrapped, PlantEnvironment)
