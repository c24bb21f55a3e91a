"""The whole loop on an arm behind ROS topics, with LIFT after training; `simulated:=true` brings the arm along."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from lift_ros.graph.launch_description import graph_description


def generate_launch_description() -> LaunchDescription:
    """Return what `ros2 launch` starts."""
    graph = graph_description(scenario="arm-ur5", run="runs/arm")
    simulated = DeclareLaunchArgument(
        "simulated",
        default_value="false",
        choices=["true", "false"],
        description="true, or false where an arm and its camera are there already",
    )
    arm = Node(
        package="lift_ros",
        executable="arm_simulator",
        namespace="lift",  # where the scenario expects it, whatever the graph's own is
        parameters=[{"robot": "ur5", "camera_rate": 20.0}],
        output="screen",
        condition=IfCondition(LaunchConfiguration("simulated")),
    )
    # The graph first: where it refuses its arguments, nothing is started.
    return LaunchDescription([simulated, *graph.entities, arm])
