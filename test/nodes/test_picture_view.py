"""What viewers see of pictures, and whom the arbiter shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lone_node import Kept, lone_node

import lift_ros.msg as msg
from lift_ros.collection.exchange import Move, Observation, Query, Ready, Reset
from lift_ros.collection.records import Mode
from lift_ros.nodes.arbiter_node import ArbiterNode
from lift_ros.nodes.outbox import Outbox
from lift_ros.nodes.plant import PlantNode
from lift_ros.nodes.positioning_simulator_node import PositioningSimulator
from lift_ros.positioning.pictures import PictureFormat, for_eyes
from lift_ros.positioning.problem import Limits, Observed
from lift_ros.scenario import load_scenario

PICTURE = np.arange(64 * 64 * 3, dtype=np.uint8).reshape(64, 64, 3)


class Unwatched(Kept):
    """A publisher to whom nobody subscribes."""

    def get_subscription_count(self) -> int:
        return 0


class Camera(PlantNode):
    """A rig of somebody's own whose observations carry a picture in grey."""

    executable = "loopback_hardware"
    summary = "for tests"

    def make_limits(self) -> Limits:
        return Limits(2, 2, 0.3, 100, picture=PictureFormat(8, 6, "mono16"))

    def begin(self, seed: int) -> None:
        """Nothing moves."""

    def move(self, action: Any) -> None:
        """Nothing moves."""

    def read(self) -> Observed:
        return Observed(np.zeros(2), image=np.arange(48, dtype=np.uint16).reshape(8, 6))

    def hold(self) -> None:
        """Nothing moves."""


def played(node: PlantNode, viewer: Kept) -> list[msg.Observation]:
    """Return the observations of a reset and one move."""
    observations = Kept(msg.Observation)
    assert node._view is not None
    node._publisher, node._view.publisher = observations, viewer
    node._on_command(Reset(0, 3))
    node._on_command(Move(0, 0, np.full(node.limits.action_size, 0.05)))
    return observations.take()


def test_a_lens_shows_viewers_what_it_observes() -> None:
    with lone_node(PositioningSimulator, scenario="lens", watchdog=3600.0) as node:
        viewer = Kept()
        observations, shown = played(node, viewer), viewer.take()
    assert len(shown) == len(observations) == 2
    assert [image.data for image in shown] == [observation.image.data for observation in observations]
    assert (shown[0].encoding, shown[0].header.frame_id) == ("rgb8", "world")


def test_hardware_shows_its_pictures_without_a_line_of_its_own() -> None:
    with lone_node(Camera, watchdog=3600.0) as node:
        viewer = Kept()
        played(node, viewer)
    assert [(image.encoding, image.height, image.width) for image in viewer.take()] == [("mono16", 8, 6)] * 2


def test_a_picture_with_a_sign_is_shown_around_mid_grey() -> None:
    with lone_node(PositioningSimulator, scenario="light-tunnel", watchdog=3600.0) as node:
        viewer = Kept()
        observations, shown = played(node, viewer), viewer.take()
    assert (observations[0].image.encoding, shown[0].encoding) == ("32FC3", "rgb8")
    assert (shown[0].height, shown[0].width, len(shown[0].data)) == (32, 32, 32 * 32 * 3)
    assert shown[0].data[0] == 128  # the ground is as dark as it is wanted to be


def test_nothing_is_published_while_nobody_looks() -> None:
    with lone_node(PositioningSimulator, scenario="lens", watchdog=3600.0) as node:
        viewer = Unwatched()
        assert len(played(node, viewer)) == 2
        assert viewer.take() == []


def test_a_plant_without_pictures_has_no_such_topic() -> None:
    with lone_node(PositioningSimulator, scenario="sensors") as node:
        assert node._view is None


def test_signs_become_brightness() -> None:
    signed = np.array([[-1.0, 0.0], [1.0, 5.0]], dtype=np.float32)
    assert for_eyes(signed).tolist() == [[1, 128], [255, 255]] and for_eyes(signed).dtype == np.uint8
    assert for_eyes(PICTURE) is PICTURE


@pytest.mark.parametrize("shows", [True, False])
def test_questions_carry_a_picture_only_where_a_policy_looks_at_it(shows: bool) -> None:
    policies = Kept(msg.Query)
    outbox = Outbox("run", shows_pictures=shows, policies=policies)
    outbox.ask(Query(0, 0, 1, np.zeros(5), False, Mode.COLLECT, PICTURE))
    (question,) = policies.take()
    assert (question.image.width, len(question.image.data)) == ((64, PICTURE.size) if shows else (0, 0))


@pytest.mark.parametrize("seen", ["image", "values"])
def test_the_arbiter_asks_the_scenario_who_looks_at_pictures(seen: str, tmp_path: Path) -> None:
    text = Path(__file__).parents[2].joinpath("config/lens.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("augmentor: image", f"augmentor: {seen}"))
    assert load_scenario(path).model_sight.image is (seen == "image")
    with lone_node(ArbiterNode, scenario=str(path)) as node:
        policies = Kept(msg.Query)
        node._outbox.publishers = {"plant": Kept(msg.Command), "policies": policies}
        node._on_ready(Ready(0, "first"))
        node._on_observation(Observation(0, 0, np.zeros(5), np.zeros(5), image=PICTURE))
        (question,) = policies.take()
    assert question.image.width == (64 if seen == "image" else 0)
