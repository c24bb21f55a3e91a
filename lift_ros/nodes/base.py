"""What all nodes share: one way to start, stop and fail, checked parameters, diagnostics and clocks."""

from __future__ import annotations

import gc
import json
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter
from rclpy.qos import QoSProfile
from rclpy.task import Future
from rclpy.utilities import remove_ros_args
from std_msgs.msg import Header

from lift_ros.collection.interruption import stop_on_signals
from lift_ros.configuration import nearest
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.graph.live_view import UP
from lift_ros.graph.meeting import Place
from lift_ros.graph.parameters import CLOCK, PARAMETERS, Parameter, check_clock, describe, find
from lift_ros.graph.transport import discovery_range
from lift_ros.messages import MessageError
from lift_ros.nodes.diagnostics import Diagnostics, Status
from lift_ros.nodes.executor import SPIN_SECONDS, make_executor, ros, with_sender
from lift_ros.nodes.senders import ANYONE, Presence, Roles, Senders, Verdict

# How long a node that was told to end may go on finishing what it has begun.
FAREWELL_SECONDS = 0.5
LOG_SECONDS = 5.0


class LiftNode(Node):
    """A node of the graph; subclasses give `executable`, `summary` and connect themselves in `__init__`."""

    executable: ClassVar[str]
    summary: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...] | None] = None  # None takes the table's entry of the executable

    _presence: Presence | None = None

    def __init__(self, **options: Any) -> None:
        options.setdefault("namespace", qos.NAMESPACE)
        super().__init__(self.executable, **options)
        self.steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.ended: Future[None] = Future()  # set when the node itself wants its process to end
        self.diagnostics = Diagnostics(self.get_fully_qualified_name(), self.get_namespace())
        self._logged_at: dict[str, float] = {}
        self._values: dict[str, Any] = {}
        self._declare()
        self.senders = Senders(self)
        self._presence = Presence(self)
        self._diagnostics_publisher = self.create_publisher(DiagnosticArray, qos.DIAGNOSTICS, qos.VIEW)
        self.every(self.value("diagnostics_period"), self.report)

    @classmethod
    def main(cls) -> int:
        """Run a node of this class as a process of its own and return its exit status."""
        return run(cls)

    def make_token(self) -> str:
        """Return what tells this start of this node from all others; it begins with the token of its graph."""
        return f"{self._values.get('graph', '')}-{secrets.token_hex(4)}"

    @property
    def place(self) -> Place:
        """Where others can meet this node."""
        return Place(self.get_namespace(), self.context.get_domain_id(), discovery_range())

    # --- parameters ------------------------------------------------------------------------------------------------

    @classmethod
    def parameter_table(cls) -> tuple[Parameter, ...]:
        """Return the parameters of this node."""
        return PARAMETERS[cls.executable] if cls.parameters is None else cls.parameters

    def value(self, name: str) -> Any:
        """Return the present value of a parameter."""
        return self._values[name]

    def json_value(self, name: str) -> dict[str, Any]:
        """Return the mapping that a parameter holds as JSON."""
        try:
            mapping = json.loads(self._values[name])
        except ValueError as error:
            raise UserError(f"parameter {name} is {self._values[name]!r}; allowed: a JSON object ({error})") from error
        if not isinstance(mapping, dict):
            raise UserError(f"parameter {name} is {self._values[name]!r}; allowed: a JSON object")
        return mapping

    def parameter_changed(self, name: str) -> None:
        """Take a parameter over that was set at run time."""

    def _declare(self) -> None:
        table = self.parameter_table()
        check_clock(self.get_parameter(CLOCK).value)
        for parameter in table:
            name = parameter.name
            if name in self._parameter_overrides:
                parameter.check(self._parameter_overrides[name].value)  # stricter than ROS, and says what is allowed
            self._values[name] = self.declare_parameter(name, parameter.default, _descriptor(parameter)).value
        known = [parameter.name for parameter in table]
        for name in self._parameter_overrides:
            if name not in known and not self.has_parameter(name) and not name.startswith("qos_overrides"):
                self.get_logger().warning(f"parameter {name} is unknown here and ignored; {nearest(name, known)}")
        self.add_on_set_parameters_callback(self._check_set)
        self.add_post_set_parameters_callback(self._after_set)

    def _check_set(self, changes: list[RosParameter[Any]]) -> SetParametersResult:
        for change in changes:
            parameter = find(self.parameter_table(), change.name)
            try:
                if parameter is not None:
                    parameter.check(change.value)
                elif change.name == CLOCK:
                    check_clock(change.value)
            except UserError as error:
                return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _after_set(self, changes: list[RosParameter[Any]]) -> None:
        for change in changes:
            if change.name in self._values:
                self._values[change.name] = change.value
                self.parameter_changed(change.name)

    # --- what is received ------------------------------------------------------------------------------------------

    def listen(
        self,
        kind: type,
        topic: str,
        decode: Callable[[bytes], Any],
        handle: Callable[[Any], None],
        profile: QoSProfile = qos.LOOP,
        roles: Roles | None = None,
    ) -> Any:
        """Subscribe; bytes that `decode` refuses are dropped, counted and reported, never handled.

        With `roles` the same becomes of messages from strangers: whoever has a role first keeps it until it is gone.
        """

        def receive(data: bytes) -> None:
            content = read(data)
            if content is not None:
                handle(content)

        def receive_from(data: bytes, info: Any) -> None:
            content = read(data)
            if content is not None and self._heeds(topic, content, info, roles or Roles()):
                handle(content)

        def read(data: bytes) -> Any:
            try:
                return decode(data)
            except MessageError as error:
                self.drop(f"malformed {topic}", str(error))
                return None

        callback = receive if roles is None else with_sender(receive_from)
        return self.create_subscription(kind, topic, callback, profile, raw=True)

    def _heeds(self, topic: str, content: Any, info: Any, roles: Roles) -> bool:
        role, graph = roles.of(content), self._values.get("graph", "")
        if role is ANYONE:
            return True
        if graph and not roles.run(content).startswith(f"{graph}-"):
            self.heard_stranger(topic, content, self.senders.name(topic, info))
            return False
        match self.senders.judge(topic, info, role, roles.most):
            case Verdict.HEEDED:
                return True
            case Verdict.UNKNOWN:
                self.diagnostics.drops[f"{topic} of somebody not known yet"] += 1
            case Verdict.STRANGER:
                self.heard_stranger(topic, content, self.senders.name(topic, info))
            case Verdict.CROWDED:
                names = " and ".join(sender.node for sender in self.senders.present(topic))
                self.drop(f"{topic} that more than {roles.most} publish", names)
        return False

    def heard_stranger(self, topic: str, content: Any, name: str) -> None:
        """Drop a message of somebody who is not listened to."""
        self.drop(f"{topic} of a stranger", name)

    def drop(self, reason: str, detail: str = "") -> None:
        """Count something received and ignored; say so at most every few seconds per reason."""
        self.diagnostics.drops[reason] += 1
        self.warn_sometimes(reason, f"dropped: {reason}" + (f": {detail}" if detail else ""))

    def warn_sometimes(self, key: str, text: str) -> None:
        """Log a warning unless one of the same key was logged a moment ago."""
        now = time.monotonic()
        if now - self._logged_at.get(key, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged_at[key] = now
            self.get_logger().warning(text)

    # --- clocks ----------------------------------------------------------------------------------------------------

    def every(self, seconds: float, callback: Callable[[], None]) -> Any:
        """Call back regularly by the steady clock, whatever the wall clock or simulated time do."""
        return self.create_timer(seconds, callback, clock=self.steady)

    # --- status ----------------------------------------------------------------------------------------------------

    def set_status(self, status: Status, detail: str = "") -> None:
        """Change the status and report it at once; the same status again costs nothing."""
        if self.diagnostics.status is status and self.diagnostics.detail == detail:
            return
        self.diagnostics.status = status
        self.diagnostics.detail = detail
        self.report()

    def report(self) -> None:
        """Publish the diagnostics."""
        now = Header(stamp=self.get_clock().now().to_msg())
        self._diagnostics_publisher.publish(DiagnosticArray(header=now, status=[self.diagnostics.message()]))

    # --- end -------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Begin to end: called once when the process is told to; ROS still works."""

    def finished(self) -> bool:
        """Whether nothing is left to wait for; asked until it is so or the farewell time is over."""
        return True

    def close(self) -> None:
        """Release what the node holds; nothing is received any more."""

    def destroy_node(self) -> None:
        """Leave the graph."""
        if self._presence is not None:  # else the node was refused before it was made
            self._presence.close()
        super().destroy_node()


def _descriptor(parameter: Parameter) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=f"{parameter.description} [{parameter.unit}]",
        additional_constraints=f"allowed: {parameter.allowed}",
        read_only=parameter.fixed,
    )
    if parameter.kind == "double" and (parameter.low is not None or parameter.high is not None):
        low = parameter.low if parameter.low is not None else -sys.float_info.max
        high = parameter.high if parameter.high is not None else sys.float_info.max
        descriptor.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
    if parameter.kind == "int" and (parameter.low is not None or parameter.high is not None):
        low = int(parameter.low) if parameter.low is not None else -(2**63)
        high = int(parameter.high) if parameter.high is not None else 2**63 - 1
        descriptor.integer_range = [IntegerRange(from_value=low, to_value=high)]
    return descriptor


