from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_samples import sample_picture
from d3rlpy.dataset import MDPDataset
from d3rlpy.datasets import get_minari
from sample_run import drive, write_run

from lift_ros.bags.exporting.minari import dataset_name, environment_of, export_minari
from lift_ros.collection.records import Episode, Outcome, same
from lift_ros.errors import UserError
from lift_ros.positioning.pictures import ENCODINGS, PictureFormat
from lift_ros.scenario import load_scenario

minari = pytest.importorskip("minari")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    def open_dataset(folder: Path, name: str) -> Any:
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
        return minari.load_dataset(name)

    return open_dataset


def observations_of(episode: Episode) -> np.ndarray:
    return np.vstack([*(step.observation for step in episode.steps), episode.final_observation])


def test_minari_opens_what_was_recorded_and_loses_nothing(tmp_path: Path, load: Any) -> None:
    episodes = [drive(0, 4, augmented=2), drive(1, 3, outcome=Outcome.STEP_LIMIT), drive(2, 1)]
    run = write_run(tmp_path / "run", episodes)
    report = export_minari([run], tmp_path / "sets" / "drives")
    assert (report.dataset_id, report.folder) == ("drives-v0", tmp_path / "sets")
    assert (report.episodes, report.steps, report.left_out) == (3, 8, {})
    dataset = load(tmp_path / "sets", "drives-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (3, 8)
    for stored, episode in zip(dataset, episodes, strict=True):
        assert np.array_equal(stored.observations, observations_of(episode))
        assert np.array_equal(stored.actions, np.vstack([step.action for step in episode.steps]))
        assert np.array_equal(stored.rewards, [step.reward for step in episode.steps])
        assert stored.observations.shape[0] == len(episode.steps) + 1
        assert stored.terminations.tolist()[-1] is (episode.outcome == Outcome.REACHED)
        assert stored.truncations.tolist()[-1] is (episode.outcome != Outcome.REACHED)
        assert not stored.terminations[:-1].any() and not stored.truncations[:-1].any()
        assert np.array_equal(stored.infos["position"][-1], episode.final_position)
        assert np.array_equal(stored.infos["goal"][0], episode.goal)
    assert dataset[0].infos["source"].tolist() == [2, 2, 1, 1, 0]
    metadata = list(dataset.storage.get_episode_metadata(range(3)))
    assert [entry["seed"] for entry in metadata] == [1000, 1001, 1002]
    assert dataset.action_space.contains(episodes[0].steps[0].action)
    assert dataset.observation_space.shape == (3,)


def test_several_runs_become_one_dataset(tmp_path: Path, load: Any) -> None:
    first = write_run(tmp_path / "a", [drive(0, 2)])
    second = write_run(tmp_path / "b", [drive(0, 3), drive(1, 1)])
    export_minari([first, second], tmp_path / "both-v7")
    assert load(tmp_path, "both-v7").total_steps == 6


def test_what_d3rlpy_does_with_a_minari_dataset_works(tmp_path: Path, load: Any) -> None:
    episodes = [drive(0, 4), drive(1, 3, outcome=Outcome.STEP_LIMIT), drive(2, 2)]
    export_minari([write_run(tmp_path / "run", episodes)], tmp_path / "plain")
    stored = list(load(tmp_path, "plain-v0"))
    joined = MDPDataset(
        observations=np.concatenate([episode.observations[:-1] for episode in stored]),
        actions=np.concatenate([episode.actions for episode in stored]),
        rewards=np.concatenate([episode.rewards for episode in stored]),
        terminals=np.concatenate([episode.terminations for episode in stored]),
        timeouts=np.concatenate([episode.truncations for episode in stored]),
    )
    assert [episode.terminated for episode in joined.episodes] == [True, False, True]
    for rebuilt, episode in zip(joined.episodes, episodes, strict=True):
        assert np.array_equal(rebuilt.observations, observations_of(episode)[:-1])
        assert np.array_equal(rebuilt.rewards.ravel(), [step.reward for step in episode.steps])
    assert joined.sample_transition_batch(16).observations.shape == (16, 3)


@pytest.mark.parametrize("drop_final", [True, False])
def test_get_minari_itself_is_aligned_only_without_final_observations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drop_final: bool
) -> None:
    facts = {"scenario": "po-blend-d2", "parameters": load_scenario("po-blend-d2").as_dict()}
    episodes = [drive(0, 4), drive(1, 3), drive(2, 2)]
    for episode in episodes:
        episode.final_observation = episode.final_observation[:2]
        for step in episode.steps:
            step.observation = step.observation[:2]
    export_minari([write_run(tmp_path / "run", episodes, facts)], tmp_path / "set", drop_final=drop_final)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    joined, environment = get_minari("set-v0")
    assert environment.action_space.shape == (2,)
    rows = [
        np.array_equal(a.observations, observations_of(b)[:-1]) for a, b in zip(joined.episodes, episodes, strict=True)
    ]
    # Should d3rlpy learn to join n+1 observations, the option is no longer needed and this line says so.
    assert rows == ([True, True, True] if drop_final else [True, False, False])


