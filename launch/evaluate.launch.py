"""Evaluate a model: it acts alone, and its episodes are recorded."""

from launch import LaunchDescription

from lift_ros.graph.launch_description import graph_description


def generate_launch_description() -> LaunchDescription:
    """Return what `ros2 launch` starts."""
    return graph_description(mode="evaluate", run="runs/evaluation")
