"""Collect episodes: plant, logging policy, augmentor, arbiter, recorder and, unless told otherwise, the trainer."""

from launch import LaunchDescription

from lift_ros.graph.launch_description import graph_description


def generate_launch_description() -> LaunchDescription:
    """Return what `ros2 launch` starts."""
    return graph_description()
