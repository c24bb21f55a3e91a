"""Writes docs/options.md: every training option and every key of a scenario, as the code that checks them says.

`python -m tools.options_page` writes it; a test holds that it is current.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lift_ros.configuration import REQUIRED, Key
from lift_ros.drivers.rig import READING_KEYS, RIG_KEYS
from lift_ros.policies.augmentations import AUGMENTATION_ARGUMENTS
from lift_ros.policies.loading import POLICY_ARGUMENTS
from lift_ros.policies.preprocessing import PICTURE_KEYS
from lift_ros.positioning.plants import PLANTS
from lift_ros.scenario import (
    ASSIST_KEYS,
    COLLECTION_KEYS,
    GUARD_KEYS,
    POLICY_KEYS,
    SEES_KEYS,
    TOP_KEYS,
    TRAINING_KEYS,
    UNITS_KEYS,
)
from lift_ros.training.options import OPTION_KEYS, PRESETS, width_keys

PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"
HEAD = """# Options

Written by `python -m tools.options_page` from the tables that check these values; do not edit.
`lift config` shows what is in force for a scenario or a run, and from where.

## Training
Given as `lift train … --option NAME=VALUE`, some also by an option of their own (`lift train --help`).
The preset `fast` is the default; then comes what a scenario's section `training` says, then the
command line. Algorithms of d3rlpy take further options by the names that d3rlpy gives them.
"""
SCENARIO_HEAD = """
## Scenario files
A scenario is a YAML file: `--scenario NAME` takes one that comes along (`lift scenarios`),
`--scenario FILE.yaml` one of your own.
"""


def options_page() -> str:
    """Return the page."""
    parts = [HEAD, _table({**OPTION_KEYS, **width_keys()}, presets=True), SCENARIO_HEAD, _table(TOP_KEYS)]
    for kind, plant in PLANTS.items():
        parts.append(_section(f"plant, kind: {kind}", plant.keys))
    parts.append(_section("logging_policy", POLICY_KEYS))
    for name, keys in POLICY_ARGUMENTS.items():
        parts.append(_section(f"logging_policy.arguments of {name}", keys))
    parts.append(_section("collection", COLLECTION_KEYS))
    for name, keys in AUGMENTATION_ARGUMENTS.items():
        parts.append(_section(f"collection.augmentation_arguments of {name}", keys))
    sections = {
        "sees": SEES_KEYS,
        "picture": PICTURE_KEYS,
        "rig": RIG_KEYS,
        "rig.reading": READING_KEYS,
        "assist": ASSIST_KEYS,
        "guard": GUARD_KEYS,
        "training": TRAINING_KEYS,
        "units": UNITS_KEYS,
    }
    parts += [_section(name, keys) for name, keys in sections.items()]
    return "\n".join(parts)


def _section(title: str, keys: Mapping[str, Key]) -> str:
    return f"\n### {title}\n{_table(keys) if keys else 'It takes none.'}"


def _table(keys: Mapping[str, Key], *, presets: bool = False) -> str:
    others = [name for name in PRESETS if presets and PRESETS[name]]
    header = ["key", "allowed", "default", *(f"preset `{name}`" for name in others), "meaning"]
    rows = [header, ["---"] * len(header)]
    for name, key in keys.items():
        changed = [_shown(PRESETS[preset][name]) if name in PRESETS[preset] else "" for preset in others]
        rows.append([f"`{name}`", key.allowed(), _default(key), *changed, key.meaning])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _default(key: Key) -> str:
    return "required" if key.default is REQUIRED else _shown(key.default)


def _shown(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def main() -> int:
    """Write the page."""
    PAGE.write_text(options_page() + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
