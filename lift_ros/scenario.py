"""Scenarios: named YAML files that fix plant, logging policy, collection and training of an experiment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lift_ros.configuration import MOST, Key, check_mapping, nearest, read_yaml
from lift_ros.drivers.rig import Rig
from lift_ros.errors import UserError
from lift_ros.policies.augmentations import (
    AUGMENTATION_NAMES,
    LEARNED,
    RANDOM_NAMES,
    RandomAugmentation,
    augmentation_arguments,
    make_augmentation,
)
from lift_ros.policies.loading import POLICY_ARGUMENTS, check_policy, is_routine, load_policy
from lift_ros.policies.optimal import OptimalPolicy
from lift_ros.policies.preprocessing import PictureSettings, Preprocessing
from lift_ros.policies.protocol import Policy
from lift_ros.policies.sight import ALLOWED, Sight, with_sight
from lift_ros.positioning.plants import FETCH_KINDS, PLANTS, PlantKind, make_dynamics
from lift_ros.positioning.problem import Limits, Problem
from lift_ros.shortcuts.motion import MOTIONS
from lift_ros.shortcuts.rule import PLAIN, STRATEGIES

OPTIMAL = "optimal"  # full information: made for a scenario's simulator, never from a parameter file
HARDWARE = "hardware"  # the kind of plant that is real
SUFFIXES = (".yaml", ".yml")

TOP_KEYS = {
    "description": Key(str, "", meaning="What it is, in one sentence."),
    "plant": Key(dict, meaning="What moves."),
    "logging_policy": Key(dict, meaning="The routine that positions it."),
    "collection": Key(dict, {}, meaning="How episodes are collected with LIFT."),
    "assist": Key(dict, {}, meaning="When the learned policy, which acts first in mode assist, counts as stalled."),
    "guard": Key(dict, {}, meaning="How augmented episodes are kept from being worse than the routine's."),
    "training": Key(dict, {}, meaning="What this plant wants of offline training; null leaves it to the preset."),
    "units": Key(dict, {}, meaning="What numbers are called in tables and plots; nothing is converted."),
    "sees": Key(dict, {}, meaning="What each policy sees of an observation."),
    "picture": Key(dict, {}, meaning="What becomes of pictures before a network sees them, in this order."),
    "rig": Key(dict, {}, meaning="How hardware is driven by the node `rig`; without it a node of your own does."),
}
_SIGHTS = f"Allowed: {ALLOWED}."
SEES_KEYS = {
    "logging_policy": Key(str, "values", meaning=f"What the routine sees. {_SIGHTS}"),
    "augmentor": Key(str, "values", meaning=f"What is learned from, and what the model is shown. {_SIGHTS}"),
}
POLICY_KEYS = {
    "name": Key(str, meaning='A name from below, or a routine of your own as "my_package.my_module:MyRoutine".'),
    "arguments": Key(dict, {}, meaning="Its keyword arguments; those that the plant answers need not be given."),
}
COLLECTION_KEYS = {
    "episodes": Key(int, 100, low=1, high=MOST, meaning="Episodes in the run, those of earlier commands included."),
    "p": Key(float, 0.6, low=0, high=1, meaning="Probability with which the augmentor may act in a step."),
    "augmentation_budget": Key(int, 20, low=0, high=MOST, meaning="Augmented steps per episode at most."),
    "train_after": Key(
        int,
        50,
        low=0,
        high=MOST,
        meaning="The augmentor is trained on, or fitted to, the first so many episodes; 0 for never.",
    ),
    "augmentation": Key(
        str, LEARNED, choices=AUGMENTATION_NAMES, meaning="Who augments: LIFT's learned model, or a random baseline."
    ),
    "augmentation_arguments": Key(dict, {}, meaning="Keyword arguments of a random augmentation."),
}
ASSIST_KEYS = {
    "budget": Key(
        int,
        30,
        low=0,
        high=1_000_000,
        meaning="Moves that the augmentor may cost, those that take back what it did included.",
    ),
    "window": Key(int, 8, low=4, high=1000, meaning="Moves that are looked at to see whether they cancel out."),
    "cancel": Key(
        float, 0.5, low=0, high=1, meaning="They do where they lead no farther than this share of their length."
    ),
    "smallest": Key(float, 0.01, low=0, high=1, meaning="Shortest move worth making, as a share of the action radius."),
    "coverage": Key(bool, True, meaning="Withhold the action where the model's data do not cover the observation."),
    "retreat": Key(bool, True, meaning="Take back what an erratic augmentor did before the logging policy takes over."),
}
START_AUTO, START_SMALL, START_FULL = "auto", "small", "full"
GUARD_KEYS = {
    "enabled": Key(bool, True, meaning="Whether augmented episodes are kept from being worse than the routine's."),
    "allowance": Key(
        float, 1.2, above=1, high=100, meaning="Steps of `horizon` episodes at most, as a multiple of the routine's."
    ),
    "horizon": Key(int, 60, low=1, high=1_000_000, meaning="Episodes over which costs are allowed for."),
    "plain": Key(int, 5, low=1, high=1000, meaning="Episodes of the routine alone that there must be to compare with."),
    "start": Key(
        str,
        START_AUTO,
        choices=(START_AUTO, START_SMALL, START_FULL),
        meaning="Begin with a small p and budget and raise them, or with the whole; auto is small on hardware only.",
    ),
    "evidence": Key(float, 5.0, above=1, high=1e9, meaning="Odds at which augmented episodes are taken to be worse."),
    "leash": Key(
        float, 1.0, above=0, high=1000, meaning="Steps before the routine takes over, in its own long episodes."
    ),
    "rejections": Key(
        int, 5, low=1, high=1_000_000, meaning="Proposals refused in an episode until nobody asks any more."
    ),
    "retreat": Key(bool, True, meaning="Whether the routine then begins where the episode began."),
}
TRAINING_KEYS = {
    "updates": Key(int, None, low=1, high=MOST, optional=True, meaning="Number of updates of the networks."),
    "strategy": Key(
        str,
        None,
        choices=(*STRATEGIES, PLAIN),
        optional=True,
        meaning=f"How shortcuts are drawn from those that Algorithm 1 admits; {PLAIN!r} trains on plain transitions.",
    ),
    "C": Key(
        float,
        None,
        low=0,
        optional=True,
        meaning="Return that a shortcut must gain per length of the path it replaces; 0 admits the most.",
    ),
    "motion": Key(
        str,
        None,
        choices=MOTIONS,
        optional=True,
        meaning="How actions add up to a shortcut: linearly, by a power of their length, or as the run tells.",
    ),
    "gamma": Key(float, None, above=0, high=1, optional=True, meaning="Discount of later rewards, the paper's γ."),
    "scale_observations": Key(
        bool, None, optional=True, meaning="Whether networks see observations with mean 0 and deviation 1."
    ),
    "draw": Key(
        str,
        None,
        choices=("transitions", "episodes"),
        optional=True,
        meaning="Where shortcuts begin: uniform over transitions, or over episodes first.",
    ),
    "shift": Key(
        int,
        None,
        low=0,
        high=64,
        optional=True,
        meaning="Pixels by which pictures are moved at random in training, where only it counts where things are to "
        "each other, and not where in the picture.",
    ),
    "jitter": Key(
        float,
        None,
        low=0,
        high=1,
        optional=True,
        meaning="Share by which brightness and contrast of pictures are changed at random in training, where light "
        "says nothing.",
    ),
    "composed": Key(
        float,
        None,
        low=0,
        high=1,
        optional=True,
        meaning="Share of an encoder's lessons on composed pictures: the first one of an episode, with what moved in "
        "another one. Only where all episodes begin at one place, before cameras that stand still.",
    ),
    "lessons": Key(
        int,
        None,
        low=0,
        high=MOST,
        optional=True,
        meaning="Number of updates that teach an encoder of pictures to see, before actor and critics learn.",
    ),
    "anchor_to": Key(
        str,
        None,
        choices=("drawn", "far", "goal", "drawn_goal"),
        optional=True,
        meaning="The actor is pulled to the drawn shortcuts (drawn), or also to longer ones, shortened (far); with "
        "drawn_goal and goal besides on to recorded goals from where routines stop, within the threshold.",
    ),
    "reward": Key(
        str,
        None,
        choices=("recorded", "hindsight"),
        optional=True,
        meaning="Label episodes that miss rewards by the distance to the goal, or refuse them; measured ones stay.",
    ),
}
UNITS_KEYS = {
    "length": Key(str, "", meaning="Unit of positions, actions, radius and threshold."),
    "observations": Key(list, [], entries=str, meaning="Unit of each entry of the observation."),
}


@dataclass(frozen=True)
class PlantSettings:
    """What moves: the kind of plant and all of its parameters."""

    kind: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class PolicySettings:
    """A policy by name, or as "module:Name", with keyword arguments."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class CollectionSettings:
    """How episodes are collected with LIFT."""

    episodes: int
    p: float
    augmentation_budget: int
    train_after: int  # episodes of the logging policy alone, before the augmentor is trained or fitted; 0: never
    augmentation: str  # learned, or the name of a random one
    augmentation_arguments: dict[str, Any]


