"""What a user wants recorded besides is found in the ROS graph and lies in the bag byte for byte."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lone_node import lone_node, spin
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosbags.typesys import Stores, get_typestore
from std_msgs.msg import Float64

import lift_ros.msg as msg
from lift_ros.graph.table import topic_names
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.further_topics import describe_type
from lift_ros.nodes.message_types import message_class
from lift_ros.nodes.recorder_node import Recorder


@pytest.mark.parametrize("text", ["/force, camera/image", "/force camera/image", "  /force,camera/image "])
def test_names_are_separated_by_commas_or_blanks(text: str) -> None:
    assert topic_names(text) == ["/force", "camera/image"]


@pytest.mark.parametrize("name", ["sensor_msgs/msg/JointState", "diagnostic_msgs/msg/DiagnosticArray"])
def test_installed_definitions_are_those_of_ros(name: str) -> None:
    store = get_typestore(Stores.ROS2_KILTED)
    definition, type_hash = describe_type(name)
    assert type_hash == store.hash_rihs01(name)
    assert definition == store.generate_msgdef(name, ros_version=2)[0]


def test_type_without_an_installed_definition_is_refused_with_the_remedy() -> None:
    with pytest.raises(ImportError, match="foreign_rig/msg/Move has no definition .* source the workspace"):
        describe_type("foreign_rig/msg/Move")


@pytest.mark.parametrize("name", ["os/path/join", "../msg/Evil", "std_msgs/msg/Nothing", "foreign_rig/msg/Move"])
def test_class_of_what_is_no_installed_message_is_refused(name: str) -> None:
    with pytest.raises(ImportError):
        message_class(name)


def test_a_module_beside_us_is_not_imported_for_a_type_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil_rig").mkdir()
    (tmp_path / "evil_rig" / "__init__.py").write_text("raise SystemExit('executed')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError, match="evil_rig/msg/Move has no definition"):
        message_class("evil_rig/msg/Move")


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with lone_node(Recorder, run=str(tmp_path / "run"), topics="/force, temperature") as node:
        yield node


def until(node: Recorder, condition: Any) -> None:
    for _ in range(600):
        spin(node)
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within 30 s")


def test_topic_that_appears_later_is_recorded_whatever_its_quality(recorder: Recorder, tmp_path: Path) -> None:
    assert recorder._further.missing == {"/force", "/lift/temperature"}
    sloppy = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    publisher = recorder.create_publisher(Float64, "/force", sloppy)
    until(recorder, lambda: recorder._further.missing == {"/lift/temperature"})
    until(recorder, lambda: publisher.get_subscription_count() > 0)

    def arrived() -> bool:
        publisher.publish(Float64(data=1.5))
        return recorder.diagnostics.counts["messages of /force"] > 0

    until(recorder, arrived)
    recorder.close()
    (file,) = (tmp_path / "run").glob("*.mcap")
    with file.open("rb") as stream:
        decoded = list(make_reader(stream, decoder_factories=[DecoderFactory()]).iter_decoded_messages())
    assert decoded[0].channel.topic == "/force"
    assert decoded[0].decoded_message.data == 1.5


def test_steps_of_another_graph_are_not_recorded_along_and_recording_goes_on(tmp_path: Path) -> None:
    with lone_node(Recorder, run=str(tmp_path / "run"), topics="/other/step") as node:
        node.create_publisher(msg.Step, "/other/step", 10)
        until(node, lambda: not node._further.missing)
        assert not list(node.get_subscriptions_info_by_topic("/other/step"))
        assert node.diagnostics.status is Status.RECORDING
