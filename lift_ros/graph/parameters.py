"""Every parameter of every node in one table: type, unit, range, default, description; needs no ROS."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lift_ros.collection.records import COMPRESSIONS, Mode
from lift_ros.configuration import Key
from lift_ros.errors import UserError
from lift_ros.graph.page_address import DEFAULT_ADDRESS
from lift_ros.scenario import ASSIST_KEYS, GUARD_KEYS

Value = bool | int | float | str

MODE_NAMES = tuple(mode.name.lower() for mode in Mode)
CLOCK = "use_sim_time"  # ROS gives this parameter to every node
_KINDS = {bool: "bool", int: "int", float: "double", str: "string"}


@dataclass(frozen=True)
class Parameter:
    """One parameter; its type is that of the default. `fixed` ones can be given at start only."""

    name: str
    default: Value
    unit: str
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    fixed: bool = False

    @property
    def kind(self) -> str:
        """ROS' name of the type."""
        return _KINDS[type(self.default)]

    @property
    def key(self) -> Key:
        """What the value is checked against."""
        return Key(type(self.default), low=self.low, high=self.high, choices=self.choices)

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        return self.key.limits() if self.choices else f"{self.kind} {self.key.limits()}".strip()

    def check(self, value: object) -> None:
        """Raise `UserError` unless `value` has this parameter's type and lies in its range."""
        # ROS takes no whole number for a double.
        if type(value) is not type(self.default) or not self.key.accepts(value):
            hint = f"; write {value}.0" if self.kind == "double" and type(value) is int else ""
            raise UserError(f"parameter {self.name} is {value!r}; allowed: {self.allowed}{hint}")


def check_clock(simulated: object) -> None:
    """Refuse simulated time: it may stand still or jump back, and records must stay in the order of their times."""
    if simulated is not False:
        raise UserError(
            f"parameter {CLOCK} is {simulated!r}; allowed: false, as steps are stamped and deadlines and the plant's "
            "watchdog kept by this machine's clock; leave simulated time to the nodes of your simulator"
        )


_fixed = partial(Parameter, fixed=True)


def _count(name: str, default: int, description: str, low: int = 0, *, fixed: bool = False) -> Parameter:
    return Parameter(name, default, "1", description, low, 2**31 - 1, fixed=fixed)


def _seconds(
    name: str, default: float, description: str, low: float = 0.0, high: float = 60.0, *, fixed: bool = False
) -> Parameter:
    return Parameter(name, default, "s", description, low, high, fixed=fixed)


ASSIST_OF_AUGMENTOR = ("coverage",)  # the arbiter has no model to ask
ASSIST_OF_ARBITER = tuple(name for name in ASSIST_KEYS if name not in ASSIST_OF_AUGMENTOR)


def _meaning(section: str, key: Key) -> str:
    return f"{section}: {key.meaning[0].lower()}{key.meaning[1:].rstrip('.')}"


def _assist(name: str) -> Parameter:
    """Return the parameter for one key of a scenario's section assist."""
    key = ASSIST_KEYS[name]
    unit = "true or false" if key.kind is bool else "1"
    fixed = name in ASSIST_OF_AUGMENTOR
    meaning = _meaning("in mode assist", key)
    return Parameter(f"assist_{name}", key.default, unit, meaning, key.low, key.high, fixed=fixed)


def _guard(name: str) -> Parameter:
    """Return the parameter for one key of a scenario's section guard."""
    key = GUARD_KEYS[name]
    unit = {bool: "true or false", str: "name"}.get(key.kind, "1")
    low = key.low if key.above is None else key.above
    return Parameter(f"guard_{name}", key.default, unit, _meaning("guard", key), low, key.high, key.choices)


_COMMON = (
    _seconds("diagnostics_period", 1.0, "how often this node reports on /diagnostics", 0.05, fixed=True),
    _fixed("graph", "", "text", "token of the graph, given by whoever starts it; messages of another are not heeded"),
)

_SCENARIO = _fixed(
    "scenario", "po-blend-d2", "name or path", "scenario that fixes plant, logging policy, collection and training"
)