@dataclass(frozen=True)
class AssistSettings:
    """When the logging policy takes over from a learned policy in mode assist."""

    budget: int = ASSIST_KEYS["budget"].default  # moves that the augmentor may cost, those that take back included
    window: int = ASSIST_KEYS["window"].default  # moves that are looked at to see whether they cancel out
    cancel: float = ASSIST_KEYS["cancel"].default  # they do where they lead no farther than this share of their length
    smallest: float = ASSIST_KEYS["smallest"].default  # shortest move worth making, as a share of the action radius
    coverage: bool = ASSIST_KEYS["coverage"].default  # whether a model must know observations like the present one
    retreat: bool = ASSIST_KEYS["retreat"].default  # whether what an erratic augmentor did is taken back


DEFAULT_ASSIST = AssistSettings()


@dataclass(frozen=True)
class Units:
    """In what a plant's numbers are measured, as far as its scenario says."""

    length: str = UNITS_KEYS["length"].default  # of positions and what is compared with them: radius, threshold, reward
    observations: list[str] = field(default_factory=list)  # one per entry, or none at all


@dataclass(frozen=True)
class Sees:
    """What each policy sees, in words that `Sight.parse` reads."""

    logging_policy: str = SEES_KEYS["logging_policy"].default
    augmentor: str = SEES_KEYS["augmentor"].default


