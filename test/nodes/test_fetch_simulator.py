"""The Fetch simulator alone: what it shows to viewers besides the loop's messages."""

from __future__ import annotations

import numpy as np
import pytest
from lone_node import Kept, lone_node

import lift_ros.msg as msg
from lift_ros.collection.exchange import Move, Reset
from lift_ros.errors import UserError
from lift_ros.nodes.fetch_simulator_node import FetchSimulator

ACTION = np.array([0.01, 0.0, 0.0])


def played(node: FetchSimulator) -> tuple[Kept, Kept, Kept]:
    """Return what a node publishes in a reset and one move: observations, joint states, images."""
    kept = Kept(msg.Observation), Kept(), Kept()
    node._publisher, node._joint_publisher = kept[:2]
    if node._view is not None:
        node._view.publisher = kept[2]
    node._on_command(Reset(0, 3))
    node._on_command(Move(0, 0, ACTION))
    return kept


def test_joint_states_follow_every_move() -> None:
    with lone_node(FetchSimulator, scenario="fetch-reach", watchdog=3600.0) as node:
        observations, joints, images = played(node)
        first, second = joints.take()
        assert len(first.name) == len(first.position) > 6
        assert first.position != second.position
        assert all(message.image.width == 0 for message in observations.take())
        assert images.take() == []


def test_joint_states_can_be_left_out() -> None:
    with lone_node(FetchSimulator, scenario="fetch-reach", watchdog=3600.0, joint_states=False) as node:
        assert played(node)[1].take() == []


def test_pictures_come_with_observations_and_for_viewers() -> None:
    try:
        with lone_node(FetchSimulator, scenario="fetch-reach", watchdog=3600.0, image_size=32) as node:
            observations, _, images = played(node)
    except UserError as error:
        pytest.skip(f"no offscreen rendering here: {error}")
    observation, image = observations.take()[-1], images.take()[-1]
    assert (observation.image.width, observation.image.height, observation.image.encoding) == (32, 32, "rgb8")
    assert image.data == observation.image.data
    assert len(set(image.data)) > 5


def test_two_views_of_a_scenario_stand_side_by_side() -> None:
    try:
        with lone_node(FetchSimulator, scenario="fetch-reach-two-views", watchdog=3600.0) as node:
            observations, _, images = played(node)
    except UserError as error:
        pytest.skip(f"no offscreen rendering here: {error}")
    observation, image = observations.take()[-1], images.take()[-1]
    assert (observation.image.width, observation.image.height) == (image.width, image.height) == (128, 64)


def test_a_size_besides_the_scenarios_is_refused() -> None:
    with (
        pytest.raises(UserError, match=r"images of 32 pixels.*128×64 rgb8"),
        lone_node(FetchSimulator, scenario="fetch-reach-two-views", image_size=32),
    ):
        pass


def test_other_plants_are_refused() -> None:
    with pytest.raises(UserError, match="fetch_simulator simulates fetch_reach"), lone_node(FetchSimulator):
        pass
