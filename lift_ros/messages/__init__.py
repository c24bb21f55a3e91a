"""What travels between nodes and into bags: read from msg/*.msg, written and read by one codec, checked at one door.

`records` says which dataclass travels as which message and is what others import; `codec` makes the functions that
write and read, `layout` knows where fields lie in bytes, `definitions` reads the definitions. Needs no ROS.
"""

from lift_ros.messages.errors import MessageError

__all__ = ["MessageError"]
