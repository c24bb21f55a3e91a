"""What is wrong with a message: said once, in the same words whoever wrote or received it."""

from __future__ import annotations

from lift_ros.errors import UserError


class MessageError(UserError):
    """A field holds what its message must not carry; names the field, the value and what is expected."""

    def __init__(self, field: str, value: object, limit: str) -> None:
        super().__init__(f"{field} is {value}, expected {limit}")
        self.field = field
        self.value = value
        self.limit = limit
