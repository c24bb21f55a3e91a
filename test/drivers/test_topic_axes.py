"""Arms and cameras behind real ROS topics: the simulated arm is a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import TransformStamped
from isolation import udp_alone
from live_graph import ROOT, Process

from lift_ros.array_types import FloatArray
from lift_ros.drivers.protocol import Axes, DriverFault, MoveStopped
from lift_ros.drivers.ros_link import Link
from lift_ros.drivers.table import make_axes, make_camera
from lift_ros.drivers.tf_pose import TfPoses
from lift_ros.drivers.topic_joints import stay
from lift_ros.drivers.worker import DeviceWorker
from lift_ros.errors import UserError
from lift_ros.graph.run import node_command

pytestmark = pytest.mark.ros
NEEDS_ARM = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("pinocchio", "trajectory_msgs")),
    reason="pip install 'lift_ros[arm]' ros-trajectory-msgs",
)
WAIT = 100.0
PLACE = {"driver": "topics", "namespace": "/lift", "connection_seconds": 60}
JOINTS = [f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")]
STILL = {"home_required": False, "poll_seconds": 0.01}


@pytest.fixture(autouse=True)
def transport() -> Iterator[None]:
    """Let the driver speak as the nodes do: shared memory of a killed process could silence it."""
    with udp_alone():
        yield


@pytest.fixture
def arm(tmp_path: Path) -> Process:
    """A UR5; it is ended with the test's domain."""
    command = node_command("arm_simulator", {"robot": "ur5"}, "lift", tmp_path)
    return Process(command, tmp_path / "arm.log", dict(os.environ))


def joint_axes(number: int = 2, held: list[str] | None = None, velocity: float = 1.0, **more: Any) -> dict[str, Any]:
    common = {"unit": "rad", "low": -3.1, "high": 3.1, "tolerance": 0.005, "velocity": velocity}
    axes = [{"name": joint, "joint": joint, **common} for joint in JOINTS[:number]]
    held = JOINTS[number:] if held is None else held
    return {**PLACE, "interface": "joint_trajectory", "held": held, "motion": STILL, "axes": axes, **more}


def tool_axes(interface: str = "twist", directions: str = "xyz", velocity: float = 0.1, **more: Any) -> dict[str, Any]:
    common = {"unit": "m", "low": -1, "high": 1, "tolerance": 0.001, "velocity": velocity}
    axes = [{"name": direction, "direction": direction, **common} for direction in directions]
    return {**PLACE, "interface": interface, "motion": STILL, "axes": axes, **more}


@pytest.fixture
def working() -> Iterator[Callable[[dict[str, Any]], DeviceWorker]]:
    """Make connected workers of what a scenario says, and close them."""
    made: list[DeviceWorker] = []

    def work(data: dict[str, Any]) -> DeviceWorker:
        axes, settings = make_axes(data)
        made.append(DeviceWorker(axes, settings))
        made[-1].connect().result(WAIT)
        return made[-1]

    yield work
    for worker in made:
        worker.close()


Working = Callable[[dict[str, Any]], DeviceWorker]


def where(worker: DeviceWorker) -> FloatArray:
    return worker.position().result(WAIT)


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def assert_rests(read: Callable[[], FloatArray], atol: float) -> None:
    first = read()
    time.sleep(0.3)
    assert np.allclose(read(), first, atol=atol)


@NEEDS_ARM
def test_joints_move_by_deltas_and_the_others_stay(arm: Process, working: Working) -> None:
    worker = working(joint_axes(6))
    home = where(worker)
    for delta in ([0.1, -0.05, 0.0, 0.02, 0.0, 0.0], [-0.1, 0.1, 0.05, 0.0, 0.0, 0.2]):
        target = where(worker) + delta
        assert np.allclose(worker.move(target).result(WAIT), target, atol=0.005)
    two = working(joint_axes(2))
    target = where(two) + 0.1
    before = where(worker)
    assert np.allclose(two.move(target).result(WAIT), target, atol=0.005)
    assert np.allclose(where(worker)[2:], before[2:], atol=0.005)
    assert not np.allclose(home, where(worker), atol=0.05)


