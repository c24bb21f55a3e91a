"""What all nodes share: parameters at run time, drops and status."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lone_node import Kept, lone_node
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message

import lift_ros.msg as msg
from lift_ros.errors import UserError
from lift_ros.messages.records import decode_command
from lift_ros.nodes.arbiter_node import ArbiterNode
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.loopback_hardware_node import LoopbackHardware


@pytest.fixture
def node() -> Iterator[LoopbackHardware]:
    with lone_node(LoopbackHardware, move_time=1.5) as node:
        yield node


def set_one(node: LoopbackHardware, name: str, value: object) -> tuple[bool, str]:
    (result,) = node.set_parameters([Parameter(name, value=value)])
    return result.successful, result.reason


def test_parameters_given_at_start_count(node: LoopbackHardware) -> None:
    assert node.value("move_time") == 1.5
    assert node.value("dimensions") == 2


def test_parameters_can_be_set_at_run_time_within_their_range(node: LoopbackHardware) -> None:
    assert set_one(node, "move_time", 2.5)[0]
    assert node.value("move_time") == 2.5


@pytest.mark.parametrize("value", [-0.5, 61.0, float("nan"), "2.5"])
def test_wrong_values_are_refused_at_run_time_and_change_nothing(node: LoopbackHardware, value: object) -> None:
    refused, reason = set_one(node, "move_time", value)
    assert not refused
    assert reason
    assert node.value("move_time") == 1.5


def test_fixed_parameters_cannot_be_set_at_run_time(node: LoopbackHardware) -> None:
    assert not set_one(node, "action_radius", 0.5)[0]
    assert node.value("action_radius") == 0.3


def test_parameters_describe_unit_and_range(node: LoopbackHardware) -> None:
    descriptor = node.describe_parameter("move_time")
    assert descriptor.description.endswith("[s]")
    assert (descriptor.floating_point_range[0].from_value, descriptor.floating_point_range[0].to_value) == (0.0, 60.0)
    assert node.describe_parameter("dimensions").read_only


def test_new_watchdog_time_counts_at_once(node: LoopbackHardware) -> None:
    before = node._watchdog_timer.timer_period_ns
    assert set_one(node, "watchdog", 5.0)[0]
    assert node._watchdog_timer.timer_period_ns == 5 * before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"p": 1}, r"parameter p is 1; .*write 1\.0"),
        ({"p": 7.0}, "parameter p is 7.0; allowed: double >= 0 and <= 1"),
        ({"mode": "hunt"}, "parameter mode is 'hunt'; allowed: one of collect, shadow, evaluate, assist"),
        ({"budget": -2}, "parameter budget is -2"),
    ],
)
def test_wrong_values_at_start_are_named(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message), lone_node(ArbiterNode, **parameters):
        pass


def test_what_cannot_be_read_is_dropped_counted_and_never_handled(node: LoopbackHardware) -> None:
    handled: list[object] = []
    node.listen(msg.Command, "test_command", decode_command, handled.append)
    receive = list(node.subscriptions)[-1].callback
    receive(bytes(serialize_message(msg.Command(kind=77))))
    receive(bytes(serialize_message(msg.Command(kind=2))))
    assert node.diagnostics.drops["malformed test_command"] == 1
    assert len(handled) == 1


def test_change_of_status_is_reported_at_once_and_once(node: LoopbackHardware) -> None:
    reports = Kept()
    node._diagnostics_publisher = reports
    node.set_status(Status.HOLDING)
    node.set_status(Status.HOLDING)
    node.set_status(Status.HOLDING, "again")
    assert [report.status[0].message for report in reports.take()] == [
        Status.HOLDING.sentence,
        f"{Status.HOLDING.sentence} again",
    ]


def test_nodes_live_in_the_namespace_lift(node: LoopbackHardware) -> None:
    assert node.get_fully_qualified_name() == "/lift/loopback_hardware"
    assert node.resolve_topic_name("observation") == "/lift/observation"


def test_simulated_time_is_refused_at_start_and_at_run_time(node: LoopbackHardware) -> None:
    refused, reason = set_one(node, "use_sim_time", True)
    assert not refused
    assert "allowed: false, as steps are stamped" in reason
    assert set_one(node, "use_sim_time", False)[0]
    with (
        pytest.raises(UserError, match="use_sim_time is True; allowed: false"),
        lone_node(ArbiterNode, use_sim_time=True),
    ):
        pass