@dataclass(frozen=True)
class GuardSettings:
    """When augmented episodes count as worse than the routine's, and how much they may cost until then."""

    enabled: bool = GUARD_KEYS["enabled"].default
    allowance: float = GUARD_KEYS["allowance"].default
    horizon: int = GUARD_KEYS["horizon"].default
    plain: int = GUARD_KEYS["plain"].default
    start: str = GUARD_KEYS["start"].default
    evidence: float = GUARD_KEYS["evidence"].default
    leash: float = GUARD_KEYS["leash"].default
    rejections: int = GUARD_KEYS["rejections"].default
    retreat: bool = GUARD_KEYS["retreat"].default

    def on(self, hardware: bool) -> GuardSettings:
        """Return the settings with the start that this kind of plant asks for."""
        return replace(self, start=START_SMALL if hardware else START_FULL) if self.start == START_AUTO else self


DEFAULT_GUARD = GuardSettings()
NO_GUARD = GuardSettings(enabled=False)


@dataclass(frozen=True)
class Scenario:
    """One experiment: who moves what, how it is recorded and how a policy is trained from it."""

    name: str
    description: str
    plant: PlantSettings
    logging_policy: PolicySettings
    collection: CollectionSettings
    assist: AssistSettings
    guard: GuardSettings
    training: dict[str, Any]  # by TRAINING_KEYS
    units: Units = field(default=Units(), compare=False)  # names alone: they make no other experiment
    sees: Sees = field(default_factory=Sees)
    picture: PictureSettings = field(default_factory=PictureSettings)
    rig: dict[str, Any] = field(default_factory=dict, compare=False)  # another port or driver: the same experiment

    @property
    def limits(self) -> Limits:
        """What the plant can do; nothing is built to know it."""
        limits = self._kind.limits(self.plant.parameters)
        return limits if limits.workspace or not self.rig else replace(limits, workspace=self.make_rig().reachable())

    @property
    def is_real(self) -> bool:
        """Whether something real moves, by a node of the user or by the node `rig`."""
        return self.plant.kind == HARDWARE

    def make_rig(self) -> Rig:
        """Return how the rig is driven; nothing is connected."""
        return Rig.parse(self.rig, "rig")

    @property
    def observation_size(self) -> int:
        """Number of entries of the plant's observation."""
        return self.limits.observation_size

    @property
    def action_size(self) -> int:
        """Number of entries of the plant's action."""
        return self.limits.action_size

    @property
    def action_radius(self) -> float:
        """Radius λ of the plant's action ball."""
        return float(self.limits.action_radius)

    @property
    def threshold(self) -> float:
        """Distance θ to the goal at which the plant has arrived."""
        return float(self.plant.parameters["threshold"])

    @property
    def routine_sight(self) -> Sight:
        """What the logging policy sees."""
        return Sight.parse(self.sees.logging_policy)

    @property
    def model_sight(self) -> Sight:
        """What models see."""
        return Sight.parse(self.sees.augmentor)

    def make_preprocessing(self) -> Preprocessing | None:
        """Return what becomes of pictures before a model sees them; None where it sees none."""
        picture = self.limits.picture
        return Preprocessing.make(self.picture, picture) if self.model_sight.image and picture is not None else None

    def make_blind_problem(self) -> Problem:
        """Return a new plant without pictures where drawing takes longer than moving: for who sees values alone."""
        return self.make_problem(render_size=0 if self.plant.kind in FETCH_KINDS else None)

    def make_problem(self, render_size: int | None = None) -> Problem:
        """Return a new plant; with `render_size` its images are squares of that many pixels, if it can draw them."""
        return self._kind.build(self.plant.parameters, render_size)

    def make_recorded_problem(self, images: int | None) -> Problem:
        """Return a new plant to record, with images of this size where the scenario itself has none."""
        picture = self.limits.picture
        if images is not None and picture is not None:
            raise UserError(
                f"images of {images} pixels are asked for, but the plant of scenario {self.name} sends pictures of its "
                f"own, {picture}: leave the size of images out, or change plant.picture_size in the scenario"
            )
        return self.make_problem(images)

    def make_logging_policy(self) -> Policy:
        """Return a new logging policy that fits the plant."""
        return self.make_policy(self.logging_policy.name, self.logging_policy.arguments)

    def make_policy(self, name: str, arguments: Mapping[str, Any] | None = None) -> Policy:
        """Return any policy by name, or from "module:Name", for this plant; "optimal" is the yardstick."""
        if name == OPTIMAL:
            return self._make_optimal()
        if name in RANDOM_NAMES:
            return self.make_augmentation(name, arguments)
        completed = complete_arguments(name, arguments or {}, self.plant)
        sight = self.routine_sight
        policy = load_policy(name, completed, sight.size(self.observation_size), self.action_size)
        return with_sight(policy, sight)

    def make_augmentation(self, name: str, arguments: Mapping[str, Any] | None = None) -> RandomAugmentation:
        """Return the random augmentation of this name; arguments that are not given are the scenario's, or defaults."""
        own = self.collection.augmentation_arguments if name == self.collection.augmentation else {}
        given = {**own, **(arguments or {})}
        return make_augmentation(name, given, self.make_logging_policy(), self.action_size, self.action_radius)

    def as_dict(self) -> dict[str, Any]:
        """Return the scenario as plain values; `parse_scenario` turns them into the same scenario."""
        data = asdict(self)
        data["plant"] = {"kind": self.plant.kind, **self.plant.parameters}
        del data["name"]
        if not self.rig:
            del data["rig"]
        return data

    def _make_optimal(self) -> Policy:
        if self.plant.kind != "positioning":
            raise UserError(f"policy {OPTIMAL!r} needs a plant of kind 'positioning', not {self.plant.kind!r}")
        return OptimalPolicy(make_dynamics(self.plant.parameters))

    @property
    def _kind(self) -> PlantKind:
        return PLANTS[self.plant.kind]


