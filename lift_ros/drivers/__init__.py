"""Axes and cameras of real rigs, without ROS: rules of motion shared by all, and one file per device family.

`protocol` says what a device offers, `motion` when a move is done or failed, `worker` runs devices on one thread, and
`table` makes them from what a scenario says. Device libraries are imported only where they are used.
"""

from lift_ros.drivers.protocol import Axes, Axis, Camera, DriverFault

__all__ = ["Axes", "Axis", "Camera", "DriverFault"]
