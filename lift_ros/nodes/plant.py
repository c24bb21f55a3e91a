"""The base of every plant node, simulated or real: safety, numbering of commands, the watchdog and faults.

For hardware derive from `PlantNode` and write `begin`, `move`, `read` and `hold`; `switch_on` too where there is
something to connect to, `moving` if a move takes time, and `recover` if faults can be mended. An exception in any of
them is a fault: the plant is held, says so, and refuses everything until a person calls `reset_fault`. What the plant
can do stands in the scenario alone, which the parameter `scenario` names. docs/your-own-rig.md has an example to copy.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

import lift_ros.msg as msg
from lift_ros.collection.exchange import Hold, Move, Observation, Refusal, Reset
from lift_ros.collection.proposals import refusal_of
from lift_ros.drivers.protocol import Displaced
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.messages.records import decode_command, encode_observation
from lift_ros.nodes.base import LiftNode
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.picture_view import PictureView
from lift_ros.nodes.senders import ANYONE, Roles
from lift_ros.positioning.problem import Limits, Observed
from lift_ros.scenario import Scenario, load_scenario

WATCHDOG_CHECKS = 10  # in one watchdog time
_EMPTY = np.empty(0)
_T = TypeVar("_T")
# One arbiter commands; to hold is safe, whoever wants it.
COMMANDERS = Roles(of=lambda command: ANYONE if isinstance(command, Hold) else None)


class _Failed(Exception):
    """What a plant was asked for failed, and its fault is latched by now."""


class PlantNode(LiftNode):
    """Executes the commands of one arbiter in their order, each once, and refuses what is unsafe."""

    poll_seconds: ClassVar[float] = 0.002  # between two looks whether a move is done; a serial line wants more

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.limits = self.make_limits()
        self.switch_on()
        self._reset: Reset | None = None  # with which the episode began
        self._executed = 0
        self._under_way: Reset | Move | None = None
        self._began_ns = 0
        self._last: Observation | None = None
        self._over = True
        self._interrupted = False  # a move did not end by itself, so that nobody knows where the plant is
        self._stopped = False
        self._fault = ""  # latched; why nothing moves any more
        self._heard_ns = time.monotonic_ns()
        self._publisher = self.create_publisher(msg.Observation, qos.OBSERVATION, qos.LOOP)
        self._view = None if self.limits.picture is None else PictureView(self, self.value("frame_id"))
        self.listen(msg.Command, qos.COMMAND, decode_command, self._on_command, roles=COMMANDERS)
        self.create_service(SetBool, qos.EMERGENCY_STOP, self._on_emergency_stop)
        self.create_service(Trigger, qos.RESET_FAULT, self._on_reset_fault)
        if topic := self.value("emergency_topic"):
            self.create_subscription(Bool, topic, self._on_emergency_topic, qos.EMERGENCY)
        self._motion_timer = self.every(self.poll_seconds, self._check_motion)
        self._motion_timer.cancel()
        self._watchdog_timer = self.every(self.value("watchdog") / WATCHDOG_CHECKS, self._check_watchdog)
        self.set_status(Status.READY)
        self._say_that_it_is_up()

    # --- what a plant is -------------------------------------------------------------------------------------------

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that the parameter of this name gives; refuses where it gives none."""
        name = self._values.get("scenario", "")
        if not name:
            raise UserError(
                "parameter scenario is empty; allowed: the scenario file that says what this plant can do, the same as "
                "for lift run (--ros-args -p scenario:=FILE)"
            )
        return load_scenario(name)

    def make_limits(self) -> Limits:
        """Return what the plant can do: what its scenario says. Called once, before `switch_on`; seldom overridden."""
        return self.scenario.limits

    def switch_on(self) -> None:
        """Connect to what moves; called once, parameters, `scenario` and `limits` are known by then."""

    @abstractmethod
    def begin(self, seed: int) -> None:
        """Begin an episode: go to where it starts; `seed` determines it where the plant is simulated."""

    @abstractmethod
    def move(self, action: Any) -> None:
        """Begin to move by `action`, which is checked already, and return at once."""

    def moving(self) -> bool:
        """Whether what was begun is still under way; asked until it is not."""
        return False

    @abstractmethod
    def read(self) -> Observed:
        """Return what the sensors say now."""

    @abstractmethod
    def hold(self) -> None:
        """Stop and stay; may be called at any time, also while moving and more than once."""

    def recover(self) -> None:
        """Make the hardware usable again after a fault, for example connect anew; raises where it is not."""

    def _say_that_it_is_up(self) -> None:
        limits, place = self.limits, self.place
        self.get_logger().info(
            f"the plant is up: it listens to {place.topic(qos.COMMAND)} and answers on {place.topic(qos.OBSERVATION)} "
            f"({place}); observations of {limits.observation_size} and actions of {limits.action_size} entries, "
            f"at most {limits.action_radius:g} long"
        )

    # --- commands --------------------------------------------------------------------------------------------------

    def _on_command(self, command: Reset | Move | Hold) -> None:
        self._heard_ns = time.monotonic_ns()
        match command:
            case Move():
                self._on_move(command)
            case Reset():
                self._on_reset(command)
            case Hold():
                self._hold(Status.HELD)

    def _on_reset(self, command: Reset) -> None:
        if self._stopped or self._fault:
            self._refuse(command, Refusal.EMERGENCY_STOP if self._stopped else Refusal.HARDWARE_FAULT)
            return
        if command == self._reset and not self._interrupted and self._executed == 0:
            if self._under_way == command:
                return  # it is answered when it is done
            if self._under_way is None and self._last is not None and not self._over:
                self._repeat()
                return
        if self._under_way is not None and not self._stand_still():
            self._refuse(command, Refusal.HARDWARE_FAULT)
            return
        self._reset, self._executed, self._over, self._interrupted = command, 0, False, False
        self._last = None
        self.diagnostics.count("episodes")
        self._set_out(command, lambda: self.begin(command.seed))

    def _on_move(self, command: Move) -> None:
        if self._reset is None or (command.run, command.episode) != (self._reset.run, self._reset.episode):
            self._refuse(command, Refusal.UNKNOWN_EPISODE)
        elif self._under_way is not None and command.step == self._executed:
            return  # a repeat of what is under way; it is answered when that is done
        elif command.step == self._executed - 1 and self._last is not None:
            self._repeat()
        elif self._interrupted:
            fault = Refusal.HARDWARE_FAULT if self._fault else Refusal.INTERRUPTED
            self._refuse(command, Refusal.EMERGENCY_STOP if self._stopped else fault)
        elif command.step != self._executed or self._last is None or self._over:
            self.drop("command of another step", f"{command.step}, not {self._executed}")
        else:
            self._execute(command, self._last)

    def _execute(self, command: Move, last: Observation) -> None:
        refusal = refusal_of(command.action, last.position, self.limits, stopped=self._stopped)
        if refusal is not Refusal.NONE:
            self._refuse(command, refusal)
            return
        self._set_out(command, lambda: self.move(command.action))

    def _set_out(self, command: Reset | Move, go: Callable[[], None]) -> None:
        self._under_way = command
        self._began_ns = time.monotonic_ns()
        self.set_status(Status.MOVING)
        try:
            self._try("begin" if isinstance(command, Reset) else "move", go)
        except _Failed:
            return
        self._check_motion()

    def _check_motion(self) -> None:
        command = self._under_way
        if command is None:
            self._motion_timer.cancel()
            return
        try:
            if self._try("moving", self.moving):
                self._wait_for(command)
                return
            observed = self._try("read", self.read)
        except _Failed:
            return
        self._motion_timer.cancel()
        self._under_way = None
        self._heard_ns = time.monotonic_ns()
        self._executed += isinstance(command, Move)
        self.diagnostics.count("commands")
        self.diagnostics.latency("move", self._heard_ns - self._began_ns)
        self._answer(command, observed)

    def _wait_for(self, command: Reset | Move) -> None:
        """Look again in a moment, unless the move has stalled; the way to a start may take a person's time."""
        now, limit = time.monotonic_ns(), self.value("move_limit")
        if isinstance(command, Move) and now - self._began_ns > limit * 1e9:
            self._latch(f"move {command.step} of episode {command.episode} did not end within move_limit, {limit:g} s")
            return
        self._heard_ns = now  # the watchdog bounds the silence of others, not our own moves
        if self._motion_timer.is_canceled():
            self._motion_timer.reset()

    # --- faults ----------------------------------------------------------------------------------------------------

    def _try(self, deed: str, action: Callable[[], _T]) -> _T:
        """Return what the hardware answers; what it raises becomes a fault, and the node lives on."""
        try:
            return action()
        except Displaced as moved:
            self._give_up(moved)
            raise _Failed from moved
        except Exception as error:  # a driver may raise anything
            self._latch(f"{deed}: {error or type(error).__name__}")
            raise _Failed from error

    def _give_up(self, moved: Displaced) -> None:
        """Refuse a move that did not begin where its policy thought; no device failed, so an episode may begin."""
        command, self._under_way = self._under_way, None
        self._motion_timer.cancel()
        self._over = self._interrupted = True
        self.get_logger().warning(f"no move: {moved}")
        self._set_status_at_rest()
        if command is not None:
            self._refuse(command, Refusal.INTERRUPTED)

    def _latch(self, fault: str) -> None:
        """Hold, refuse what was under way, and everything from now on until the fault is reset."""
        command, self._under_way = self._under_way, None
        self._motion_timer.cancel()
        first = not self._fault
        self._fault = self._fault or fault
        self._over = self._interrupted = True  # whatever was under way begins anew
        self.diagnostics.count("faults")
        if first:
            self.get_logger().error(f"fault of the hardware: {fault}; mend it, then call {qos.RESET_FAULT}")
            self._stand_still()
        self._set_status_at_rest()
        if command is not None:
            self._refuse(command, Refusal.HARDWARE_FAULT)

    def _set_status_at_rest(self) -> None:
        status = Status.EMERGENCY_STOP if self._stopped else Status.FAULT if self._fault else Status.READY
        self.set_status(status, self._fault)

    def _stand_still(self) -> bool:
        """Hold and return whether that went well; where even that fails, it is a fault."""
        try:
            self.hold()
        except Exception as error:  # a driver may raise anything
            self._latch(f"hold: {error or type(error).__name__}")
            return False
        return True

    def _on_reset_fault(self, request: Any, response: Any) -> Any:
        try:
            if self._fault:
                self.recover()
        except Exception as error:  # a driver may raise anything
            response.success, response.message = False, f"the fault stays: {error or type(error).__name__}"
            return response
        if self._fault:
            self._fault = ""
            self._set_status_at_rest()
        response.success, response.message = True, "no fault; collecting goes on after a call of resume"
        return response

    # --- answers ---------------------------------------------------------------------------------------------------

    def _answer(self, command: Reset | Move, observed: Observed) -> None:
        self._last = Observation.of(command, observed, time.time_ns())
        self._publish(self._last)
        if self._view is not None and observed.image is not None:
            self._view.show(observed.image)
        if observed.terminated:
            self._over = True
            self.set_status(Status.READY)

    def _publish(self, observation: Observation) -> None:
        self._publisher.publish(encode_observation(observation, frame_id=self.value("frame_id")))

    def _repeat(self) -> None:
        if self._last is not None:
            self.diagnostics.count("repeats")
            self._publish(self._last)

    def _refuse(self, command: Reset | Move, refusal: Refusal) -> None:
        reason, step = refusal.name.lower().replace("_", " "), command.step if isinstance(command, Move) else 0
        self.diagnostics.count(f"refused: {reason}")
        self.warn_sometimes(reason, f"refused command {step} of episode {command.episode}: {reason}")
        values = _EMPTY if self._last is None else self._last.values
        now = time.time_ns()
        self._publish(Observation(command.episode, step, values, refusal=refusal, time_ns=now, run=command.run))

    def heard_stranger(self, topic: str, content: Reset | Move, name: str) -> None:
        """Tell another arbiter that it is not listened to; somebody who copies tokens is not told anything."""
        super().heard_stranger(topic, content, name)
        if self._reset is None or content.run != self._reset.run:
            self._refuse(content, Refusal.OTHER_ARBITER)

    # --- holding ---------------------------------------------------------------------------------------------------

    def _hold(self, status: Status) -> None:
        self._interrupted |= self._under_way is not None
        self._under_way = None
        self._stand_still()
        if not (self._stopped or self._fault):
            self.set_status(status)

    def _check_watchdog(self) -> None:
        status = self.diagnostics.status
        if self._over or self._stopped or self._executed == 0 or status in (Status.HOLDING, Status.HELD):
            return
        watchdog = self.value("watchdog")
        silence = (time.monotonic_ns() - self._heard_ns) / 1e9
        if silence >= watchdog * (1 - 1 / WATCHDOG_CHECKS):
            self.diagnostics.count("holds")
            self._hold(Status.HOLDING)

    def parameter_changed(self, name: str) -> None:
        """Check as often as the new watchdog time needs."""
        if name == "watchdog":
            self.destroy_timer(self._watchdog_timer)
            self._watchdog_timer = self.every(self.value("watchdog") / WATCHDOG_CHECKS, self._check_watchdog)

    def _on_emergency_topic(self, message: Any) -> None:
        """Stop; a topic never releases, since the last message of a button that comes back is no person's consent."""
        if message.data and not self._stopped:
            self._stop()

    def _stop(self) -> None:
        self._stopped = True
        self._hold(Status.EMERGENCY_STOP)
        self._set_status_at_rest()

    def _on_emergency_stop(self, request: Any, response: Any) -> Any:
        if request.data:
            self._stop()
            response.message = "stopped; release with data: false"
        else:
            self._stopped = False
            self._over = self._interrupted = True  # whatever was under way begins anew
            self._set_status_at_rest()
            response.message = "released; collecting goes on after a call of resume"
        response.success = True
        return response

    def close(self) -> None:
        """Leave the plant standing still."""
        self._stand_still()