def test_joints_without_an_axis_do_not_creep_and_stay_where_somebody_moved_them() -> None:
    told, sagging = stay(np.array([np.nan, np.nan]), np.array([0.5, -1.0])), np.array([0.49, -1.01])
    assert stay(told, told).tolist() == [0.5, -1.0]
    assert stay(told, sagging).tolist() == [0.5, -1.0]
    assert stay(told, np.array([0.49, -1.3])).tolist() == [0.5, -1.3]


@NEEDS_ARM
def test_trajectory_that_lacks_a_joint_is_refused_and_so_a_fault(arm: Process, working: Working) -> None:
    worker = working(joint_axes(2, held=JOINTS[2:5]))
    before = where(worker)
    with pytest.raises(DriverFault, match="the move was short or refused"):
        worker.move(before + 0.1).result(WAIT)
    assert worker.fault is not None
    assert "refused trajectory" in arm.log.read_text()
    worker.reset()
    assert np.allclose(where(worker), before, atol=0.001)


@NEEDS_ARM
def test_stop_ends_a_move_of_joints(arm: Process, working: Working) -> None:
    worker = working(joint_axes(2, velocity=0.1))
    begin = where(worker)
    (axes, _), target = make_axes(joint_axes(2)), begin + 1.0
    axes.connect()
    answer = worker.move(target)
    wait_for(lambda: bool((axes.position() > begin + 0.02).all()))
    worker.stop()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    assert_rests(axes.position, 0.002)
    assert (axes.position() < target - 0.1).all()
    axes.close()
    again = where(worker) + 0.01
    assert np.allclose(worker.move(again).result(WAIT), again, atol=0.005)


@NEEDS_ARM
def test_arm_that_dies_in_a_move_is_a_fault_that_names_the_topic(
    arm: Process, working: Working, tmp_path: Path
) -> None:
    worker = working(joint_axes(2, velocity=0.1))
    axes, _ = make_axes(joint_axes(2))
    axes.connect()
    begin = where(worker)
    answer = worker.move(begin + 1.0)
    wait_for(lambda: bool((axes.position() > begin + 0.02).all()))
    arm.kill()
    with pytest.raises(DriverFault, match="topic /lift/joint_states brought no state of all .* limit 1 s"):
        answer.result(WAIT)
    worker.stop()
    assert worker.fault is not None
    with pytest.raises(DriverFault, match="the stop may not be heeded"):
        axes.stop()
    Process(node_command("arm_simulator", {}, "lift", tmp_path), tmp_path / "again.log", dict(os.environ))
    axes.close()
    worker.reset()
    worker.connect().result(WAIT)
    target = where(worker) + 0.02
    assert np.allclose(worker.move(target).result(WAIT), target, atol=0.005)


@NEEDS_ARM
def test_twists_bring_the_tool_to_its_target(arm: Process, working: Working) -> None:
    worker = working(tool_axes())
    for delta in ([0.03, -0.02, 0.01], [-0.02, 0.0, 0.03]):
        target = where(worker) + delta
        assert np.allclose(worker.move(target).result(WAIT), target, atol=0.001)
        assert_rests(lambda: where(worker), 0.0005)


@NEEDS_ARM
def test_stop_ends_a_move_of_the_tool(arm: Process, working: Working) -> None:
    worker = working(tool_axes(velocity=0.01))
    (axes, _), begin = make_axes(tool_axes()), where(worker)
    axes.connect()
    answer = worker.move(begin + np.array([0.0, 0.0, 0.1]))
    wait_for(lambda: bool(axes.position()[2] > begin[2] + 0.005))
    worker.stop()
    with pytest.raises(MoveStopped):
        answer.result(WAIT)
    assert_rests(axes.position, 0.0005)
    assert axes.position()[2] < begin[2] + 0.09
    axes.close()


