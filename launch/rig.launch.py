"""The whole loop on a rig whose scenario names its drivers: record the routine, train, go on with LIFT."""

from launch import LaunchDescription

from lift_ros.graph.launch_description import graph_description


def generate_launch_description() -> LaunchDescription:
    """Return what `ros2 launch` starts."""
    return graph_description(scenario="micromanager-beads", run="runs/rig")
