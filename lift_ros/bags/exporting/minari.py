"""Runs as Minari datasets, for tools of offline reinforcement learning that do not read bags."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lift_ros.bags.contents import seen_part
from lift_ros.bags.hindsight import hindsight
from lift_ros.bags.reader import RunReader
from lift_ros.collection.records import Episode, Outcome
from lift_ros.errors import UserError
from lift_ros.positioning.environment import ActivePositioning
from lift_ros.positioning.pictures import PictureFormat

DATASETS_VARIABLE = "MINARI_DATASETS_PATH"
VECTOR, IMAGE, BOTH = KINDS = ("vector", "image", "both")  # what counts as observation
NAME = re.compile(r"[\w-]+?(-v\d+)?")


Part = TypeVar("Part")


@dataclass(slots=True)
class MinariExport:
    """What was written: where Minari finds it, how much, and what was left out for which reason."""

    folder: Path  # value of MINARI_DATASETS_PATH
    dataset_id: str
    episodes: int = 0
    steps: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def dataset_name(out: Path) -> str:
    """Return the Minari name of an output path: its last part, with a version added where it has none."""
    match = NAME.fullmatch(out.name)
    if match is None:
        raise UserError(f"--out {out}: a Minari dataset's name has letters, digits, - and _ only, not {out.name!r}")
    return out.name if match[1] else f"{out.name}-v0"


@contextmanager
def datasets_in(folder: Path) -> Iterator[None]:
    """Let Minari look for datasets in a folder."""
    before = dict(os.environ)
    os.environ[DATASETS_VARIABLE] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(DATASETS_VARIABLE)
        os.environ.update(before)


def usable_episodes(readers: Iterable[RunReader], left_out: Counter[str]) -> Iterator[Episode]:
    """Yield episodes with rewards, measured or in hindsight; those without steps or rewards are counted."""
    for reader in readers:
        for episode in map(seen_part, reader):
            if not episode.steps:
                left_out["episodes without steps"] += 1
                continue
            labelled, missing = hindsight([episode])
            left_out.update({f"episodes without rewards that {reason}": count for reason, count in missing.items()})
            yield from labelled


def environment_of(facts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return id, entry point, arguments and step limit of the Gymnasium environment that runs were simulated in.

    None for other plants, for runs of different scenarios, and where the environment lacks one of the parameters.
    """
    plant, *others = [(entry.get("parameters") or {}).get("plant") or {} for entry in facts]
    known = plant.get("kind") == "positioning" and plant.get("distortion") != "scale"
    if not known or any(other != plant for other in others):
        return None
    arguments = {name: plant.get(name) for name in inspect.signature(ActivePositioning).parameters}
    return {
        "id": "lift/Positioning-v0",
        "entry_point": "lift_ros.positioning.environment:ActivePositioning",
        "kwargs": {name: value for name, value in arguments.items() if value is not None},
        "max_episode_steps": plant.get("step_limit"),
    }


def seen_by(episode: Episode, kind: str) -> dict[str, npt.NDArray[Any]]:
    """Return the n+1 observations of an episode by name: vectors, pictures or both."""
    seen: dict[str, npt.NDArray[Any]] = {}
    if kind != IMAGE:
        seen[VECTOR] = np.vstack([*(step.observation for step in episode.steps), episode.final_observation])
    if kind != VECTOR:
        pictures = [*(step.image for step in episode.steps), episode.final_image]
        present = [picture for picture in pictures if picture is not None]
        if len(present) < len(pictures):
            raise UserError(f"episode {episode.index} has steps without a picture; use --observation vector")
        formats = {str(PictureFormat.of(picture)) for picture in present}
        if len(formats) > 1:
            found = ", ".join(sorted(formats))
            raise UserError(f"episode {episode.index} has pictures of different formats ({found}); export others")
        seen[IMAGE] = np.stack(present)
    return seen


def _only(parts: Mapping[str, Part], kind: str) -> Part | dict[str, Part]:
    """Return what is seen as Minari has it: by name where vectors and pictures are seen, else as it is."""
    return dict(parts) if kind == BOTH else parts[kind]


Sizes = dict[str, tuple[tuple[int, ...], str]]  # of what is seen, by name: shape and type


def measure(episodes: Iterable[Episode], kind: str) -> tuple[Sizes, int, float]:
    """Return what Gymnasium spaces need: the sizes of observations, the size of actions and their largest entry."""
    sizes: tuple[Sizes, int] | None = None
    largest = 0.0
    for episode in episodes:
        actions = np.vstack([step.action for step in episode.steps])
        seen = {name: (part.shape[1:], str(part.dtype)) for name, part in seen_by(episode, kind).items()}
        found = (seen, actions.shape[1])
        if sizes not in (None, found):
            differs = "has observations {} and {} actions, those before it {} and {}".format(*found, *sizes)
            raise UserError(f"episode {episode.index} {differs}; export runs of one kind together")
        sizes = found
        largest = max(largest, float(np.abs(actions).max(initial=0.0)))
    if sizes is None:
        raise UserError("the runs have no episode with steps and rewards; there is nothing to export")
    if sizes[0].get(VECTOR, ((1,), ""))[0] == (0,):
        raise UserError("the run has no observation vectors; use --observation image")
    return *sizes, largest


