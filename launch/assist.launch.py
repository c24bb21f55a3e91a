"""Drive with a model: it acts, the routine finishes where it stalls, all is recorded; without end unless told so."""

from launch import LaunchDescription

from lift_ros.graph.launch_description import graph_description


def generate_launch_description() -> LaunchDescription:
    """Return what `ros2 launch` starts."""
    return graph_description(mode="assist", run="runs/production", episodes="0")
