"""Study files: grids over axes, what is measured, and how it is shown; checked like scenarios, and made into cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lift_ros.configuration import MOST, Key, check_mapping, check_value, nearest, read_yaml
from lift_ros.errors import UserError
from lift_ros.scenario import SUFFIXES, config_folder
from lift_ros.shortcuts.rule import PLAIN, STRATEGIES
from lift_ros.studies.cell import SEED_AXES, Cell
from lift_ros.studies.claims import Claim
from lift_ros.studies.methods import METHODS, Method
from lift_ros.studies.metrics import METRICS
from lift_ros.studies.resolving import Quick, Variation, cell_of
from lift_ros.studies.work import MEASURES
from lift_ros.training.options import PRESETS
from lift_ros.untrusted import brief

FOLDER = "studies"  # of those that come along, below the scenarios
MOST_CELLS = 100_000
_LARGEST_SEED = 2**53
# What a value of an axis may be. Cells that do not depend on an axis are the same cell for all of its values.
AXES: Mapping[str, Key] = {
    "measure": Key(str, choices=tuple(MEASURES), meaning="What is measured."),
    "scenario": Key(str, meaning="A scenario that comes along, or one of the sections `scenarios` and `runs`."),
    "method": Key(str, meaning="A method that comes along, or one of the section `methods`."),
    "preset": Key(str, choices=tuple(PRESETS), meaning="The training options to begin with."),
    "draw": Key(str, choices=("transitions", "episodes"), meaning="Where shortcuts begin."),
    "l": Key(float, above=0, meaning="Initial step size of the routine."),
    "noise": Key(float, low=0, high=100, meaning="Noise on the routine's steps, as a multiple of their length."),
    "n": Key(int, low=0, high=MOST, meaning="Augmentations per episode at most."),
    "p": Key(float, low=0, high=1, meaning="Probability with which the augmentor acts in a step."),
    "C": Key(float, low=0, meaning="What a shortcut must gain per length of the path it replaces."),
    "strategy": Key(str, choices=(*STRATEGIES, PLAIN), meaning="How shortcuts are drawn."),
    "episodes": Key(int, low=1, high=MOST, meaning="Episodes that are collected."),
    "train_after": Key(int, low=0, high=MOST, meaning="Episodes after which the augmentor is trained once."),
    "updates": Key(int, low=1, high=MOST, meaning="Updates of each training."),
    "data": Key(int, low=0, high=_LARGEST_SEED, meaning="Seed of the episodes and of the augmentor."),
    "training": Key(int, low=0, high=_LARGEST_SEED, meaning="Seed of the policy's training."),
}
EVALUATION_KEYS = {
    "contexts": Key(int, 20, low=1, high=100_000, meaning="Fresh contexts, the same for all cells."),
    "steps": Key(int, 50, low=1, high=MOST, meaning="Steps that a policy has to arrive."),
    "seed": Key(int, 0, low=0, meaning="Seed of the contexts."),
}
SCENARIO_KEYS = {
    "of": Key(str, meaning="A scenario by name, or its file."),
    "plant": Key(dict, {}, meaning="Parameters of its plant that differ."),
    "episodes": Key(int, None, low=1, high=MOST, optional=True, meaning="Episodes that are collected."),
    "train_after": Key(int, None, low=0, high=MOST, optional=True, meaning="Episodes until the augmentor is trained."),
}
RUN_KEYS = {
    "paths": Key(list, entries=str, meaning="Recorded runs to learn from; relative to the study file."),
    "scenario": Key(
        str, None, optional=True, meaning="The simulator to judge in; without one a twin of the runs judges."
    ),
    "action_radius": Key(float, None, above=0, optional=True, meaning="λ, where neither runs nor scenario tell it."),
}
QUICK_KEYS = {
    "episodes": Key(int, 4, low=1, meaning="Episodes of a quick look."),
    "train_after": Key(int, 2, low=0, meaning="Those before the augmentor is trained."),
    "updates": Key(int, 3, low=1, meaning="Updates of each training, and lessons of each encoder."),
    "contexts": Key(int, 2, low=1, meaning="Contexts."),
    "axes": Key(dict, {}, meaning="Values that are kept of axes; all others are left out."),
}
TABLE_KEYS = {
    "title": Key(str, "", meaning="What stands above it."),
    "rows": Key(list, [], entries=str, meaning="Axes whose values are rows; [] for all that vary."),
    "columns": Key(str, None, optional=True, meaning="The axis whose values are columns; null shows all metrics."),
    "value": Key(str, "distance_30", choices=tuple(METRICS), meaning="What entries show, where an axis is columns."),
    "where": Key(dict, {}, meaning="Values of axes that rows are left to."),
}
PLOT_KEYS = {
    "kind": Key(
        str,
        "curves",
        choices=("curves", "metric", "paths", "values", "heatmap"),
        meaning="Distances over steps, a metric over an axis, or what the measures of these names gave.",
    ),
    "panels": Key(list, [], entries=str, meaning="Axes: each of their combinations is a panel."),
    "lines": Key(str, "method", meaning="The axis whose values are lines."),
    "x": Key(str, None, optional=True, meaning="The axis below, of kind metric."),
    "value": Key(str, "distance_30", choices=tuple(METRICS), meaning="The metric, of kind metric."),
    "where": Key(dict, {}, meaning="Values of axes that are drawn."),
}
TOP_KEYS = {
    "description": Key(str, meaning="What it is, in one sentence."),
    "paper": Key(str, "", meaning="Where the paper has it."),
    "scenarios": Key(dict, {}, meaning="Variations of scenarios, by name."),
    "runs": Key(dict, {}, meaning="Recorded runs to begin from instead, by name."),
    "methods": Key(dict, {}, meaning="Methods beside those that come along, by name."),
    "grids": Key(list, entries=dict, meaning="Axes with their values; every combination of a grid is a cell."),
    "order": Key(
        list, ["training", "data"], entries=str, meaning="Axes whose later values come last; then grids, then cells."
    ),
    "options": Key(dict, {}, meaning="Training options of all cells, on top of the preset."),
    "evaluation": Key(dict, {}, meaning="How policies are judged."),
    "quick": Key(dict, {}, meaning="What `--quick` does."),
    "tables": Key(list, [{}], entries=dict, meaning="What tables show."),
    "plots": Key(list, [], entries=dict, meaning="What plots show."),
    "claims": Key(list, [], entries=dict, meaning="What the paper says of it, to compare with what is found."),
    "notes": Key(list, [], entries=str, meaning="Sentences below the tables."),
}


@dataclass(frozen=True)
class Study:
    """A study file, checked, with its cells in the order in which they are computed."""

    name: str
    description: str
    paper: str
    cells: tuple[Cell, ...]
    tables: tuple[Mapping[str, Any], ...]
    plots: tuple[Mapping[str, Any], ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...] = ()
    scenarios: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def unique(self) -> list[Cell]:
        """The cells without those that are the same under other labels."""
        return list({cell.fingerprint: cell for cell in reversed(self.cells)}.values())[::-1]


def study_folder() -> Path:
    """Return the folder of the studies that come along."""
    return config_folder() / FOLDER


def study_names() -> list[str]:
    """Return the names of all studies that come along."""
    return sorted(path.stem for path in study_folder().iterdir() if path.suffix in SUFFIXES)


def study_path(name_or_path: str | Path) -> Path:
    """Return the file of the study of this name, or this YAML file itself."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(SUFFIXES) or "/" in text:
        path = Path(name_or_path)
        if not path.is_file():
            raise UserError(f"{path}: no such study file")
        return path
    path = study_folder() / f"{text}.yaml"
    if not path.is_file():
        raise UserError(f"unknown study {text!r}; {nearest(text, study_names())}")
    return path


