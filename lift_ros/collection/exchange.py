"""What goes into the arbiter (events) and what comes out of it (instructions): plain dataclasses, no clock, no ROS.

Every event carries the time at which its owner received it; the arbiter has no clock of its own. Nobody changes one of
these once it is made; they are not frozen because that would double the time it takes to make them. `run` is the token
of the arbiter that a message belongs to; whoever carries messages heeds it, in process it is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TypeAlias

import numpy as np

from lift_ros.array_types import FloatArray, Picture
from lift_ros.collection.records import Episode, Mode, Source, Step
from lift_ros.positioning.problem import Observed
from lift_ros.scenario import DEFAULT_ASSIST, AssistSettings

DEFAULT_BUDGET = 20


class State(str, Enum):
    """What the arbiter is doing; a string like `Party`, because tables are looked up by it in every step."""

    IDLE = "no episode is under way"
    RESETTING = "the plant was told to begin, its first observation is awaited"
    ASKING = "the policies were asked, their proposals are awaited"
    CONFIRMING = "the action is chosen, the recorder has not yet confirmed the step before"
    MOVING = "the plant was commanded, its observation is awaited"
    FINISHING = "the episode is over, the recorder has not yet confirmed it"


class Party(str, Enum):
    """Whom the arbiter can be waiting for; a string, because those are found in sets without a call of Python."""

    PLANT = "plant"
    LOGGING_POLICY = "logging policy"
    AUGMENTOR = "augmentor"
    RECORDER = "recorder"


class Refusal(IntEnum):
    """Why the plant did not execute a command. The values are those of `Observation.msg`."""

    NONE = 0
    TOO_LONG = 1
    OUTSIDE_WORKSPACE = 2
    NOT_FINITE = 3
    WRONG_SIZE = 4
    EMERGENCY_STOP = 5
    INTERRUPTED = 6  # the move before did not end by itself; only a reset knows where the plant is
    UNKNOWN_EPISODE = 7  # it was not reset for this episode, or has been started anew since
    OTHER_ARBITER = 8  # it listens to somebody else
    HARDWARE_FAULT = 9  # something of the hardware failed; a person has to look at it and to reset the fault


class Drop(Enum):
    """Why the arbiter ignored an event; it counts them in `Arbiter.drops`."""

    OTHER_EPISODE = "it belongs to another episode"
    OTHER_STEP = "it belongs to another step"
    DUPLICATE = "the same was received before"
    NOT_ASKED = "its sender was not asked"
    TOO_LATE = "the deadline had passed"
    UNEXPECTED = "nobody waits for it in this state"


@dataclass(slots=True)
class Query:
    """The one question to both policies; `handoff` tells a policy to forget its state before it answers."""

    episode: int
    step: int
    seed: int
    values: FloatArray
    handoff: bool
    mode: Mode
    image: Picture | None = None
    run: str = ""


@dataclass(frozen=True, slots=True)
class Leash:
    """What ends the augmentor's part in an episode of mode collect before its budget does; 0 stands for no limit."""

    steps: int = 0  # after so many the routine goes on alone
    rejections: int = 0  # proposals that must not be commanded, until the augmentor is asked no more
    retreat: bool = False  # whether the plant is led back first when the steps are used


FREE = Leash()


# Events ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Start:
    """The owner wants episode `episode` of the run with seed `run_seed`."""

    episode: int
    run_seed: int
    mode: Mode = Mode.COLLECT
    p: float = 0.0
    budget: int = DEFAULT_BUDGET
    time_ns: int = 0
    assist: AssistSettings = DEFAULT_ASSIST
    leash: Leash = FREE


@dataclass(slots=True)
class Observation:
    """The plant reports: step 0 after a reset, i + 1 after command i, i where it refused command i."""

    episode: int
    step: int
    values: FloatArray
    position: FloatArray = field(default_factory=lambda: np.empty(0))
    goal: FloatArray = field(default_factory=lambda: np.empty(0))
    context: FloatArray = field(default_factory=lambda: np.empty(0))
    reward: float = float("nan")
    terminated: bool = False
    refusal: Refusal = Refusal.NONE
    image: Picture | None = None
    time_ns: int = 0
    run: str = ""
    executed: FloatArray = field(default_factory=lambda: np.empty(0))  # the action that led here

    @classmethod
    def of(cls, command: Reset | Move, observed: Observed, time_ns: int) -> Observation:
        """Return what the plant reports when `observed` is what it sees after a command."""
        known = (observed.values, observed.position, observed.goal, observed.context, observed.reward)
        seen = cls(command.episode, 0, *known, observed.terminated, image=observed.image, time_ns=time_ns)
        seen.run = command.run
        if isinstance(command, Move):
            seen.step, seen.executed = command.step + 1, command.action
        return seen


@dataclass(slots=True)
class Proposal:
    """A policy answers the query of this episode and step.

    An empty action says that it has none; with the hash of a model, that this model withholds one.
    """

    episode: int
    step: int
    source: Source
    action: FloatArray
    model_hash: str = ""
    time_ns: int = 0
    run: str = ""


@dataclass(slots=True)
class Deadline:
    """The owner's clock says that `party` has had its time for this step."""

    episode: int
    step: int
    party: Party
    time_ns: int = 0


@dataclass(slots=True)
class Receipt:
    """The recorder confirms a step, or the episode where `step` is None."""

    episode: int
    step: int | None
    time_ns: int = 0
    run: str = ""


@dataclass(slots=True)
class Stop:
    """Somebody wants the episode to end now: an operator, an emergency stop, a recorder that failed."""

    reason: str
    time_ns: int = 0


Event: TypeAlias = Start | Observation | Proposal | Deadline | Receipt | Stop

# Instructions ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Reset:
    """Tell the plant to begin an episode; it answers with the observation of step 0."""

    episode: int
    seed: int
    run: str = ""


@dataclass(slots=True)
class Ask:
    """Put the query to the policies; the arbiter waits for those in `sources` and ignores others."""

    query: Query
    sources: tuple[Source, ...]


@dataclass(slots=True)
class Move:
    """Command the plant; it answers with the observation of `step` + 1, or refuses."""

    episode: int
    step: int
    action: FloatArray
    run: str = ""


@dataclass(slots=True)
class Hold:
    """Tell the plant to stay where it is."""

    episode: int
    step: int
    run: str = ""


@dataclass(slots=True)
class RecordStep:
    """Record an executed step; leaves together with the next query or the end of the episode."""

    step: Step


@dataclass(slots=True)
class RecordEpisode:
    """Record the end of the episode; its steps have all left before."""

    episode: Episode


@dataclass(slots=True)
class Halt:
    """Give the episode up: nobody confirms its end, so start no further one before the recorder says how to go on."""

    episode: int
    reason: str


Instruction: TypeAlias = Reset | Ask | Move | Hold | RecordStep | RecordEpisode | Halt

# What recorder and trainer announce ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """The recorder waits for episodes; `episode` is the next free number of its run."""

    episode: int
    token: str = ""  # of the recorder's start; another one means that it has begun anew


@dataclass(frozen=True, slots=True)
class Failed:
    """The recorder has stopped: nothing after this is safe in the bag."""

    reason: str
    episode: int = 0
    run: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """A trained model is ready on disk."""

    path: str
    sha256: str
    algorithm: str
    episodes: int
