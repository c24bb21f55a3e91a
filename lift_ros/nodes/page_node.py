"""Executable `page`: the operator's web page, a listener and caller like any other in the graph."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import ParameterEvent
from rclpy.parameter import Parameter as RosParameter
from rclpy.parameter import parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import qos_profile_parameter_events
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from sensor_msgs.msg import Image
from std_srvs.srv import SetBool, Trigger

import lift_ros.msg as msg
from lift_ros.bags.ends import read_end
from lift_ros.bags.reader import RunReader
from lift_ros.collection.exchange import Model
from lift_ros.collection.records import Step
from lift_ros.errors import UserError
from lift_ros.graph import qos
from lift_ros.graph.channels import ARBITER
from lift_ros.graph.page_address import TOKEN_VARIABLE, Address, choose_token
from lift_ros.graph.parameters import PARAMETERS, find
from lift_ros.messages import MessageError
from lift_ros.messages.pictures import image_array
from lift_ros.messages.records import EpisodeEnd, encode_model
from lift_ros.nodes.diagnostics import Status
from lift_ros.nodes.watching import WatchingNode
from lift_ros.page.live import EpisodeRow, LiveRun, PlantWords
from lift_ros.policies.learned import load_model
from lift_ros.scenario import load_scenario

NICENESS = 5  # the loop comes first, but training (10) comes after an emergency stop
SETTINGS = ("mode", "p", "budget")
REPORT_SECONDS = 0.25
LOOK_SECONDS = 0.5  # so often it is looked whether a browser is open
ANSWER_SECONDS = 3.0
HOLD_SECONDS = 1.0
PICTURE_SECONDS = 0.09  # a little less than what browsers are shown
FAREWELL_SECONDS = 0.3  # for browsers to be told that the graph has ended
ROWS_LISTED, ROWS_AT_ONCE = 2000, 100
_TRIGGERS = (qos.START, qos.PAUSE, qos.RESUME, qos.STOP, qos.RESET_FAULT)


class PageNode(WatchingNode):
    """Shows the run to browsers and does what people ask there, by the services and parameters that everybody uses."""

    executable = "page"
    summary = "serves the operator's page: what the run does, and buttons to pause, stop and change it"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._run = LiveRun(PlantWords.of(load_scenario(self.value("scenario"))), self.value("run"))
        self.desk = Desk(self)
        self._views: list[Any] = []  # subscriptions, while somebody looks
        self._shown_at = self._ended_at = 0.0
        self._server = self._make_server()
        self.create_subscription(ParameterEvent, "/parameter_events", self._on_parameters, qos_profile_parameter_events)
        self.desk.ask_settings(self._run.set_to)
        self.every(REPORT_SECONDS, lambda: self._run.heard(self.watch.status(), self.watch.reports))
        self.every(LOOK_SECONDS, self._look)
        self._server.start()
        self.get_logger().info(f"the page is at {self._server.address.url(self._server.token)}")
        self.set_status(Status.WATCHING)
        threading.Thread(target=self._list_recorded, name="earlier episodes", daemon=True).start()

    def step_made(self, step: Step) -> None:
        """Draw the step."""
        self._run.step_made(step)

    def episode_ended(self, end: EpisodeEnd) -> None:
        """List the episode."""
        self._run.episode_ended(end)

    def finish(self) -> None:
        """Let open browsers know that there is nothing more to come."""
        self._run.heard(self.watch.status(), self.watch.reports)
        self._run.end()
        self._ended_at = time.monotonic()

    def finished(self) -> bool:
        """Whether they had time to be told."""
        return not self._run.lookers or time.monotonic() - self._ended_at > FAREWELL_SECONDS

    def close(self) -> None:
        """Serve no more."""
        self._server.close()

    def _make_server(self) -> Any:
        from lift_ros.page.operator_page import declare_operator_page
        from lift_ros.page.serving import PageServer

        address = Address.parse(self.value("address"))
        token = choose_token(address, os.environ.get(TOKEN_VARIABLE, ""))
        title = f"{self._run.words.scenario} · lift_ros"
        return PageServer(address, token, title, lambda server: declare_operator_page(server, self._run, self.desk))

    def _list_recorded(self) -> None:
        """List what the run held before this process listened; in a thread, for there may be thousands."""
        run = Path(self.value("run"))
        if not self.value("run") or not run.is_dir() or not any(run.iterdir()):
            return
        try:
            reader = RunReader(run)
            indices = reader.episode_indices[-ROWS_LISTED:]
            for first in range(0, len(indices), ROWS_AT_ONCE):
                ends = [read_end(reader, index) for index in indices[first : first + ROWS_AT_ONCE]]
                self._run.add_rows(map(EpisodeRow.of, ends))
        except (UserError, OSError) as error:
            self.get_logger().warning(f"earlier episodes are not listed: {error}")

    def _on_parameters(self, event: Any) -> None:
        if event.node == f"{self.get_namespace().rstrip('/')}/{ARBITER}":
            changed = {each.name: parameter_value_to_python(each.value) for each in event.changed_parameters}
            self._run.set_to({name: value for name, value in changed.items() if name in SETTINGS})
            if event.new_parameters:  # it has just started
                self.desk.ask_settings(self._run.set_to)

    def _look(self) -> None:
        """Listen to glimpses and pictures only while somebody looks: then alone they are sent."""
        if self._run.lookers and not self._views:
            picture = self.create_subscription(Image, qos.IMAGE, self._on_picture, qos.VIEW, raw=True)
            self._views = [picture, self.listen_to_glimpses()]
        elif not self._run.lookers and self._views:
            for view in self._views:
                self.destroy_subscription(view)
            self._views = []

    def _on_picture(self, data: bytes) -> None:
        now = time.monotonic()
        if now - self._shown_at < PICTURE_SECONDS:
            return
        self._shown_at = now
        image = deserialize_message(data, Image)
        try:
            self._run.show(
                image_array(
                    "image", image.height, image.width, image.encoding, image.step, memoryview(image.data),
                    big_endian=bool(image.is_bigendian),
                )
            )  # fmt: skip
        except MessageError as error:
            self.drop("malformed image", str(error))


class Desk:
    """What an operator can do, as calls of the graph's services; asked from the server's thread."""

    def __init__(self, node: WatchingNode) -> None:
        self._node = node
        self._triggers: dict[str, Any] = {name: node.create_client(Trigger, name) for name in _TRIGGERS}
        self._emergency: Any = node.create_client(SetBool, qos.EMERGENCY_STOP)
        self._parameters = AsyncParameterClient(node, ARBITER)
        self._model = node.create_publisher(msg.Model, qos.MODEL, qos.LATCHED)

    def ask_settings(self, take: Callable[[Mapping[str, object]], None]) -> None:
        """Ask the arbiter for the parameters that can be set here, as soon as it is there."""

        def answered(future: Future[Any]) -> None:
            answer = future.result()
            if answer is not None and len(answer.values) == len(SETTINGS):
                take(dict(zip(SETTINGS, map(parameter_value_to_python, answer.values), strict=True)))

        def ask() -> None:
            if self._parameters.services_are_ready():
                timer.cancel()
                self._parameters.get_parameters(list(SETTINGS)).add_done_callback(answered)

        timer = self._node.every(LOOK_SECONDS, ask)

    async def call(self, service: str) -> str:
        """Call a service that takes no argument."""
        return await self._ask(service, self._triggers[service], Trigger.Request(), ANSWER_SECONDS)

    async def emergency_stop(self, *, stopped: bool) -> str:
        """Stop the plant at once, or release it.

        A stop pauses the arbiter, too: where it is released before the arbiter has noticed, nothing goes on by itself.
        """
        request = SetBool.Request(data=stopped)
        try:
            return await self._ask(qos.EMERGENCY_STOP, self._emergency, request, HOLD_SECONDS)
        finally:
            if stopped and self._triggers[qos.PAUSE].service_is_ready():
                self._triggers[qos.PAUSE].call_async(Trigger.Request())  # nobody waits for its answer

    async def set(self, parameter: str, value: float | str) -> str:
        """Set a parameter of the arbiter."""
        if (known := find(PARAMETERS[ARBITER], parameter)) is not None:
            known.check(value)  # in better words than the arbiter's
        if not self._parameters.services_are_ready():
            raise UserError("the arbiter is not there; nothing was set")
        future = self._parameters.set_parameters([RosParameter(parameter, value=value)])
        answer = await _answer_of(future, "the arbiter", ANSWER_SECONDS)
        if not answer.results[0].successful:
            raise UserError(answer.results[0].reason)
        return f"{parameter} is {value}"

    async def serve_model(self, path: str) -> str:
        """Announce a model file, as a trainer does; the augmentor checks it whole and says in its status whether."""
        model = await asyncio.to_thread(load_model, path)
        announced = Model(path, model.hash, model.algorithm, 0)
        self._model.publish(encode_model(announced, time.time_ns()))
        return f"{Path(path).name} is announced to the augmentor"

    def models(self) -> list[str]:
        """Return the model files in the folders from which the augmentor takes them, the newest last."""
        folders = filter(None, self._node.value("model_folders").split(os.pathsep))
        found = [path for folder in folders for path in Path(folder).glob("*.safetensors")]
        return [str(path) for path in sorted(found, key=lambda path: path.stat().st_mtime)]

    async def _ask(self, service: str, client: Any, request: Any, seconds: float) -> str:
        if not client.service_is_ready():
            raise UserError(f"nobody answers the service {service}")
        answer = await _answer_of(client.call_async(request), f"service {service}", seconds)
        if not answer.success:
            raise UserError(answer.message or f"service {service} refused without a word")
        return str(answer.message)


async def _answer_of(future: Future[Any], who: str, seconds: float) -> Any:
    """Wait, in a browser's loop, for what an executor's thread will answer."""
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()

    def wake(_future: Future[Any]) -> None:
        loop.call_soon_threadsafe(answered.set)

    future.add_done_callback(wake)
    try:
        await asyncio.wait_for(answered.wait(), seconds)
    except TimeoutError:
        raise UserError(f"{who} has not answered within {seconds:g} s") from None
    return future.result()


def main() -> int:
    """Run the page, which gives way to the loop."""
    os.nice(NICENESS)
    return PageNode.main()
