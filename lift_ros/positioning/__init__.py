"""Active positioning problems: what is seen, what a move does, and when the goal is reached.

`problem` says what a plant's simulation offers and `plants` makes one by its kind; `distortions` and `dynamics` are
the paper's, `simulated` and `batched` run them, `environment` wraps them for gymnasium, which nothing else here needs;
`fetch` is the arm in MuJoCo.
"""

from lift_ros.positioning.distortions import DISTORTIONS

__all__ = ["DISTORTIONS"]