def complete_arguments(name: str, arguments: Mapping[str, Any], plant: PlantSettings) -> dict[str, Any]:
    """Return the arguments of a named policy with what it needs to know of the plant, unless given."""
    wanted = POLICY_ARGUMENTS.get(name, {})
    facts = {key: value for key, value in plant.parameters.items() if key in wanted}
    return {**facts, **arguments}


def parse_scenario(data: Any, name: str, source: str) -> Scenario:
    """Check the content of a scenario file; `source` is how errors name it."""
    top = check_mapping(data, TOP_KEYS, f"{source}: ")
    plant = _parse_plant(top["plant"], source)
    policy = check_mapping(top["logging_policy"], POLICY_KEYS, f"{source}: logging_policy")
    arguments = complete_arguments(policy["name"], policy["arguments"], plant)
    policy["arguments"] = check_policy(policy["name"], arguments, f"{source}: logging_policy")
    collection = check_mapping(top["collection"], COLLECTION_KEYS, f"{source}: collection")
    collection["augmentation_arguments"] = augmentation_arguments(
        collection["augmentation"], collection["augmentation_arguments"], f"{source}: collection.augmentation_arguments"
    )
    scenario = Scenario(
        name=name,
        description=top["description"],
        plant=plant,
        logging_policy=PolicySettings(**policy),
        collection=CollectionSettings(**collection),
        assist=AssistSettings(**check_mapping(top["assist"], ASSIST_KEYS, f"{source}: assist")),
        guard=GuardSettings(**check_mapping(top["guard"], GUARD_KEYS, f"{source}: guard")),
        training=check_mapping(top["training"], TRAINING_KEYS, f"{source}: training"),
        units=_parse_units(top["units"], PLANTS[plant.kind].limits(plant.parameters).observation_size, source),
        sees=Sees(**check_mapping(top["sees"], SEES_KEYS, f"{source}: sees")),
        picture=PictureSettings.parse(top["picture"], f"{source}: picture"),
        rig=top["rig"],
    )
    _check_rig(scenario, source)
    _check_sights(scenario, source)
    step = scenario.logging_policy.arguments.get("step")
    if not is_routine(scenario.logging_policy.name) and step is not None and step > scenario.action_radius:
        raise UserError(
            f"{source}: logging_policy.arguments.step is {step:g}; allowed: "
            f"at most plant.action_radius, which is {scenario.action_radius:g}"
        )
    return scenario