@NEEDS_ARM
def test_tool_rests_when_twists_cease(arm: Process) -> None:
    (streaming, _), (watching, _) = make_axes(tool_axes(velocity=0.01)), make_axes(tool_axes())
    for axes in (streaming, watching):
        axes.connect()
    begin = watching.position()
    streaming.start(begin + np.array([0.0, 0.0, 0.1]))
    wait_for(lambda: bool(watching.position()[2] > begin[2] + 0.005))
    streaming.close()  # as if its process had ended: nobody says stop
    wait_for_rest(watching)
    assert_rests(watching.position, 0.0005)
    assert watching.position()[2] < begin[2] + 0.09
    watching.close()


def wait_for_rest(axes: Axes) -> None:
    def rests() -> bool:
        before = axes.position()
        time.sleep(0.2)
        return np.allclose(axes.position(), before, atol=0.0002)

    wait_for(rests)


class Stage:
    """A stage that goes to target poses; one that is `deaf` hears them and stays."""

    def __init__(self) -> None:
        from geometry_msgs.msg import PoseStamped

        self.link = Link("stage", "/lift")
        self.deaf = False
        self.heard: list[Any] = []
        self.pose = PoseStamped()
        self.pose.header.frame_id = "table"
        self.pose.pose.orientation.w, self.pose.pose.orientation.z = 0.6, 0.8
        self.pose.pose.position.z = 0.5
        self._speaker = self.link.speaker(PoseStamped, "tool_pose")
        self.link.hear(PoseStamped, "target_pose", self._go)
        self.link.every(0.02, lambda: self._speaker.publish(self.pose))

    def _go(self, target: Any) -> None:
        self.heard.append(target)
        if not self.deaf:
            self.pose = target


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.link.close()


def test_target_pose_keeps_what_has_no_axis(stage: Stage, working: Working) -> None:
    worker = working(tool_axes("pose", "xy"))
    assert np.allclose(worker.move(np.array([0.2, -0.1])).result(WAIT), [0.2, -0.1])
    (target,) = stage.heard
    turn = target.pose.orientation
    assert (target.header.frame_id, target.pose.position.z, turn.z, turn.w) == ("table", 0.5, 0.8, 0.6)
    worker.stop()
    wait_for(lambda: len(stage.heard) == 2)
    assert stage.heard[1].pose == target.pose


