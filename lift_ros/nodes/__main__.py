"""`python -m lift_ros.nodes EXECUTABLE …` runs a node, in a checkout as well as where it is installed."""

from __future__ import annotations

import importlib
import sys

if __name__ == "__main__":
    sys.exit(importlib.import_module(f"lift_ros.nodes.{sys.argv.pop(1)}_node").main())