def _check_rig(scenario: Scenario, source: str) -> None:
    if not scenario.rig:
        return
    if not scenario.is_real:
        raise UserError(
            f"{source}: rig describes devices, but the plant is simulated, kind {scenario.plant.kind!r}; allowed: a "
            f"plant of kind {HARDWARE!r}, or no section rig"
        )
    try:
        Rig.parse(scenario.rig, "rig").check(scenario.limits, "rig")
    except UserError as error:
        raise UserError(f"{source}: {error}") from error


def _check_sights(scenario: Scenario, source: str) -> None:
    """Refuse policies that would see what the plant does not send."""
    limits = scenario.limits
    for name in SEES_KEYS:
        try:
            sight = Sight.parse(getattr(scenario.sees, name))
            sight.size(limits.observation_size)
        except UserError as error:
            raise UserError(f"{source}: sees.{name}: {error}") from error
        if sight.image and limits.picture is None:
            raise UserError(
                f"{source}: sees.{name} is {str(sight)!r}, but the plant sends no picture; allowed: values, or give "
                "the plant a camera"
            )
    if limits.picture is not None:
        try:
            Preprocessing(scenario.picture, limits.picture)
        except UserError as error:
            raise UserError(f"{source}: {error}") from error


def _parse_plant(data: dict[str, Any], source: str) -> PlantSettings:
    where = f"{source}: plant"
    kinds = Key(str, choices=tuple(PLANTS))
    kind = check_mapping({k: v for k, v in data.items() if k == "kind"}, {"kind": kinds}, where)["kind"]
    parameters = check_mapping({k: v for k, v in data.items() if k != "kind"}, PLANTS[kind].keys, where)
    try:
        PLANTS[kind].limits(parameters)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    return PlantSettings(kind, parameters)


def _parse_units(data: dict[str, Any], observation_size: int, source: str) -> Units:
    units = check_mapping(data, UNITS_KEYS, f"{source}: units")
    named = len(units["observations"])
    if named not in (0, observation_size):
        raise UserError(
            f"{source}: units.observations names {named} units; allowed: one for each of the {observation_size} "
            'entries of an observation ("" where there is none), or []'
        )
    return Units(**units)


def config_folder() -> Path:
    """Return the folder with the scenario files: of the checkout, or of the installed share."""
    package = Path(__file__).resolve().parent
    prefixes = [*package.parents, *map(Path, filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)))]
    folders = [package.parent / "config", *(prefix / "share" / "lift_ros" / "config" for prefix in prefixes)]
    for folder in folders:
        if any(folder.glob("po-*.yaml")):
            return folder
    raise UserError(
        f"no scenario files found in {folders[0]} or in share/lift_ros/config: source the workspace that "
        "has lift_ros, or install it again"
    )


def scenario_names() -> list[str]:
    """Return the names of all scenarios that come with lift_ros."""
    return [path.stem for path in scenario_files(config_folder())]


def scenario_files(folder: Path) -> list[Path]:
    """Return the scenario files of a folder by name; parameter files of nodes and rigs may lie there as well."""
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and _is_scenario(path))


def _is_scenario(path: Path) -> bool:
    data = read_yaml(path)
    return isinstance(data, dict) and "plant" in data


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Return the scenario of this name, or of this YAML file."""
    path = scenario_path(name_or_path)
    scenario = parse_scenario(read_yaml(path), path.stem, str(path))
    if scenario.picture.reference is None:
        return scenario
    reference = str((path.parent / scenario.picture.reference).resolve())
    return replace(scenario, picture=replace(scenario.picture, reference=reference))


def scenario_path(name_or_path: str | Path) -> Path:
    """Return the file of the scenario of this name, or this YAML file itself."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(SUFFIXES) or os.sep in text:
        path = Path(name_or_path)
        if not path.is_file():
            raise UserError(f"{path}: no such scenario file")
        return path
    path = config_folder() / f"{text}.yaml"
    if not path.is_file():
        raise UserError(f"unknown scenario {text!r}; {nearest(text, scenario_names())}")
    return path
