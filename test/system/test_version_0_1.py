"""Runs and models that version 0.1.0 wrote are read as it read them.

They lie in test/fixtures/version_0_1, where make_fixtures.py says how they were made.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from file_contents import array_contents, model_contents, run_contents

from lift_ros.bags import RunReader, RunWriter, load_arrays
from lift_ros.cli import main
from lift_ros.collection.records import Outcome
from lift_ros.policies.learned import load_model

FOLDER = Path(__file__).parents[1] / "fixtures" / "version_0_1"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
RUNS = ("graph", "collected", "cut_off", "pictures")
MODELS = ("cql", "td3plusbc", "scaled", "interrupted")


def known(contents: Any, expected: Any) -> Any:
    """Return the contents as JSON has them, without fields that were added since."""
    return _without_new(json.loads(json.dumps(contents)), expected)


def _without_new(found: Any, expected: Any) -> Any:
    if isinstance(found, dict) and isinstance(expected, dict):
        return {name: _without_new(value, expected[name]) for name, value in found.items() if name in expected}
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return [_without_new(*pair) for pair in zip(found, expected, strict=True)]
    return found


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(FOLDER / name, folder / name))


def latest(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts under which the last episodes of a run were made."""
    changes = [entry["facts"] for entry in facts.get("continuations", [])]
    kept = {name: value for name, value in facts.items() if name != "continuations"}
    return {**kept, **{name: value for change in changes for name, value in change.items()}}


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
def test_every_field_of_every_step_is_read(name: str) -> None:
    expected = EXPECTED["runs"][name]
    assert known(run_contents(FOLDER / name), expected) == expected


@pytest.mark.parametrize("name", RUNS)
def test_training_gets_the_same_arrays(name: str) -> None:
    expected = EXPECTED["arrays"][name]
    assert known(array_contents(load_arrays([FOLDER / name], images=True)), expected) == expected


def test_runs_are_loaded_together() -> None:
    arrays = load_arrays([FOLDER / name for name in ("graph", "collected", "cut_off")])
    assert np.bincount(arrays.runs).tolist() == [5, 5, 2]  # an episode without a step is not among them


def test_the_episode_that_was_cut_off_is_kept() -> None:
    episodes = list(RunReader(FOLDER / "cut_off"))
    assert [(episode.outcome, len(episode.steps)) for episode in episodes] == [
        (Outcome.STEP_LIMIT, 10),
        (Outcome.RECOVERED, 7),
    ]


@pytest.mark.parametrize("name", RUNS)
def test_the_facts_are_also_read_from_the_files_alone(name: str, tmp_path: Path) -> None:
    run, expected = copied(name, tmp_path), EXPECTED["runs"][name]
    (run / "metadata.yaml").unlink()
    assert known(run_contents(run), expected) == expected


@pytest.mark.parametrize("name", RUNS)
def test_a_run_goes_on_after_its_last_episode(name: str, tmp_path: Path) -> None:
    run, expected = copied(name, tmp_path), EXPECTED["runs"][name]
    before = len(expected["episodes"])
    with RunWriter(run, latest(RunReader(run).facts)) as writer:
        assert writer.next_episode == before
        first = RunReader(FOLDER / name).episode(0)
        steps = [replace(step, episode=before) for step in first.steps]
        writer.write_episode(replace(first, index=before, steps=steps))
    after = run_contents(run)
    added = after["episodes"].pop()
    assert known(after, expected) == expected
    assert (added["index"], added["steps"]) == (before, len(first.steps))
    assert not list(run.glob("*.active"))


# --- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_model_answers_as_it_did(name: str) -> None:
    expected = dict(EXPECTED["models"][name])
    found = known(model_contents(FOLDER / f"{name}.safetensors"), expected)
    # The order in which a processor adds up products of float32 is its own affair; the parameters are exact.
    radius = expected["action_radius"]
    np.testing.assert_allclose(found.pop("actions"), expected.pop("actions"), rtol=0, atol=1e-6 * radius)
    np.testing.assert_allclose(found.pop("values", 0), expected.pop("values", 0), rtol=1e-5, atol=1e-5)
    assert found == expected


def test_a_run_names_the_model_that_acted_in_it() -> None:
    hashes = {step.model_hash for episode in RunReader(FOLDER / "graph") for step in episode.steps}
    assert hashes == {"", load_model(FOLDER / "cql.safetensors").hash}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_serves_as_augmentor(name: str, tmp_path: Path) -> None:
    words = [
        "--scenario",
        "po-blend-d2",
        "--episodes",
        "1",
        "--guard",
        "off",
        "--quiet",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main(["collect", *words, "--model", str(FOLDER / f"{name}.safetensors")]) == 0
    assert RunReader(tmp_path / "run").episode(0).augmentations > 0
