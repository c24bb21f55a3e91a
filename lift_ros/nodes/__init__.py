"""Thin ROS 2 nodes: they move messages and clocks, and leave every decision to the folders without ROS.

Each `*_node.py` is an executable with a `main`; `base`, `plant` and `policy` are what nodes derive from.
Authors of rigs import `lift_ros.rig` instead.
"""