_PLANT = (
    _seconds("watchdog", 1.0, "hold when an episode is under way and no command came for so long", 0.02, 3600.0),
    _seconds("move_limit", 60.0, "a move that takes longer has stalled, which is a fault", 0.02, 86400.0),
    _fixed("frame_id", "world", "name", "frame of the positions in observations"),
    _fixed(
        "emergency_topic",
        "",
        "topic",
        "std_msgs/Bool: true stops as the service emergency_stop does, which releases it; empty for none",
    ),
)

_SIMULATOR = (_SCENARIO, _seconds("step_time", 0.0, "how long a move takes; 0 moves at once"))

_POLICY = (
    _SCENARIO,
    _fixed("policy", "", "name or module:Name", "policy to ask; empty takes what the scenario or the model says"),
    _fixed("policy_arguments", "{}", "JSON", "keyword arguments of the policy"),
    _seconds("delay", 0.0, "artificial time to think before each answer, to try deadlines"),
)

PLANT_PARAMETERS = (  # of every rig
    _fixed(
        "scenario", "", "name or path", "scenario that says what this plant can do: sizes, action radius, workspace"
    ),
    *_PLANT,
    *_COMMON,
)

PARAMETERS: dict[str, tuple[Parameter, ...]] = {
    "positioning_simulator": (*_SIMULATOR, *_PLANT, *_COMMON),
    "fetch_simulator": (
        *_SIMULATOR,
        _fixed(
            "image_size",
            0,
            "pixels",
            "side of a camera image to record where the scenario has none; 0 for none",
            0,
            1024,
        ),
        _fixed("joint_states", True, "true or false", "publish sensor_msgs/JointState after every move"),
        *_PLANT,
        *_COMMON,
    ),
    "loopback_hardware": (
        _fixed("dimensions", 2, "1", "number of axes of the pretended rig", 1, 64),
        _fixed("action_radius", 0.3, "units of the rig", "longest allowed move", 1e-9, 1e9),
        _fixed("travel", 1.0, "units of the rig", "the workspace reaches from -travel to travel", 1e-9, 1e9),
        _seconds("move_time", 0.05, "how long the pretended rig needs for a move"),
        *_PLANT,
        *_COMMON,
    ),
    "rig": PLANT_PARAMETERS,
    "arm_simulator": (
        _fixed("robot", "ur5", "name", "robot arm of example-robot-data", choices=("ur5", "panda")),
        _fixed("rate", 100.0, "1/s", "how often joint states and the pose of the tool are published", 1.0, 500.0),
        _fixed(
            "camera_rate",
            0.0,
            "1/s",
            "pictures on tool_camera/image_raw of a board beneath the arm, which a camera at the tool sees; 0 for none",
            0.0,
            100.0,
        ),
        _fixed("camera_size", 64, "pixels", "side of these pictures", 16, 1024),
        *_COMMON,
    ),
    "logging_policy": (*_POLICY, *_COMMON),
    "augmentor": (
        *_POLICY,
        _fixed("model", "", "path", "model file to serve from the start; empty waits for the trainer"),
        _fixed(
            "model_folders", "", "paths", "folders that announced models must lie in, separated by ':'; empty for any"
        ),
        _fixed("data", "", "paths", "runs whose actions the policy uncertainty has seen, separated by ':'"),
        _count(
            "data_episodes",
            0,
            "take the first so many episodes of the data, as soon as they are recorded; 0 takes all at once",
            fixed=True,
        ),
        *map(_assist, ASSIST_OF_AUGMENTOR),
        *_COMMON,
    ),
    "arbiter": (
        _SCENARIO,
        Parameter("mode", "collect", "name", "what happens with proposals", choices=MODE_NAMES),
        _count("episodes", 0, "episodes in the run, aborted ones included; 0 for no end"),
        _fixed("seed", 0, "1", "seed of the run, from which every episode's seed follows", 0),
        Parameter("p", 0.6, "1", "probability with which the augmentor may act in a step", 0.0, 1.0),
        _count("budget", 20, "augmentations per episode at most"),
        *map(_assist, ASSIST_OF_ARBITER),
        *map(_guard, GUARD_KEYS),
        _fixed("run", "", "path", "folder of the run, whose episodes the guard takes into account; may be empty"),
        _fixed("model", "", "SHA-256", "model that the augmentor serves from the start, where it is known"),
        _fixed("autostart", True, "true or false", "begin without a call of the service start"),
        Parameter("exit_when_done", False, "true or false", "end the process after the last episode"),
        _count(
            "model_from", -1, "from this episode on wait for the augmentor's first proposal; -1 never waits", low=-1
        ),
        _seconds("plant_deadline", 2.0, "an episode is aborted when the plant needs longer", 0.01, 3600.0),
        _seconds(
            "logging_policy_deadline", 0.5, "an episode is aborted when the logging policy needs longer", 0.001, 3600.0
        ),
        _seconds("augmentor_deadline", 0.05, "the logging policy acts when the augmentor needs longer", 0.001, 3600.0),
        _seconds("repeat_period", 0.5, "what was not answered is sent again so often; nobody acts twice on it", 0.02),
        *_COMMON,
    ),
    "recorder": (
        _fixed("run", "", "path", "folder of the run; created, or continued where it exists"),
        _fixed("episodes_per_file", 1, "1", "episodes in one MCAP file", 1, 100000),
        _fixed("compression", "none", "name", "how finished files are compressed, without loss", choices=COMPRESSIONS),
        _fixed("facts", "{}", "JSON", "what the run's metadata should say besides: scenario, seed, p"),
        _fixed("topics", "", "names", "further topics to record along, separated by commas; none by default"),
        _seconds("markers_period", 0.5, "how often markers of the trajectory are published", 0.05, fixed=True),
        *_COMMON,
    ),
    "trainer": (
        _SCENARIO,
        _fixed("run", "", "path", "folder of the run that the recorder writes"),
        _fixed("models", "", "path", "folder for models; empty takes a folder beside the run"),
        _count("train_after", 50, "train when this many episodes are in the run", low=1),
        _count("train_every", 0, "train again after so many further episodes; 0 trains once"),
        _fixed("training", "{}", "JSON", "options of training that differ from the scenario's"),
        _fixed("seed", 0, "1", "seed of the training", 0),
        _fixed("threads", 1, "1", "threads that training may use", 1, 256),
        _fixed("niceness", 10, "1", "how readily training gives way to the loop", 0, 19),
        *_COMMON,
    ),
    "page": (
        _SCENARIO,
        _fixed("run", "", "path", "folder of the run, whose earlier episodes are listed too; may be empty"),
        _fixed(
            "address",
            DEFAULT_ADDRESS,
            "HOST:PORT",
            "where browsers find the page; beyond this machine it asks for a token",
        ),
        _fixed("model_folders", "", "paths", "folders whose models can be served, separated by ':'; empty for none"),
        *_COMMON,
    ),
}


def describe(executable: str, summary: str, parameters: Sequence[Parameter]) -> str:
    """Return what `--help` prints: how to start the node and what each of its parameters means."""
    usage = f"usage: ros2 run lift_ros {executable} --ros-args [-p NAME:=VALUE …]"
    lines, indent = [f"{executable}: {summary}", "", usage, "", "parameters:"], 6 * " "
    for parameter in parameters:
        shown = f'"{parameter.default}"' if isinstance(parameter.default, str) else str(parameter.default).lower()
        lines.append(f"  {parameter.name}  ({parameter.allowed}, [{parameter.unit}], default {shown})")
        when = "at start only" if parameter.fixed else "also at run time"
        meaning = f"{parameter.description}; {when}"
        lines += textwrap.wrap(meaning, 100, initial_indent=indent, subsequent_indent=indent)
    return "\n".join(lines)


def default_model_folder(run: Path) -> Path:
    """Return where a trainer writes the models of a run unless it is told another place."""
    return run.parent / f"{run.name}-models"


def find(parameters: Sequence[Parameter], name: str) -> Parameter | None:
    """Return the parameter of this name, or None."""
    return next((parameter for parameter in parameters if parameter.name == name), None)
