"""Bags that somebody else recorded, turned into runs: `load_mapping` reads what is what, `import_bag` does the rest.

A bag becomes a run in this order: `mapping` (the user's file), `foreign_bag` (any bag as decoded messages, and paths
into them), `samples` (numbers over time, and what was seen together), `images`, `importer` (episodes). `topics` shows
what a bag holds and proposes a mapping.
"""

from lift_ros.bags.importing.foreign_bag import open_bag
from lift_ros.bags.importing.importer import ImportReport, import_bag
from lift_ros.bags.importing.mapping import Mapping, load_mapping
from lift_ros.bags.importing.topics import propose_mapping, summarise_topics

__all__ = [
    "ImportReport",
    "Mapping",
    "import_bag",
    "load_mapping",
    "open_bag",
    "propose_mapping",
    "summarise_topics",
]
