"""`lift config`: every setting of scenario, collection and training that is in force, and where it comes from."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lift_ros.bags.reader import RunReader
from lift_ros.commands.collection_options import check_collection_options
from lift_ros.commands.training_options import add_training_options, given_options, make_options
from lift_ros.configuration import Key, read_yaml
from lift_ros.console import format_table
from lift_ros.policies.augmentations import AUGMENTATION_NAMES
from lift_ros.policies.preprocessing import PICTURE_KEYS
from lift_ros.scenario import (
    ASSIST_KEYS,
    COLLECTION_KEYS,
    GUARD_KEYS,
    SEES_KEYS,
    UNITS_KEYS,
    Scenario,
    load_scenario,
    parse_scenario,
    scenario_path,
)
from lift_ros.training.options import PRESETS

DEFAULT, COMMAND_LINE = "default", "command line"
# What collects a run is called differently by the command line and by a run's facts than by a scenario.
_BY_SCENARIO = {"budget": "augmentation_budget"}
_SECTIONS = {
    "sees": SEES_KEYS,
    "picture": PICTURE_KEYS,
    "collection": COLLECTION_KEYS,
    "assist": ASSIST_KEYS,
    "guard": GUARD_KEYS,
    "units": UNITS_KEYS,
}
_COLLECTION_OPTIONS = ("episodes", "p", "budget", "train_after", "augmentation")


@dataclass(frozen=True)
class Setting:
    """One value in force."""

    name: str
    value: Any
    origin: str


@dataclass(frozen=True)
class Source:
    """A scenario with what its author, or the facts of a run, actually say."""

    label: str  # how the origin of a setting is called
    place: str
    scenario: Scenario
    said: Mapping[str, Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift config`."""
    source = parser.add_mutually_exclusive_group()
    help_text = "name or YAML file of a scenario, or a run"
    source.add_argument("source", nargs="?", metavar="SCENARIO", default=argparse.SUPPRESS, help=help_text)
    source.add_argument("--scenario", dest="source", metavar="SCENARIO", help="the same")
    parser.add_argument("--changed", action="store_true", help="leave out what is at its default")
    parser.add_argument("--json", action="store_true", help="print everything for programs")
    collection = parser.add_argument_group("as given to lift run and lift collect")
    collection.add_argument("--episodes", type=int, metavar="N", help="episodes in the run")
    collection.add_argument("--p", type=float, help="probability of an augmented step")
    collection.add_argument("--budget", type=int, metavar="N", help="augmented steps per episode")
    collection.add_argument("--train-after", type=int, metavar="N", help="episodes before the augmentor is trained")
    collection.add_argument("--augmentation", choices=AUGMENTATION_NAMES, help="who augments")
    training = parser.add_argument_group("as given to lift train")
    add_training_options(training)


def run(arguments: argparse.Namespace) -> int:
    """Print the settings."""
    check_collection_options(arguments)
    source = None if arguments.source is None else _find(arguments.source)
    found = [*_scenario_settings(source), *_collection_settings(source, arguments), *_training(source, arguments)]
    shown = [setting for setting in found if not arguments.changed or setting.origin != DEFAULT]
    if arguments.json:
        print(json.dumps({setting.name: {"value": setting.value, "from": setting.origin} for setting in shown}))
        return 0
    if source is not None:
        print(f"{source.label}: {source.place}")
    print(format_table(("setting", "value", "from"), [(entry.name, _words(entry), entry.origin) for entry in shown]))
    return 0


def _find(word: str) -> Source:
    path = Path(word)
    if path.is_dir():
        facts = RunReader(path).facts
        scenario = parse_scenario(facts.get("parameters"), str(facts.get("scenario", path.name)), f"facts of {path}")
        said = scenario.as_dict()
        told = {
            _BY_SCENARIO.get(name, name): facts[name] for name in _COLLECTION_OPTIONS if facts.get(name) is not None
        }
        return Source("run", str(path), scenario, {**said, "collection": {**said["collection"], **told}})
    return Source("scenario", str(scenario_path(word)), load_scenario(word), read_yaml(scenario_path(word)))


def _scenario_settings(source: Source | None) -> Iterator[Setting]:
    if source is None:
        return
    plant, policy = source.scenario.plant, source.scenario.logging_policy
    said_of_policy = source.said["logging_policy"]
    yield Setting("plant.kind", plant.kind, source.label)
    for name, value in plant.parameters.items():
        yield Setting(f"plant.{name}", value, source.label if name in source.said["plant"] else DEFAULT)
    yield Setting("logging_policy.name", policy.name, source.label)
    for name, value in policy.arguments.items():
        of_plant = "plant" if name in plant.parameters else DEFAULT
        origin = source.label if name in (said_of_policy.get("arguments") or {}) else of_plant
        yield Setting(f"logging_policy.arguments.{name}", value, origin)


def _collection_settings(source: Source | None, arguments: argparse.Namespace) -> Iterator[Setting]:
    given = {_BY_SCENARIO.get(name, name): getattr(arguments, name) for name in _COLLECTION_OPTIONS}
    for section, keys in _SECTIONS.items():
        said = {} if source is None else source.said.get(section) or {}
        for name, key in keys.items():
            if section == "collection" and given.get(name) is not None:
                yield Setting(f"{section}.{name}", given[name], COMMAND_LINE)
            else:
                yield _setting(section, name, key, said, source)


def _setting(section: str, name: str, key: Key, said: Mapping[str, Any], source: Source | None) -> Setting:
    if source is None or name not in said:
        return Setting(f"{section}.{name}", key.default, DEFAULT)
    return Setting(f"{section}.{name}", said[name], source.label)


def _training(source: Source | None, arguments: argparse.Namespace) -> Iterator[Setting]:
    scenario = None if source is None else source.scenario
    given = given_options(arguments)
    for name, value in make_options(arguments, scenario).as_dict().items():
        origin = DEFAULT
        if name in given:
            origin = COMMAND_LINE
        elif source is not None and source.scenario.training.get(name) is not None:
            origin = source.label
        elif name in PRESETS[arguments.preset]:
            origin = f"preset {arguments.preset}"
        yield Setting(f"training.{name}", value, origin)


def _words(setting: Setting) -> str:
    value = setting.value
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
