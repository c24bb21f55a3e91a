"""The page of options is what the code says, and every key has its sentence."""

from __future__ import annotations

import pytest

from lift_ros.configuration import Key
from lift_ros.policies.augmentations import AUGMENTATION_ARGUMENTS
from lift_ros.policies.loading import POLICY_ARGUMENTS
from lift_ros.positioning.plants import PLANTS
from lift_ros.scenario import ASSIST_KEYS, COLLECTION_KEYS, POLICY_KEYS, TOP_KEYS, TRAINING_KEYS
from lift_ros.training.options import OPTION_KEYS, TrainingOptions, width_keys
from tools.options_page import PAGE, options_page

TABLES: dict[str, dict[str, Key]] = {
    "top": TOP_KEYS,
    "logging_policy": POLICY_KEYS,
    "collection": COLLECTION_KEYS,
    "assist": ASSIST_KEYS,
    "training": TRAINING_KEYS,
    "options": {**OPTION_KEYS, **width_keys()},
    **{kind: plant.keys for kind, plant in PLANTS.items()},
    **POLICY_ARGUMENTS,
    **AUGMENTATION_ARGUMENTS,
}


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == options_page() + "\n", "run `python -m tools.options_page`"


@pytest.mark.parametrize("table", TABLES)
def test_every_key_has_a_sentence_and_stands_on_the_page(table: str) -> None:
    page = options_page()
    for name, key in TABLES[table].items():
        assert key.meaning.endswith("."), f"{table}.{name} has no meaning"
        assert f"| `{name}` | {key.allowed()} |" in page


def test_options_show_the_defaults_in_force() -> None:
    defaults = TrainingOptions().as_dict()
    assert {name: key.default for name, key in TABLES["options"].items()} == defaults
