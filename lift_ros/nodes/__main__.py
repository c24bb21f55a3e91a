"""`python -m lift_ros.nodes EXECUTABLE …` runs a node, in a checkout as well as where it is installed."""

from __future__ import annotations

import sys

from lift_ros.nodes.starting import start

if __name__ == "__main__":
    sys.exit(start(sys.argv.pop(1)))
