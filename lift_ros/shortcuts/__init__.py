"""Algorithm 1: from recorded episodes to shortcuts, for checking by hand, for batches and for d3rlpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lift_ros.shortcuts.candidates import candidates
from lift_ros.shortcuts.rule import STRATEGIES
from lift_ros.shortcuts.sampler import ShortcutBatch, ShortcutSampler

if TYPE_CHECKING:
    from lift_ros.shortcuts.picker import ShortcutPicker

__all__ = ["STRATEGIES", "ShortcutBatch", "ShortcutPicker", "ShortcutSampler", "candidates"]


def __getattr__(name: str) -> Any:
    """Import the picker only when it is asked for, since everything else works without d3rlpy."""
    if name == "ShortcutPicker":
        from lift_ros.shortcuts.picker import ShortcutPicker

        return ShortcutPicker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
