"""Every parameter of every node in one table: type, unit, range, default, description; needs no ROS."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from lift_ros.configuration import Key
from lift_ros.errors import UserError

Value = bool | int | float | str

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


_COMMON = (
    Parameter(
        "diagnostics_period", 1.0, "s", "how often this node reports on /diagnostics", low=0.05, high=60.0, fixed=True
    ),
)

_SCENARIO = Parameter(
    "scenario",
    "po-blend-d2",
    "name or path",
    "scenario that fixes plant, logging policy, collection and training",
    fixed=True,
)

_PLANT = (
    Parameter(
        "watchdog",
        1.0,
        "s",
        "hold when an episode is under way and no command came for so long; steady clock",
        low=0.02,
        high=3600.0,
    ),
    Parameter("frame_id", "world", "name", "frame of the positions in observations", fixed=True),
)

_SIMULATOR = (
    _SCENARIO,
    Parameter("step_time", 0.0, "s", "how long a move takes; 0 moves at once", low=0.0, high=60.0),
)

_POLICY = (
    _SCENARIO,
    Parameter(
        "policy",
        "",
        "name or module:Name",
        "policy to ask; empty takes what the scenario or the model says",
        fixed=True,
    ),
    Parameter("policy_arguments", "{}", "JSON", "keyword arguments of the policy", fixed=True),
    Parameter("delay", 0.0, "s", "artificial time to think before each answer, to try deadlines", low=0.0, high=60.0),
)

PLANT_PARAMETERS = (*_PLANT, *_COMMON)  # of every plant, also of rigs

PARAMETERS: dict[str, tuple[Parameter, ...]] = {
    "positioning_simulator": (*_SIMULATOR, *PLANT_PARAMETERS),
    "fetch_simulator": (
        *_SIMULATOR,
        Parameter(
            "image_size",
            0,
            "pixels",
            "side of the square camera image in observations; 0 for none",
            low=0,
            high=1024,
            fixed=True,
        ),
        Parameter("joint_states", True, "true or false", "publish sensor_msgs/JointState after every move", fixed=True),
        *PLANT_PARAMETERS,
    ),
    "loopback_hardware": (
        Parameter("dimensions", 2, "1", "number of axes of the pretended rig", low=1, high=64, fixed=True),
        Parameter("action_radius", 0.3, "units of the rig", "longest allowed move", low=1e-9, high=1e9, fixed=True),
        Parameter(
            "travel",
            1.0,
            "units of the rig",
            "the workspace reaches from -travel to travel",
            low=1e-9,
            high=1e9,
            fixed=True,
        ),
        Parameter("move_time", 0.05, "s", "how long the pretended rig needs for a move", low=0.0, high=60.0),
        *PLANT_PARAMETERS,
    ),
    "logging_policy": (*_POLICY, *_COMMON),
    "augmentor": (
        *_POLICY,
        Parameter("model", "", "path", "model file to serve from the start; empty waits for the trainer", fixed=True),
        *_COMMON,
    ),
    "arbiter": (
        _SCENARIO,
        Parameter("mode", "collect", "name", "what happens with proposals", choices=("collect", "shadow", "evaluate")),
        Parameter(
            "episodes", 0, "1", "episodes in the run, aborted ones included; 0 for no end", low=0, high=2**31 - 1
        ),
        Parameter("seed", 0, "1", "seed of the run, from which every episode's seed follows", low=0, fixed=True),
        Parameter("p", 0.6, "1", "probability with which the augmentor may act in a step", low=0.0, high=1.0),
        Parameter("budget", 20, "1", "augmentations per episode at most", low=0, high=2**31 - 1),
        Parameter("autostart", True, "true or false", "begin without a call of the service start", fixed=True),
        Parameter("exit_when_done", False, "true or false", "end the process after the last episode"),
        Parameter(
            "model_from",
            -1,
            "1",
            "from this episode on wait for the augmentor's model before the first move; -1 never waits",
            low=-1,
            high=2**31 - 1,
        ),
        Parameter(
            "plant_deadline", 2.0, "s", "an episode is aborted when the plant needs longer", low=0.01, high=3600.0
        ),
        Parameter(
            "logging_policy_deadline",
            0.5,
            "s",
            "an episode is aborted when the logging policy needs longer",
            low=0.001,
            high=3600.0,
        ),
        Parameter(
            "augmentor_deadline",
            0.05,
            "s",
            "the logging policy acts when the augmentor needs longer",
            low=0.001,
            high=3600.0,
        ),
        Parameter(
            "repeat_period",
            0.5,
            "s",
            "what was not answered is sent again so often; receivers answer repeats without acting twice",
            low=0.02,
            high=60.0,
        ),
        *_COMMON,
    ),
    "recorder": (
        Parameter("run", "", "path", "folder of the run; created, or continued where it exists", fixed=True),
        Parameter("episodes_per_file", 1, "1", "episodes in one MCAP file", low=1, high=100000, fixed=True),
        Parameter("facts", "{}", "JSON", "what the run's metadata should say besides: scenario, seed, p", fixed=True),
        Parameter(
            "topics", "", "names", "further topics to record along, separated by commas; none by default", fixed=True
        ),
        Parameter(
            "markers_period",
            0.5,
            "s",
            "how often markers of the trajectory are published",
            low=0.05,
            high=60.0,
            fixed=True,
        ),
        *_COMMON,
    ),
    "trainer": (
        _SCENARIO,
        Parameter("run", "", "path", "folder of the run that the recorder writes", fixed=True),
        Parameter("models", "", "path", "folder for models; empty takes models/ beside the run", fixed=True),
        Parameter("train_after", 50, "1", "train when this many episodes are in the run", low=1, high=2**31 - 1),
        Parameter(
            "train_every", 0, "1", "train again after so many further episodes; 0 trains once", low=0, high=2**31 - 1
        ),
        Parameter("training", "{}", "JSON", "options of training that differ from the scenario's", fixed=True),
        Parameter("seed", 0, "1", "seed of the training", low=0, fixed=True),
        Parameter("threads", 1, "1", "threads that training may use", low=1, high=256, fixed=True),
        Parameter("niceness", 10, "1", "how readily training gives way to the loop", low=0, high=19, fixed=True),
        *_COMMON,
    ),
}


def describe(executable: str, summary: str, parameters: Sequence[Parameter]) -> str:
    """Return what `--help` prints: how to start the node and what each of its parameters means."""
    lines = [
        f"{executable}: {summary}",
        "",
        "usage: ros2 run lift_ros " + executable + " --ros-args [-p NAME:=VALUE …]",
    ]
    lines += ["", "parameters:"]
    for parameter in parameters:
        shown = f'"{parameter.default}"' if isinstance(parameter.default, str) else str(parameter.default).lower()
        lines.append(f"  {parameter.name}  ({parameter.allowed}, [{parameter.unit}], default {shown})")
        when = "at start only" if parameter.fixed else "also at run time"
        lines += textwrap.wrap(
            f"{parameter.description}; {when}", 100, initial_indent=6 * " ", subsequent_indent=6 * " "
        )
    return "\n".join(lines)


def find(parameters: Sequence[Parameter], name: str) -> Parameter | None:
    """Return the parameter of this name, or None."""
    return next((parameter for parameter in parameters if parameter.name == name), None)
