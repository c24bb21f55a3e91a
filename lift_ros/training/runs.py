"""The entrance to training: recorded runs with all that the model file says of where they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lift_ros.bags import RunReader, load_arrays
from lift_ros.bags.arrays import EpisodeArrays
from lift_ros.bags.pictures import PictureStore, store_pictures
from lift_ros.errors import UserError
from lift_ros.policies.augmentations import UncertaintyModel
from lift_ros.policies.preprocessing import Preprocessing
from lift_ros.policies.sight import VALUES, Sight
from lift_ros.scenario import Scenario, parse_scenario
from lift_ros.training.data import shown

_ATTEMPTS = 10


@dataclass(frozen=True)
class RecordedRuns:
    """Episodes of one run or more, and what is known of them."""

    arrays: EpisodeArrays
    sources: list[dict[str, Any]]  # per run: path, hash of the files read or None while one is written, episodes
    left_out: list[str]  # damaged episodes that were not loaded, and why
    scenario: Scenario | None  # if all runs come from the same one
    action_radius: float | None  # if the runs tell it
    paths: list[Path] = field(default_factory=list)
    sight: Sight = VALUES  # what models are to see of them
    preprocessing: Preprocessing | None = None  # of their pictures, where models are to see those

    def open_pictures(self, memory_limit: int, progress: bool = False) -> PictureStore:
        """Return the pictures of all episodes, as networks see them; close it when done."""
        made = self.preprocessing
        assert made is not None
        arguments = (self.arrays, made.of, made.shape, made.dtype)
        return store_pictures(self.paths, *arguments, memory_limit=memory_limit, progress=progress)


def load_runs(
    paths: Sequence[str | Path],
    *,
    episodes: int | None = None,
    skip_bad: bool = False,
    scenario: Scenario | None = None,
) -> RecordedRuns:
    """Load runs whole, or the first `episodes` of each; a run may still be growing behind these.

    What models are to see is what `scenario` says where one is given, else what the runs were recorded with.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return _load(paths, episodes, skip_bad, scenario)
        except FileNotFoundError:
            continue  # the recorder completed, and so renamed, a file between listing and reading
    return _load(paths, episodes, skip_bad, scenario)


def fit_to_runs(model: UncertaintyModel, runs: Sequence[str | Path], episodes: int = 0) -> None:
    """Fit to all steps of these runs, or to those of each run's first `episodes` episodes."""
    if not runs:
        raise UserError("the uncertainty model needs the runs whose actions count as seen, but none is named")
    arrays = load_runs(runs, episodes=episodes or None).arrays
    model.fit(shown(arrays, model.sight).observations, arrays.actions)


def hash_of_first(path: str | Path, episodes: int) -> str | None:
    """Return the hash that `load_runs` gives the first so many episodes of a run; None while one is written."""
    return _hash_of_first(RunReader(path, skip_bad=True), episodes)


def _load(paths: Sequence[str | Path], episodes: int | None, skip_bad: bool, given: Scenario | None) -> RecordedRuns:
    arrays = load_arrays(paths, None if episodes is None else range(episodes), skip_bad=skip_bad)
    left_out = [str(entry) for entry in arrays.left_out]
    sources: list[dict[str, Any]] = []
    scenarios: list[Scenario | None] = []
    for number, path in enumerate(paths):
        reader = RunReader(path, skip_bad=skip_bad)
        count = int((arrays.runs == number).sum())
        sources.append({"path": Path(path).name, "sha256": _hash_of_first(reader, episodes), "episodes": count})
        scenarios.append(recorded_scenario(reader.facts, str(path)))
    radii = {None if scenario is None else scenario.action_radius for scenario in scenarios}
    if len(radii) > 1:
        raise UserError(f"the runs come from plants with different action radii {sorted(map(str, radii))}; train apart")
    same = scenarios[0] if all(scenario == scenarios[0] for scenario in scenarios) else None
    seeing = given or _agreed(scenarios)
    sight, made = (VALUES, None) if seeing is None else (seeing.model_sight, seeing.make_preprocessing())
    return RecordedRuns(arrays, sources, left_out, same, radii.pop(), list(map(Path, paths)), sight, made)


def _agreed(scenarios: Sequence[Scenario | None]) -> Scenario | None:
    """Return a scenario that says what models see of all runs; refuse runs of which models are to see differently."""
    seeing = [None if each is None else (each.sees.augmentor, each.picture, each.limits.picture) for each in scenarios]
    if any(each != seeing[0] for each in seeing):
        raise UserError(
            "the runs were recorded with different sections `sees` or `picture`, so that it is not clear what a model "
            "is to see; name the scenario with --scenario, or train apart"
        )
    return scenarios[0] if scenarios else None


def recorded_scenario(facts: Mapping[str, Any], source: str) -> Scenario | None:
    """Return the scenario that a run was recorded in; imported runs have none."""
    parameters = facts.get("parameters")
    if not isinstance(parameters, dict) or "plant" not in parameters:
        return None
    return parse_scenario(parameters, str(facts.get("scenario", "recorded")), f"facts of {source}")


def _hash_of_first(reader: RunReader, episodes: int | None) -> str | None:
    files = {file for index, file in reader.files.items() if episodes is None or index < episodes}
    return None if reader.journal in files else _hash(files)


def _hash(files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(files):
        with open(path, "rb") as stream:
            while block := stream.read(2**20):
                total.update(block)
    return total.hexdigest()