def test_target_pose_that_is_not_taken_is_a_fault(stage: Stage, working: Working) -> None:
    stage.deaf = True
    worker = working(tool_axes("pose", "xy", grace_seconds=0.2))
    with pytest.raises(DriverFault, match="axis x is at 0 m, 0.2 m off .* short or refused"):
        worker.move(np.array([0.2, 0.0])).result(WAIT)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (tool_axes("joint_trajectory"), "axes name joint \\[None, None, None\\]; allowed: one of its own for each"),
        (joint_axes(2, held=JOINTS[1:]), "allowed: one of its own for each"),
        (joint_axes(2, interface="pose"), "axes name direction"),
        (tool_axes(velocity=None), "axes lack velocity; allowed: a number for each"),  # type: ignore[arg-type]
        (tool_axes(rate=10), "axes.rate is 10; allowed: a number >= 30"),
        (tool_axes(tf=["base"]), "axes.tf is .*; allowed: a list of 2"),
        (joint_axes(tf=["base", "tool0"]), "tf is .*; allowed: nothing, as interface joint_trajectory reads joint"),
    ],
)
def test_bad_axes_of_topics_are_refused(data: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_axes(data)


@pytest.mark.skipif(importlib.util.find_spec("control_msgs") is not None, reason="this ROS has control_msgs")
def test_action_is_refused_where_its_type_is_not_installed() -> None:
    axes, _ = make_axes(joint_axes(interface="follow_joint_trajectory"))
    with pytest.raises(UserError, match="needs control_msgs, which .* or set interface: joint_trajectory"):
        axes.connect()


@pytest.mark.skipif(importlib.util.find_spec("tf2_ros") is not None, reason="this ROS has tf2_ros")
def test_tf_is_refused_where_it_is_not_installed() -> None:
    axes, _ = make_axes(tool_axes(tf=["base", "tool0"]))
    with pytest.raises(UserError, match="needs tf2_ros, which .* or leave `tf` out"):
        axes.connect()


def test_poses_of_tf_are_passed_on_once_for_each_stamp() -> None:
    transform = TransformStamped()
    transform.header.frame_id = "base"
    transform.transform.translation.y, transform.transform.rotation.z = 0.25, 1.0
    known: list[TransformStamped | None] = [None]
    heard: list[Any] = []
    poses = TfPoses(lambda: known[0], heard.append)
    poses.look()
    assert heard == []
    known[0] = transform
    poses.look()
    poses.look()
    assert [(pose.header.frame_id, pose.pose.position.y, pose.pose.orientation.z) for pose in heard] == [
        ("base", 0.25, 1.0)
    ]
    transform.header.stamp.nanosec = 1
    poses.look()
    assert len(heard) == 2


def test_nobody_there_is_a_fault_that_names_the_topic(stage: Stage) -> None:
    for data, said in (
        (joint_axes(connection_seconds=0.3), "topic /lift/joint_states brought no state of all"),
        (tool_axes("pose", state="nowhere", connection_seconds=0.3), "topic /lift/nowhere brought no pose"),
        (tool_axes("twist", connection_seconds=0.3), "nobody listens to topic /lift/delta_twist_cmds"),
    ):
        if data["interface"] == "twist":
            data["connection_seconds"] = 5
        axes, _ = make_axes(data)
        with pytest.raises(DriverFault, match=said):
            axes.connect()
        axes.close()


class Pictures:
    """Publishes one picture again and again, stamped `age` seconds ago, while it is `on`."""

    def __init__(self, kind: str = "Image", **fields: Any) -> None:
        import sensor_msgs.msg

        self.link = Link("camera", "/lift")
        self.on, self.age, self.fields = True, 0.0, fields
        self._kind = getattr(sensor_msgs.msg, kind)
        self._speaker = self.link.speaker(self._kind, "image")
        self.link.every(0.02, self._publish)

    def _publish(self) -> None:
        if self.on:
            message = self._kind(**self.fields)
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(int((time.time() - self.age) * 1e9), 10**9)
            self._speaker.publish(message)


def image(pixels: np.ndarray, encoding: str, **more: Any) -> dict[str, Any]:
    data = array("B", pixels.tobytes())
    size = {"height": pixels.shape[0], "width": pixels.shape[1], "step": pixels.nbytes // pixels.shape[0]}
    return {"encoding": encoding, "data": data, **size, **more}


GREY = np.arange(12, dtype=np.uint8).reshape(3, 4)
COLOURS = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
DEEP = (1000 * np.arange(12)).reshape(3, 4).astype(np.uint16)


@pytest.fixture
def showing() -> Iterator[Callable[..., Pictures]]:
    """Make cameras that publish, and close them."""
    made: list[Pictures] = []

    def show(*words: str, **fields: Any) -> Pictures:
        made.append(Pictures(*words, **fields))
        return made[-1]

    yield show
    for pictures in made:
        pictures.link.close()


Showing = Callable[..., Pictures]


@pytest.mark.parametrize(
    ("fields", "wanted", "encoding"),
    [
        (image(GREY, "mono8"), GREY, "mono8"),
        (image(COLOURS, "rgb8"), COLOURS, "rgb8"),
        (image(COLOURS, "bgr8"), COLOURS[:, :, ::-1], "rgb8"),
        (image(DEEP, "mono16"), DEEP, "mono16"),
        (image(DEEP.astype(">u2"), "mono16", is_bigendian=1), DEEP, "mono16"),
        ({**image(GREY, "mono8"), "width": 3}, GREY[:, :3], "mono8"),
    ],
)
def test_pictures_of_every_encoding(
    showing: Showing, fields: dict[str, Any], wanted: np.ndarray, encoding: str
) -> None:
    showing(**fields)
    camera = make_camera(PLACE)
    camera.connect()
    assert camera.format.encoding == encoding
    assert np.array_equal(camera.frame(time.monotonic(), WAIT), wanted)
    camera.close()
    with pytest.raises(DriverFault, match="is not connected"):
        camera.frame(time.monotonic(), 1.0)


def test_compressed_pictures(showing: Showing) -> None:
    import cv2

    data = array("B", cv2.imencode(".png", cv2.cvtColor(COLOURS, cv2.COLOR_RGB2BGR))[1].tobytes())
    pictures = showing("CompressedImage", format="png", data=data)
    camera = make_camera({**PLACE, "compressed": True})
    camera.connect()
    assert np.array_equal(camera.frame(time.monotonic(), WAIT), COLOURS)
    pictures.fields = {"format": "h264", "data": array("B", b"nothing")}
    with pytest.raises(DriverFault, match="topic /lift/image brought 7 bytes of format 'h264'"):
        camera.frame(time.monotonic() + 0.5, WAIT)
    camera.close()


def test_pictures_from_before_the_wanted_time_do_not_count(showing: Showing) -> None:
    pictures = showing(**image(GREY, "mono8"))
    camera = make_camera(PLACE)
    camera.connect()
    pictures.age = 1000.0  # they go on arriving, but were taken long ago
    wanted = time.monotonic() + 0.2
    with pytest.raises(DriverFault, match="topic /lift/image brought no picture in time.*too early.*stamps: arrival"):
        camera.frame(wanted, 1.0)
    pictures.fields, pictures.age = image(GREY + 1, "mono8"), 0.0
    assert np.array_equal(camera.frame(time.monotonic() + 0.2, WAIT), GREY + 1)
    camera.close()


def test_by_arrival_stamps_are_not_read_and_latency_is_waited_for(showing: Showing) -> None:
    pictures = showing(**image(GREY, "mono8"))
    pictures.age = 1000.0
    camera = make_camera({**PLACE, "stamps": "arrival", "latency_seconds": 0.3})
    camera.connect()
    wanted = time.monotonic()
    assert np.array_equal(camera.frame(wanted, WAIT), GREY)
    assert time.monotonic() >= wanted + 0.3
    camera.close()


def test_camera_that_stops_delivering_is_a_fault(showing: Showing) -> None:
    pictures = showing(**image(GREY, "mono8"))
    camera = make_camera(PLACE)
    camera.connect()
    camera.frame(time.monotonic(), WAIT)
    pictures.on = False
    with pytest.raises(DriverFault, match="topic /lift/image brought no picture in time, limit 1 s"):
        camera.frame(time.monotonic() + 0.3, 1.0)
    camera.close()


@pytest.mark.parametrize(
    ("fields", "age", "said"),
    [
        (image(GREY, "bayer_rggb8"), 0.0, "encoding 'bayer_rggb8'; allowed: mono8, mono16, rgb8, bgr8"),
        ({**image(GREY, "mono8"), "height": 4}, 0.0, "brought 12 bytes in rows of 4; allowed: 4 rows of at least 4"),
        (image(GREY, "mono8"), -1000.0, "ahead of this machine's clock"),
    ],
)
def test_pictures_that_cannot_be_used_are_refused(
    showing: Showing, fields: dict[str, Any], age: float, said: str
) -> None:
    pictures = showing()
    pictures.fields, pictures.age = fields, age
    camera = make_camera(PLACE)
    with pytest.raises(DriverFault, match=said):
        camera.connect()
    camera.close()


def test_camera_without_pictures_is_a_fault() -> None:
    camera = make_camera({**PLACE, "connection_seconds": 0.3, "topic": "/eye"})
    with pytest.raises(DriverFault, match="camera topic /eye brought no picture in time, limit 0.3 s \\(none came\\)"):
        camera.connect()


def test_process_that_ends_without_closing_is_not_aborted() -> None:
    program = "from lift_ros.drivers.ros_link import Link; Link('forgotten', '/lift').every(0.001, lambda: None)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