def _bounds(dtype: str) -> tuple[float, float]:
    kind = np.dtype(dtype)
    return (-np.inf, np.inf) if kind.kind == "f" else (0, np.iinfo(kind).max)


def episode_arrays(episode: Episode, kind: str, *, drop_final: bool) -> dict[str, Any]:
    """Return one episode in Minari's arrangement: n actions between n+1 observations."""
    count, steps = len(episode.steps), episode.steps
    rows = count if drop_final else count + 1
    last = np.arange(count) == count - 1
    reached = episode.outcome == Outcome.REACHED
    infos: dict[str, Any] = {"source": np.array([*(int(step.source) for step in steps), 0])[:rows]}
    if episode.final_position.size:
        infos["position"] = np.vstack([*(step.position for step in steps), episode.final_position])[:rows]
    if episode.goal.size:
        infos["goal"] = np.tile(episode.goal, (rows, 1))
    return {
        "seed": episode.seed,
        "observations": _only({name: part[:rows] for name, part in seen_by(episode, kind).items()}, kind),
        "actions": np.vstack([step.action for step in steps]),
        "rewards": np.array([step.reward for step in steps]),
        "terminations": last & reached,
        "truncations": last & (not reached),
        "infos": infos,
    }


def _lossless(create: Callable[..., Any], kind: str) -> dict[str, bool]:
    """Return what keeps pictures exact; before 0.5.4 Minari compresses them whatever it is told."""
    if "jpeg_encoding" in inspect.signature(create).parameters:
        return {"jpeg_encoding": False}
    if kind != VECTOR:
        raise UserError("this Minari would change the pictures: export them with Minari 0.5.4 (numpy 2), or vectors")
    return {}


def export_minari(
    runs: Sequence[Path], out: Path, *, kind: str = VECTOR, drop_final: bool = False, skip_bad: bool = False
) -> MinariExport:
    """Write runs as one Minari dataset named after the last part of `out`, in the folder before it.

    `kind` says what an observation is: the vector, the picture, or both as a dictionary of these two names. One episode
    is in memory at a time.

    With `drop_final` the observation after the last step is left out. Minari has n+1 observations for n actions, but
    `d3rlpy.datasets.get_minari` joins episodes as if both were n and so shifts all observations after the first one.
    """
    try:
        import gymnasium
        import minari
        from gymnasium.envs.registration import EnvSpec
        from minari.data_collector import EpisodeBuffer
    except ImportError as error:
        raise UserError(f"exporting needs minari with HDF5: pip install 'minari[hdf5]' ({error})") from error
    options = _lossless(minari.create_dataset_from_buffers, kind)
    folder, name = out.absolute().parent, dataset_name(out)
    if (folder / name).exists():
        raise UserError(f"{folder / name} exists already; choose another --out or remove it")
    readers = [RunReader(path, skip_bad=skip_bad) for path in runs]
    sizes, action_size, largest = measure(usable_episodes(readers, Counter()), kind)
    environment = environment_of([reader.facts for reader in readers])
    report = MinariExport(folder, name)

    def buffers() -> Iterator[Any]:
        for episode in usable_episodes(readers, report.left_out):
            report.episodes += 1
            report.steps += len(episode.steps)
            yield EpisodeBuffer(**episode_arrays(episode, kind, drop_final=drop_final))

    boxes: dict[str, gymnasium.Space[Any]] = {
        name: gymnasium.spaces.Box(*_bounds(dtype), shape, np.dtype(dtype).type)
        for name, (shape, dtype) in sizes.items()
    }
    space = gymnasium.spaces.Dict(boxes) if kind == BOTH else boxes[kind]
    bound = largest or 1.0
    # Written beside its place and moved there when it is complete: a dataset that exists is a whole one.
    partial = folder / f".{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        with datasets_in(partial), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of metadata that a run does not have
            minari.create_dataset_from_buffers(
                dataset_id=name,
                buffer=buffers(),
                env=None if environment is None else EnvSpec(**environment),
                observation_space=space,
                action_space=gymnasium.spaces.Box(-bound, bound, (action_size,), np.float64),
                algorithm_name="LIFT",
                description=f"Exported by lift_ros from {', '.join(path.name for path in runs)}",
                **options,
            )
        (partial / name).rename(folder / name)
    except OSError as error:
        raise UserError(f"{folder / name} cannot be written: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return report
