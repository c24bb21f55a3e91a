"""`python -m lift_ros.nodes EXECUTABLE …` runs a node, in a checkout as well as where it is installed."""

from __future__ import annotations

import importlib
import sys

from lift_ros.errors import UserError
from lift_ros.nodes.sourced import require_ros

if __name__ == "__main__":
    try:
        require_ros()
    except UserError as error:
        print(f"{sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    sys.exit(importlib.import_module(f"lift_ros.nodes.{sys.argv.pop(1)}_node").main())