def describe_study(name: str) -> tuple[str, str]:
    """Return what a study that comes along is, and where the paper has it, without making its cells."""
    path = study_path(name)
    top = check_mapping(read_yaml(path), TOP_KEYS, f"{path}: ")
    return top["description"], top["paper"]


def load_study(name_or_path: str | Path, *, quick: bool = False, seeds: Sequence[int] | None = None) -> Study:
    """Return a study by name or from its file; `seeds` replaces the seeds of its data."""
    path = study_path(name_or_path)
    return _Reader(path).study(quick, None if seeds is None else list(seeds))


class _Reader:
    """A study file under examination; errors name file and section."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)
        self.top = check_mapping(read_yaml(path), TOP_KEYS, f"{path}: ")
        self.variations = {
            name: Variation(**self._section("scenarios", name, SCENARIO_KEYS)) for name in self.top["scenarios"]
        }
        self.runs = {name: self._run(name) for name in self.top["runs"]}
        self.methods = {
            name: Method.parse(self.top["methods"][name], f"{path}: methods.{name}") for name in self.top["methods"]
        }
        self.evaluation = check_mapping(self.top["evaluation"], EVALUATION_KEYS, f"{path}: evaluation")

    def study(self, is_quick: bool, seeds: list[int] | None) -> Study:
        """Return the study with its cells."""
        quick = Quick(**check_mapping(self.top["quick"], QUICK_KEYS, f"{self.where}: quick"))
        grids = [self._grid(grid, number) for number, grid in enumerate(self.top["grids"])]
        if seeds is not None:
            grids = [{**grid, "data": [check_value("--seeds", seed, AXES["data"]) for seed in seeds]} for grid in grids]
        if is_quick:
            grids = [kept for grid in grids if (kept := self._narrowed(grid, quick.axes))]
        labelled = self._ordered(grids)
        if not labelled:
            raise UserError(f"{self.where}: grids hold no cell{' that quick.axes keeps' if is_quick else ''}")
        cells = [
            cell_of(
                labels,
                variations=self.variations,
                runs=self.runs,
                methods=self.methods,
                options=self.top["options"],
                evaluation=self.evaluation,
                quick=quick if is_quick else None,
                where=self.where,
            )
            for labels in labelled
        ]
        return Study(
            name=self.path.stem,
            description=self.top["description"],
            paper=self.top["paper"],
            cells=tuple(cells),
            tables=tuple(self._shown("tables", TABLE_KEYS)),
            plots=tuple(self._shown("plots", PLOT_KEYS)),
            claims=tuple(
                Claim.parse(claim, f"{self.where}: claims[{number}]", AXES)
                for number, claim in enumerate(self.top["claims"])
            ),
            notes=tuple(self.top["notes"]),
        )

    def _section(self, section: str, name: str, keys: Mapping[str, Key]) -> dict[str, Any]:
        return check_mapping(self.top[section][name], keys, f"{self.where}: {section}.{name}")

    def _run(self, name: str) -> dict[str, Any]:
        run = self._section("runs", name, RUN_KEYS)
        return {**run, "paths": [str((self.path.parent / path).resolve()) for path in run["paths"]]}

    def _grid(self, grid: Any, number: int) -> dict[str, list[Any]]:
        """Return the values of each axis of a grid."""
        where = f"{self.where}: grids[{number}]"
        found: dict[str, list[Any]] = {}
        for axis, values in grid.items():
            if axis not in AXES:
                raise UserError(f"{where}: unknown axis {brief(axis)}; {nearest(axis, AXES)}")
            listed = values if isinstance(values, list) else [values]
            found[axis] = [check_value(f"{where}.{axis}", value, AXES[axis]) for value in listed]
            if not found[axis]:
                raise UserError(f"{where}.{axis} is []; allowed: at least one value")
        for axis in ("scenario", "method"):
            if axis not in found and not (axis == "method" and found.get("measure") in (["C"], ["values"])):
                raise UserError(f"{where}.{axis} is missing; allowed: {AXES[axis].allowed()}, or a list of such")
        self._check_names(found, where)
        return found

    def _check_names(self, grid: Mapping[str, Sequence[Any]], where: str) -> None:
        known = {**METHODS, **self.methods}
        for name in grid.get("method", ()):
            if name not in known:
                raise UserError(f"{where}: unknown method {name!r}; {nearest(name, known)}")

    def _narrowed(self, grid: Mapping[str, list[Any]], axes: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return what `--quick` leaves of a grid; nothing where none of an axis' values is kept."""
        narrow = {axis: grid[axis][:1] for axis in SEED_AXES if axis in grid}
        for axis, values in axes.items():
            if axis not in AXES:
                raise UserError(f"{self.where}: quick.axes: unknown axis {brief(axis)}; {nearest(axis, AXES)}")
            if axis in grid:
                narrow[axis] = [value for value in grid[axis] if value in values]
        kept = {**grid, **narrow}
        return kept if all(kept.values()) else {}

    def _ordered(self, grids: Sequence[Mapping[str, list[Any]]]) -> list[dict[str, Any]]:
        """Return the labels of all cells, the ones that say most first."""
        for axis in self.top["order"]:
            if axis not in AXES:
                raise UserError(f"{self.where}: order: unknown axis {brief(axis)}; {nearest(axis, AXES)}")
        count = sum(_size(grid) for grid in grids)
        if count > MOST_CELLS:
            raise UserError(f"{self.where}: grids hold {count} cells; allowed: at most {MOST_CELLS}")
        found = []
        for number, grid in enumerate(grids):
            for position, labels in enumerate(_combinations(grid)):
                late = [grid[axis].index(labels[axis]) if axis in labels else 0 for axis in self.top["order"]]
                found.append(((*late, number, position), labels))
        return [labels for _, labels in sorted(found, key=lambda entry: entry[0])]

    def _shown(self, section: str, keys: Mapping[str, Key]) -> Iterator[dict[str, Any]]:
        for number, entry in enumerate(self.top[section]):
            where = f"{self.where}: {section}[{number}]"
            checked = check_mapping(entry, keys, where)
            named = [*checked.get("rows", ()), *checked.get("panels", ()), *checked["where"]]
            named += [checked[name] for name in ("columns", "lines", "x") if checked.get(name)]
            for axis in named:
                if axis not in AXES:
                    raise UserError(f"{where}: unknown axis {brief(axis)}; {nearest(axis, AXES)}")
            yield checked


def _size(grid: Mapping[str, list[Any]]) -> int:
    size = 1
    for values in grid.values():
        size *= len(values)
    return size


def _combinations(grid: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))