def run(node_class: type[LiftNode], argv: Sequence[str] | None = None) -> int:
    """Run a node until it ends itself, Ctrl-C or SIGTERM, and return the exit status: 0, 1 (fault) or 2 (bad input)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if "-h" in words or "--help" in words:
        print(describe(node_class.executable, node_class.summary, node_class.parameter_table()))
        return 0
    try:
        with stop_on_signals() as signalled, ros([node_class.executable, *words]):
            unknown = remove_ros_args([node_class.executable, *words])[1:]
            if unknown:
                raise UserError(f"unknown argument {unknown[0]!r}; parameters are given as --ros-args -p NAME:=VALUE")
            return _live(node_class, signalled)
    except UserError as error:
        print(f"{node_class.executable}: {error}", file=sys.stderr, flush=True)
        return 2


def _live(node_class: type[LiftNode], signalled: Callable[[], bool]) -> int:
    node = node_class()
    executor = make_executor(node.get_logger())
    executor.add_node(node)
    node.get_logger().info(f"{node.executable} {UP}")
    gc.freeze()  # what is there now stays; looking through it again and again would only delay steps
    status = 0
    try:
        while not signalled() and not node.ended.done():
            executor.spin_until_future_complete(node.ended, timeout_sec=SPIN_SECONDS)
        if node.ended.done():
            node.ended.result()  # or why it cannot go on
        node.finish()
        deadline = time.monotonic() + FAREWELL_SECONDS
        while not node.finished() and time.monotonic() < deadline:
            executor.spin_once(timeout_sec=0.02)
    except UserError as error:
        node.get_logger().fatal(str(error))
        status = 2
    except Exception:
        node.get_logger().fatal(f"ended by an error nobody expected:\n{traceback.format_exc()}")
        status = 1
    finally:
        node.close()
        executor.shutdown()
        node.destroy_node()
    return status
