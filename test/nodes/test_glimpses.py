"""Glimpses of a run: the steps that eyes can follow, kept for nobody while nobody looks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
import rclpy
from isolation import isolated, udp_alone
from message_samples import make_step
from rclpy.node import Node

import lift_ros.msg as msg
from lift_ros.collection.records import same
from lift_ros.graph import qos
from lift_ros.messages.records import decode_step, with_run
from lift_ros.nodes.glimpses import MOST, Glimpses, thinned

ENOUGH = 60.0


@pytest.mark.parametrize("count", [0, 1, MOST, MOST + 1, 13, 1000])
def test_few_steps_are_all_shown_and_many_are_spread_with_the_last_among_them(count: int) -> None:
    steps = list(range(count))
    shown = thinned(steps, MOST)
    assert len(shown) == min(count, MOST) and shown == sorted(set(shown))
    assert shown[-1:] == steps[-1:]
    gaps = {after - before for before, after in pairwise(shown)}
    assert max(gaps, default=0) - min(gaps, default=0) <= 1


@pytest.fixture
def room() -> Iterator[Node]:
    with isolated() as domain, udp_alone():
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain)
        node = Node("room", context=context, namespace="lift")
        yield node
        node.destroy_node()
        context.try_shutdown()


def test_only_what_comes_while_somebody_looks_is_shown(room: Node) -> None:
    glimpses = Glimpses(room)
    step = make_step()
    glimpses.add(step, "nobody sees this")
    glimpses.publish()
    subscription = room.create_subscription(msg.Step, qos.GLIMPSE, lambda data: None, qos.GLANCE, raw=True)
    deadline = time.monotonic() + ENOUGH
    seen: list[bytes] = []
    read = with_run("Step", decode_step)
    while not seen:
        assert time.monotonic() < deadline
        glimpses.add(step, "run")
        glimpses.publish()
        time.sleep(0.02)
        with subscription.handle:
            while (taken := subscription.handle.take_message(msg.Step, True)) is not None:
                seen.append(taken[0])
    assert all(same(read(each)[0], step) and read(each)[1] == "run" for each in seen)
    room.destroy_subscription(subscription)
    while room.count_subscribers(qos.GLIMPSE):
        time.sleep(0.02)
    glimpses.publish()
    glimpses.add(step, "nobody sees this")
    assert glimpses._fresh == []
