"""Writes episodes with `rosbags` alone, as somebody without this package would."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from lift_ros.collection.records import Episode, Step

MESSAGES = Path(__file__).parents[2] / "msg"


@functools.cache
def typestore(step_definition: str = "") -> Any:
    """Return the message types as `rosbags` has them, made from msg/*.msg or with another definition of a step."""
    store = get_typestore(Stores.ROS2_KILTED)
    types: dict[str, Any] = {}
    for name in ("Step", "Episode"):
        text = (MESSAGES / f"{name}.msg").read_text()
        if name == "Step" and step_definition:
            text = step_definition
        types.update(get_types_from_msg(text, f"lift_ros/msg/{name}"))
    store.register(types)
    return store


class Converter:
    """Turns records into messages of `rosbags`."""

    def __init__(self, store: Any) -> None:
        types = store.types
        self._time, self._header = types["builtin_interfaces/msg/Time"], types["std_msgs/msg/Header"]
        self._image = types["sensor_msgs/msg/Image"]
        self._step, self._episode = types["lift_ros/msg/Step"], types["lift_ros/msg/Episode"]

    def header(self, time_ns: int) -> Any:
        """Return a header with a frame, which ours do not have."""
        return self._header(self._time(*divmod(time_ns, 10**9)), "table")

    def image(self, time_ns: int, image: Any) -> Any:
        """Return an image, empty where there is none."""
        if image is None:
            return self._image(self.header(time_ns), 0, 0, "", 0, 0, np.empty(0, np.uint8))
        height, width, _ = image.shape
        return self._image(self.header(time_ns), height, width, "rgb8", 0, 3 * width, image.ravel())

    def step(self, step: Step) -> Any:
        """Return a step's message."""
        return self._step(
            header=self.header(step.time_ns),
            episode=step.episode,
            step=step.index,
            observation=step.observation,
            position=step.position,
            action=step.action,
            reward=step.reward,
            source=int(step.source),
            logging_proposal=step.logging_proposal,
            augmentor_proposal=step.augmentor_proposal,
            rejection=int(step.rejection),
            draw=step.draw,
            p=step.p,
            augmentations_left=step.augmentations_left,
            model_hash=step.model_hash,
            image=self.image(step.time_ns, step.image),
        )

    def episode(self, episode: Episode, **changes: Any) -> Any:
        """Return the message of an episode's end, with some of its fields changed."""
        fields = {
            "header": self.header(episode.end_time_ns),
            "start": self._time(*divmod(episode.start_time_ns, 10**9)),
            "episode": episode.index,
            "seed": episode.seed,
            "mode": int(episode.mode),
            "outcome": int(episode.outcome),
            "reason": episode.reason,
            "steps": len(episode.steps),
            "augmentations": episode.augmentations,
            "episode_return": episode.episode_return,
            "final_observation": episode.final_observation,
            "final_position": episode.final_position,
            "goal": episode.goal,
            "context": episode.context,
            "final_image": self.image(episode.end_time_ns, episode.final_image),
        }
        return self._episode(**{**fields, **changes})


def write_with_rosbags(
    path: Path,
    episodes: list[Episode],
    *,
    compressed: bool = False,
    step_topic_type: str = "lift_ros/msg/Step",
    **changes: Any,
) -> None:
    """Write a bag of episodes; `changes` are made to the message of every episode's end."""
    store = typestore()
    convert = Converter(store)
    writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
    if compressed:
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        steps = writer.add_connection("/lift/step", step_topic_type, typestore=store)
        ends = writer.add_connection("/lift/episode", "lift_ros/msg/Episode", typestore=store)
        for episode in episodes:
            for step in episode.steps:
                if step_topic_type == "lift_ros/msg/Step":
                    data = store.serialize_cdr(convert.step(step), step_topic_type)
                else:
                    data = store.serialize_cdr(convert.header(step.time_ns), step_topic_type)
                writer.write(steps, step.time_ns, data)
            end = store.serialize_cdr(convert.episode(episode, **changes), "lift_ros/msg/Episode")
            writer.write(ends, episode.end_time_ns, end)
