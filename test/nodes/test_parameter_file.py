"""A parameter file means to us what it means to a real node."""

from __future__ import annotations

from pathlib import Path

import pytest
import rclpy
from isolation import udp_alone
from rclpy.node import Node

from lift_ros.graph.parameter_file import read_parameter_file

SECTIONS = [
    "/**: {ros__parameters: {p: 0.25}}",
    "arbiter: {ros__parameters: {p: 0.25}}",
    "/arbiter: {ros__parameters: {p: 0.25}}",
    "/lift/arbiter: {ros__parameters: {p: 0.25}}",
    "lift/arbiter: {ros__parameters: {p: 0.25}}",
    "lift: {arbiter: {ros__parameters: {p: 0.25}}}",
    "/**/arbiter: {ros__parameters: {p: 0.25}}",
    "/*/arbiter: {ros__parameters: {p: 0.25}}",
    "/lift/*: {ros__parameters: {p: 0.25}}",
    "/lift/**: {ros__parameters: {p: 0.25}}",
    "/lift/**/arbiter: {ros__parameters: {p: 0.25}}",
    "/*: {ros__parameters: {p: 0.25}}",
    "/other/arbiter: {ros__parameters: {p: 0.25}}",
    "/**: {ros__parameters: {p: 0.25}}\n/lift/arbiter: {ros__parameters: {p: 0.5}}",
    "/lift/arbiter: {ros__parameters: {p: 0.5}}\n/**: {ros__parameters: {p: 0.25, budget: 3}}",
    "/lift/*: {ros__parameters: {p: 0.5}}\n/*/arbiter: {ros__parameters: {p: 0.25}}",
]


@pytest.mark.parametrize("content", SECTIONS)
def test_sections_speak_to_the_nodes_that_ros_takes_them_for(content: str, tmp_path: Path, ros_domain: int) -> None:
    path = tmp_path / "rig.yaml"
    path.write_text(content)
    context = rclpy.Context()
    with udp_alone():
        rclpy.init(args=["--ros-args", "--params-file", str(path)], context=context, domain_id=ros_domain)
        try:
            node = Node("arbiter", namespace="lift", context=context)
            in_force = {name: parameter.value for name, parameter in node._parameter_overrides.items()}
            node.destroy_node()
        finally:
            context.try_shutdown()
    assert read_parameter_file(path, "lift").get("arbiter", {}) == in_force
