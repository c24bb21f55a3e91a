"""Algorithm 1: from recorded episodes to shortcuts.

`candidates` lists them all for checking by hand, `ShortcutSampler` draws batches, `ShortcutPicker` serves d3rlpy;
`rule` says which pairs are kept and how they are drawn, `theory` holds the paper's conditions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lift_ros.lazy import lazily
from lift_ros.shortcuts.rule import STRATEGIES, candidates
from lift_ros.shortcuts.sampler import ShortcutBatch, ShortcutSampler

if TYPE_CHECKING:
    from lift_ros.shortcuts.picker import ShortcutPicker

__all__ = ["STRATEGIES", "ShortcutBatch", "ShortcutPicker", "ShortcutSampler", "candidates"]

__getattr__ = lazily(__name__, {"lift_ros.shortcuts.picker": "ShortcutPicker"})  # all else works without d3rlpy
