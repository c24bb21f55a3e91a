"""Steps for eyes: as many of those that were recorded as one can see, off the loop's way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from rclpy.node import Node

import lift_ros.msg as msg
from lift_ros.collection.records import Step
from lift_ros.graph import qos
from lift_ros.messages.records import encode_step

Shown = TypeVar("Shown")
PERIOD = 0.1  # [s] between two bundles of glimpses
MOST = 5  # in a bundle, the latest among them: more than that nobody sees


class Glimpses:
    """Repeats recorded steps to viewers, thinned out where there are many.

    A viewer that listened to all steps of a quick loop would take an eighth of its speed: each step is sent once more
    while the arbiter waits. Without a viewer nothing is kept.
    """

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(msg.Step, qos.GLIMPSE, qos.GLANCE)
        self._fresh: list[tuple[Step, str]] = []  # each with the token of its run, without which nobody heeds it
        self._is_watched = False

    def add(self, step: Step, run: str) -> None:
        """Keep a step for the next bundle, if somebody looks."""
        if self._is_watched:
            self._fresh.append((step, run))

    def publish(self) -> None:
        """Show what has come since the last time; to be called every `PERIOD`."""
        fresh, self._fresh = self._fresh, []
        for step, run in thinned(fresh, MOST):
            self._publisher.publish(encode_step(step, frame_id=run))
        self._is_watched = self._publisher.get_subscription_count() > 0


def thinned(steps: Sequence[Shown], most: int) -> list[Shown]:
    """Return at most so many of the steps, evenly spread, the last among them."""
    count = len(steps)
    chosen = range(count) if count <= most else [(number + 1) * count // most - 1 for number in range(most)]
    return [steps[place] for place in chosen]