def test_missing_rewards_are_labelled_in_hindsight_or_left_out(tmp_path: Path, load: Any) -> None:
    episodes = [
        drive(0, 4, rewarded=False),
        drive(1, 3, rewarded=False, outcome=Outcome.ABORTED),
        drive(2, 0, outcome=Outcome.ABORTED),
    ]
    report = export_minari([write_run(tmp_path / "run", episodes)], tmp_path / "set")
    assert report.episodes == 1
    assert report.left_out == {
        "episodes without rewards that did not reach their goal": 1,
        "episodes without steps": 1,
    }
    distances = np.linalg.norm(np.vstack([s.position for s in [*episodes[0].steps[1:]]] + [np.zeros(2)]), axis=1)
    np.testing.assert_allclose(load(tmp_path, "set-v0")[0].rewards, -distances)


def is_lossless() -> bool:
    return "jpeg_encoding" in inspect.signature(minari.create_dataset_from_buffers).parameters


@pytest.mark.parametrize("kind", ["image", "both"])
def test_a_minari_that_would_change_pictures_is_refused(tmp_path: Path, kind: str) -> None:
    run = write_run(tmp_path / "run", [drive(0, 3, pictures=True)])
    if is_lossless():
        assert export_minari([run], tmp_path / "set", kind=kind).episodes == 1
        return
    with pytest.raises(UserError, match=r"Minari 0\.5\.4"):
        export_minari([run], tmp_path / "set", kind=kind)


def pictured(index: int, steps: int, encoding: str) -> Episode:
    """Return a drive with random pictures."""
    episode, rng = drive(index, steps), np.random.default_rng(index)
    for step in episode.steps:
        step.image = sample_picture(rng, encoding)
    episode.final_image = sample_picture(rng, encoding)
    return episode


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.skipif(not is_lossless(), reason="this Minari would change the pictures")
def test_pictures_of_every_encoding_are_lossless_alone_and_beside_vectors(
    tmp_path: Path, load: Any, encoding: str
) -> None:
    episodes = [pictured(0, 3, encoding), pictured(1, 2, encoding)]
    run, kind = write_run(tmp_path / "run", episodes), PictureFormat(5, 4, encoding)
    export_minari([run], tmp_path / "alone", kind="image")
    export_minari([run], tmp_path / "both", kind="both")
    alone, both = load(tmp_path, "alone-v0"), load(tmp_path, "both-v0")
    assert (alone.observation_space.shape, alone.observation_space.dtype) == (kind.shape, kind.dtype)
    assert set(both.observation_space.spaces) == {"vector", "image"}
    for number, episode in enumerate(episodes):
        expected = np.stack([*(step.image for step in episode.steps), episode.final_image])
        assert same(alone[number].observations, expected)
        assert same(both[number].observations["image"], expected)
        assert same(both[number].observations["vector"], observations_of(episode))
        assert alone.observation_space.contains(expected[0])


