"""Training from pictures: who sees what, what is the same in trainer and augmentor, and what a model refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lift_ros.bags import RunWriter
from lift_ros.bags.arrays import episodes_to_arrays
from lift_ros.bags.pictures import store_episode_pictures
from lift_ros.collection.loop import collect
from lift_ros.collection.records import Episode
from lift_ros.errors import UserError
from lift_ros.policies.encoder import EncoderPlan, PictureEncoder
from lift_ros.policies.learned import load_fitting_model, load_model
from lift_ros.policies.sight import Seen, Sight
from lift_ros.scenario import Scenario, parse_scenario
from lift_ros.training import train
from lift_ros.training.data import picture_rows, with_picture_rows
from lift_ros.training.encoder import TorchEncoder
from lift_ros.training.options import TrainingOptions, preset
from lift_ros.training.picture_batches import Changes, PictureBatches
from lift_ros.training.runs import load_runs

TINY = {
    "lessons": 4,
    "updates": 4,
    "picture_batch": 8,
    "batch_size": 8,
    "hidden": (32, 32),
    "maps": (4, 4),
    "action_samples": 2,
    "held_out": 0.0,
}


def tunnel(**sections: Any) -> Scenario:
    content = {
        "plant": {"kind": "light_tunnel", "distortion": "none", "action_radius": 0.3, "threshold": 0.05},
        "logging_policy": {"name": "coordinate_walk", "arguments": {"step": 0.1}},
        "sees": {"augmentor": "image"},
        "picture": {"size": [16, 16]},
        **sections,
    }
    return parse_scenario(content, "tunnel", "test")


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return collect(tunnel(), episodes=4, seed=0, progress=False)


def options(scenario: Scenario, **changes: Any) -> TrainingOptions:
    return preset("fast", scenario, **{**TINY, **changes})


@pytest.mark.parametrize("algorithm", ["CQL", "clone", "IQL"])
def test_a_model_of_pictures_drives_by_pictures_alone(tmp_path: Path, episodes: list[Episode], algorithm: str) -> None:
    scenario = tunnel()
    path = tmp_path / "m.safetensors"
    made = train(episodes, options(scenario, algorithm=algorithm), action_radius=0.3, out=path, scenario=scenario)
    policy = load_model(path)
    picture = episodes[0].steps[0].image
    assert picture is not None
    assert policy.sight == Sight.parse("image") and policy.observation_size == 0
    assert np.array_equal(policy.act(picture), made.policy.act(picture)) and policy.act(picture).shape == (2,)
    noise = np.random.default_rng(0).uniform(-1, 1, picture.shape).astype(np.float32)
    assert not np.array_equal(policy.act(picture), policy.act(noise))


def test_both_are_seen_where_both_are_shown(episodes: list[Episode]) -> None:
    scenario = tunnel(sees={"augmentor": "both"})
    policy = train(episodes, options(scenario), action_radius=0.3, scenario=scenario).policy
    step = episodes[0].steps[0]
    seen = Seen(step.observation, step.image)
    assert policy.observation_size == 2 and policy.covers(seen)
    assert not np.array_equal(policy.act(seen), policy.act(Seen(step.observation + 0.5, step.image)))
    with pytest.raises(UserError, match="values and image"):
        policy.act(step.image)


def test_d3rlpy_is_not_shown_both(episodes: list[Episode]) -> None:
    scenario = tunnel(sees={"augmentor": "both"})
    with pytest.raises(UserError, match="not both; choose CQL or clone"):
        train(episodes, options(scenario, algorithm="IQL"), action_radius=0.3, scenario=scenario)


@pytest.mark.parametrize(
    "settings", [{}, {"size": [16, 12], "grey": True, "range": [-0.5, 0.5], "crop": [4, 4, 24, 24]}]
)
def test_trainer_and_augmentor_give_networks_the_same_bits(episodes: list[Episode], settings: dict[str, Any]) -> None:
    scenario = tunnel(picture=settings)
    preprocessing = scenario.make_preprocessing()
    assert preprocessing is not None
    arrays = with_picture_rows(episodes_to_arrays(episodes))
    rows = picture_rows(arrays)
    assert rows is not None
    keep = {"memory_limit": 0, "shape": preprocessing.shape, "dtype": preprocessing.dtype}
    with closing(store_episode_pictures(episodes, preprocessing.of, **keep)) as store:
        batches = PictureBatches(store, rows, preprocessing, Changes())
        rng = np.random.default_rng(0)
        starts = np.arange(arrays.steps)
        before, after = batches.before(starts, rng), batches.after(starts, np.ones_like(starts), rng)
    policy = train(episodes, options(scenario), action_radius=0.3, scenario=scenario).policy
    pictures = [step.image for episode in episodes for step in episode.steps]
    given = _given_to_networks(policy, pictures)
    assert given.tobytes() == before.tobytes()
    following = [picture for e in episodes for picture in [*(step.image for step in e.steps[1:]), e.final_image]]
    assert _given_to_networks(policy, following).tobytes() == after.tobytes()


def _given_to_networks(policy: Any, pictures: list[Any]) -> np.ndarray:
    return np.concatenate([policy.preprocessing.scaled(policy.preprocessing.of(each)[None]) for each in pictures])


@pytest.mark.parametrize(
    "plan",
    [
        EncoderPlan(20, 16, 3, 1, (4, 6), (5, 1), (2, 1), 0, readout=(3,)),
        EncoderPlan(17, 16, 1, 2, (4, 6, 5), (5, 3, 1), (2, 2, 1), 2, readout=(7, 2)),
    ],
)
def test_numpy_encodes_as_torch_does(plan: EncoderPlan) -> None:
    encoder = TorchEncoder(plan, torch.Generator().manual_seed(1))
    pictures = np.random.default_rng(0).random((3, plan.height, plan.views * plan.width, plan.channels), np.float32)
    theirs = encoder.read(encoder.features(torch.from_numpy(pictures), encoder.values), encoder.values).numpy()
    tensors = encoder.tensors(encoder.values)

    def layers(name: str, count: int) -> list[Any]:
        return [(tensors[f"{name}.{k}.weight"], tensors[f"{name}.{k}.bias"]) for k in range(count)]

    ours = PictureEncoder(plan, layers("encoder", len(plan.maps)), layers("readout", len(plan.readout)))
    assert ours.read(ours.features(pictures)) == pytest.approx(theirs, abs=2e-5)


@pytest.mark.parametrize("stopped_after", [3, 4, 6])
def test_a_resumed_training_ends_as_an_uninterrupted_one(
    tmp_path: Path, episodes: list[Episode], stopped_after: int
) -> None:
    scenario = tunnel()
    chosen = options(scenario, lessons=4, updates=5)
    whole = train(episodes, chosen, action_radius=0.3, scenario=scenario, threads=1)
    path = tmp_path / "m.safetensors"
    count = iter(range(100))
    enough = {"stop": lambda: next(count) == stopped_after - 1}
    stopped = train(episodes, chosen, action_radius=0.3, out=path, scenario=scenario, threads=1, **enough)
    assert (stopped.updates, stopped.complete, stopped.drives) == (stopped_after, False, stopped_after > 4)
    resumed = train(episodes, chosen, action_radius=0.3, out=path, scenario=scenario, threads=1, resume=True)
    assert resumed.policy.hash == whole.policy.hash and resumed.updates == 9 and resumed.complete


def test_eyes_are_taken_from_a_model_as_they_are(episodes: list[Episode]) -> None:
    scenario = tunnel()
    first = train(episodes, options(scenario), action_radius=0.3, scenario=scenario).policy
    chosen = options(scenario, algorithm="clone", seed=5)
    made = train(episodes, chosen, action_radius=0.3, scenario=scenario, eyes=first)
    assert made.updates == chosen.updates and made.complete
    assert {name: tensor.tobytes() for name, tensor in made.policy.encoder_tensors.items()} == {
        name: tensor.tobytes() for name, tensor in first.encoder_tensors.items()
    }
    kept = made.policy.description["training"]["options"]
    assert (kept["lessons"], kept["eyes"]) == (0, first.hash)


def test_eyes_that_do_not_fit_are_refused(episodes: list[Episode]) -> None:
    scenario = tunnel()
    first = train(episodes, options(scenario), action_radius=0.3, scenario=scenario).policy

    def train_with(changes: dict[str, Any], plant: Scenario = scenario, eyes: Any = first) -> None:
        train(episodes, options(plant, **changes), action_radius=0.3, scenario=plant, eyes=eyes)

    with pytest.raises(UserError, match="another encoder or other pictures"):
        train_with({"maps": (4, 6)})
    with pytest.raises(UserError, match="another encoder or other pictures"):
        train_with({}, tunnel(picture={"size": [16, 16], "range": [-0.5, 0.5]}))
    with pytest.raises(UserError, match="IQL has an encoder of its own"):
        train_with({"algorithm": "IQL"})
    with pytest.raises(UserError, match="models see no pictures"):
        train_with({}, tunnel(sees={"augmentor": "values"}))
    blind = tunnel(sees={"augmentor": "values"})
    seeing_values = train(episodes, options(blind), action_radius=0.3, scenario=blind).policy
    with pytest.raises(UserError, match="a model that sees values; choose one that sees pictures"):
        train_with({}, eyes=seeing_values)
    with pytest.raises(UserError, match="lessons is 0; allowed: at least 1"):
        train_with({"lessons": 0}, eyes=None)


def test_runs_tell_what_models_see_of_them(tmp_path: Path, episodes: list[Episode]) -> None:
    scenario = tunnel()
    _write(tmp_path / "run", scenario, episodes)
    recorded = load_runs([tmp_path / "run"])
    assert recorded.sight == Sight.parse("image") and recorded.preprocessing is not None
    assert recorded.preprocessing.shape == (16, 16, 3)
    from_bag = train(recorded, options(scenario), action_radius=0.3, threads=1)
    in_memory = train(episodes, options(scenario), action_radius=0.3, scenario=scenario, threads=1)
    picture = episodes[0].steps[0].image
    assert np.array_equal(from_bag.policy.act(picture), in_memory.policy.act(picture))


def test_runs_of_which_models_see_differently_are_not_mixed(tmp_path: Path, episodes: list[Episode]) -> None:
    _write(tmp_path / "a", tunnel(), episodes)
    _write(tmp_path / "b", tunnel(sees={"augmentor": "values"}), episodes)
    with pytest.raises(UserError, match="different sections `sees` or `picture`"):
        load_runs([tmp_path / "a", tmp_path / "b"])
    named = load_runs([tmp_path / "a", tmp_path / "b"], scenario=tunnel())
    assert named.sight.image


@pytest.fixture
def model(tmp_path: Path, episodes: list[Episode]) -> Iterator[Path]:
    scenario = tunnel()
    train(episodes, options(scenario), action_radius=0.3, out=tmp_path / "m.safetensors", scenario=scenario)
    yield tmp_path / "m.safetensors"


def test_a_model_is_refused_where_what_it_needs_is_not_there(model: Path) -> None:
    limits, picture = tunnel().limits, Sight.parse("image")
    assert load_fitting_model(model, "tunnel", limits, shown=picture).sight == picture
    with pytest.raises(UserError, match="sees image, but tunnel shows values"):
        load_fitting_model(model, "tunnel", limits)
    with pytest.raises(UserError, match="32×32 32FC3, but tunnel sends none"):
        load_fitting_model(model, "tunnel", replace(limits, picture=None), shown=picture)


def test_d3rlpys_encoder_is_its_own() -> None:
    scenario = tunnel()
    made = train(
        collect(scenario, episodes=2, seed=1, progress=False),
        options(scenario, algorithm="TD3PlusBC"),
        action_radius=0.3,
        scenario=scenario,
    )
    assert made.policy.encoder is not None and made.policy.encoder.plan.flat


def _write(path: Path, scenario: Scenario, episodes: list[Episode]) -> None:
    facts = {"scenario": scenario.name, "parameters": scenario.as_dict()}
    with RunWriter(path, facts, sync=False) as writer:
        for episode in episodes:
            writer.write_episode(episode)
