"""LIFT for ROS 2: turn the logs of a scripted positioning routine into a better controller."""

__version__ = "0.1.0"