@pytest.mark.skipif(not is_lossless(), reason="this Minari would change the pictures")
def test_both_without_the_final_observation(tmp_path: Path, load: Any) -> None:
    run = write_run(tmp_path / "run", [drive(0, 3, pictures=True)])
    export_minari([run], tmp_path / "set", kind="both", drop_final=True)
    stored = load(tmp_path, "set-v0")[0].observations
    assert (len(stored["vector"]), len(stored["image"])) == (3, 3)


@pytest.mark.skipif(not is_lossless(), reason="this Minari would change the pictures")
def test_missing_and_mixed_pictures_are_refused(tmp_path: Path) -> None:
    blind, mixed = drive(0, 3), pictured(0, 3, "rgb8")
    mixed.steps[1].image = np.zeros((5, 4), np.uint8)
    for kind in ("image", "both"):
        with pytest.raises(UserError, match="steps without a picture; use --observation vector"):
            export_minari([write_run(tmp_path / kind / "blind", [blind])], tmp_path / "other", kind=kind)
    with pytest.raises(UserError, match="pictures of different formats"):
        export_minari([write_run(tmp_path / "mixed", [mixed])], tmp_path / "other", kind="image")
    runs = [write_run(tmp_path / encoding, [pictured(0, 2, encoding)]) for encoding in ("mono8", "mono16")]
    with pytest.raises(UserError, match="export runs of one kind together"):
        export_minari(runs, tmp_path / "other", kind="image")


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run", [drive(0, 3)])

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(minari, "create_dataset_from_buffers", full)
    with pytest.raises(UserError, match="cannot be written: .*No space left"):
        export_minari([run], tmp_path / "sets" / "drives")
    assert list((tmp_path / "sets").iterdir()) == []


def test_bad_outputs_and_empty_runs_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [drive(0, 3)])
    export_minari([run], tmp_path / "set")
    with pytest.raises(UserError, match="exists already"):
        export_minari([run], tmp_path / "set")
    with pytest.raises(UserError, match="letters, digits"):
        export_minari([run], tmp_path / "a set!")
    empty = write_run(tmp_path / "empty", [drive(0, 0, outcome=Outcome.ABORTED)])
    with pytest.raises(UserError, match="nothing to export"):
        export_minari([empty], tmp_path / "none")


def test_runs_of_different_sizes_are_refused(tmp_path: Path) -> None:
    wide = drive(0, 2)
    for step in wide.steps:
        step.action = np.zeros(5)
    runs = [write_run(tmp_path / "a", [drive(0, 2)]), write_run(tmp_path / "b", [wide])]
    with pytest.raises(UserError, match="export runs of one kind together"):
        export_minari(runs, tmp_path / "set")


def test_environment_variable_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run", [drive(0, 3)])
    monkeypatch.delenv("MINARI_DATASETS_PATH", raising=False)
    export_minari([run], tmp_path / "one")
    assert "MINARI_DATASETS_PATH" not in os.environ
    monkeypatch.setenv("MINARI_DATASETS_PATH", "/somewhere")
    export_minari([run], tmp_path / "two")
    assert os.environ["MINARI_DATASETS_PATH"] == "/somewhere"


def test_names() -> None:
    assert dataset_name(Path("x/reach")) == "reach-v0"
    assert dataset_name(Path("x/reach-v3")) == "reach-v3"


def test_environment_is_known_for_simulated_runs_of_one_scenario_only() -> None:
    def facts(name: str) -> dict[str, Any]:
        return {"parameters": load_scenario(name).as_dict()}

    found = environment_of([facts("po-blend-d2"), facts("po-blend-d2")])
    assert found is not None
    assert found["kwargs"]["distortion"] == "blend"
    assert environment_of([facts("po-blend-d2"), facts("po-blend-d5")]) is None
    assert environment_of([facts("fetch-reach")]) is None
    assert environment_of([facts("po-scale-d2")]) is None
    assert environment_of([{}]) is None
