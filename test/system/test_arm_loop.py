"""The whole loop on an arm that is reached by ROS topics alone: record, train, LIFT, assist, in real processes."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from isolation import isolated

from lift_ros.array_types import FloatArray, Picture
from lift_ros.bags.reader import read_run
from lift_ros.collection.records import Episode, Mode, Outcome, Source
from lift_ros.graph.run import node_command
from lift_ros.positioning.pictures import PictureFormat
from lift_ros.scenario import Scenario, config_folder, load_scenario
from lift_ros.seeds import episode_seed

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("pinocchio", "trajectory_msgs")),
    reason="pip install 'lift_ros[arm]' ros-trajectory-msgs",
)
WAIT_S = 300
ROUTINE, LIFT, ASSIST = 3, 1, 1  # episodes
SEED = 4
# A loaded machine must not abort episodes, and short trainings are enough to see who acted.
PATIENT = [
    *(f"arbiter.{party}_deadline=60.0" for party in ("plant", "logging_policy", "augmentor")),
    """trainer.training='{"updates": 20, "lessons": 20}'""",
]


@dataclass(frozen=True)
class Recorded:
    scenario: Scenario
    collected: list[Episode]
    assisted: list[Episode]


def lift_run(*words: object) -> None:
    settings = [word for setting in PATIENT for word in ("--set", setting)]
    command = [sys.executable, "-m", "lift_ros.cli", "run", *map(str, words), *settings]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stdout


def nearer_scenario(folder: Path) -> Path:
    """Write the shipped scenario with starts from which the routine needs few steps."""
    content = yaml.safe_load((config_folder() / "arm-ur5.yaml").read_text())
    content["rig"] |= {"start_low": [0.05, -1.27, 0.1], "start_high": [0.1, -1.23, 0.2]}
    content["rig"]["axes"] |= {"stale_seconds": 30, "grace_seconds": 30}  # a loaded machine is no broken cable
    content["assist"] = {"budget": 8}
    path = folder / "arm.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Collect with an arm in a process of its own, then let the model that the trainer made act in mode assist."""
    folder = tmp_path_factory.mktemp("arm")
    path, run, assisted = nearer_scenario(folder), folder / "run", folder / "assist"
    with isolated():
        command = node_command("arm_simulator", {"camera_rate": 20.0}, "lift", folder)
        with (folder / "arm.log").open("wb") as log:
            arm = subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ))
        words = ["--scenario", path, "--seed", SEED, "--p", 1, "--guard", "off", "--train-after", ROUTINE]
        lift_run(*words, "--out", run, "--episodes", ROUTINE + LIFT)
        (model,) = (folder / "run-models").glob("*.safetensors")
        lift_run(*words[:4], "--mode", "assist", "--model", model, "--out", assisted, "--episodes", ASSIST)
        assert arm.poll() is None, (folder / "arm.log").read_text()
    return Recorded(load_scenario(path), read_run(run), read_run(assisted))


def test_every_episode_starts_where_its_seed_says_and_arrives(recorded: Recorded) -> None:
    rig = recorded.scenario.make_rig()
    assert [episode.seed for episode in recorded.collected] == [episode_seed(SEED, i) for i in range(ROUTINE + LIFT)]
    assert len({tuple(rig.start_of(episode.seed)) for episode in recorded.collected}) == ROUTINE + LIFT
    for episode in recorded.collected[:ROUTINE] + recorded.assisted:
        assert episode.outcome is Outcome.REACHED
        assert episode.final_observation[0] >= 0.97
    for episode in recorded.collected + recorded.assisted:
        assert np.allclose(positions(episode)[0], rig.start_of(episode.seed), atol=rig.motion.tolerance)


def test_positions_that_are_read_back_follow_the_actions(recorded: Recorded) -> None:
    tolerance = 2 * recorded.scenario.make_rig().motion.tolerance
    for episode in recorded.collected + recorded.assisted:
        ways = np.diff(positions(episode), axis=0)
        actions = np.array([step.action for step in episode.steps])
        assert np.allclose(ways, actions, atol=tolerance)
        assert (np.linalg.norm(actions, axis=1) > 0).all()


def test_records_tell_who_acted(recorded: Recorded) -> None:
    routine, lifted = recorded.collected[:ROUTINE], recorded.collected[ROUTINE:]
    for step in (step for episode in routine for step in episode.steps):
        assert step.source is Source.LOGGING_POLICY and not step.model_hash
        assert np.array_equal(step.action, step.logging_proposal)
        assert sorted(np.abs(step.action).round(9)) in ([0, 0, 0.02], [0, 0, 0.04])
    assert {episode.mode for episode in lifted} == {Mode.COLLECT}
    augmented = [step for episode in lifted for step in episode.steps if step.source is Source.AUGMENTOR]
    assert augmented and all(np.array_equal(step.action, step.augmentor_proposal) for step in augmented)
    for episode in recorded.assisted:
        assert episode.mode is Mode.ASSIST
        first, *_ = episode.steps
        assert first.source is Source.AUGMENTOR and first.model_hash == augmented[0].model_hash
        assert np.array_equal(first.action, first.augmentor_proposal)
        sources = [step.source for step in episode.steps]
        assert sources == sorted(sources, reverse=True)  # once the routine has taken over it goes on to the end


def test_pictures_were_taken_where_the_arm_was_read_to_be(recorded: Recorded) -> None:
    """Each picture is nearer to what the camera sees from its own position than from that of the step before."""
    from lift_ros.positioning.arm_camera import ArmCamera

    camera = ArmCamera(64)
    try:
        for episode in recorded.collected[:2]:
            pictures = [step.image for step in episode.steps] + [episode.final_image]
            seen = [look(camera, place) for place in positions(episode)]
            for i, picture in enumerate(pictures):
                assert picture is not None and str(PictureFormat.of(picture)) == "64×64 rgb8"
                assert i == 0 or difference(picture, seen[i]) < difference(picture, seen[i - 1])
    finally:
        camera.close()


def positions(episode: Episode) -> FloatArray:
    return np.array([step.position for step in episode.steps] + [episode.final_position])


def look(camera: Any, place: FloatArray) -> Picture:
    """Return what is to be seen where pan, lift and wrist are so, and the joints between them as at the start."""
    from lift_ros.positioning.robot_arm import RobotArm

    arm = RobotArm("ur5")
    joints = arm.position
    joints[[0, 1, 5]] = place
    return camera.image(*arm.tool_pose(joints))


def difference(first: Picture, second: Picture) -> float:
    return float(np.abs(first.astype(float) - second.astype(float)).mean())
