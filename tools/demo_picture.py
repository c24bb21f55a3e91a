"""Draws the README's picture from the runs of a demo: `python -m tools.demo_picture demo/fetch-reach`."""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np

from lift_ros.bags.reader import read_run
from lift_ros.evaluation.phases import split_phases
from lift_ros.evaluation.report_figures import steps_per_episode, trajectories

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "demo.png"


def main(folder: Path) -> None:
    """Put the paths above the steps of each episode."""
    phases = split_phases([*read_run(folder / "run"), *read_run(folder / "evaluation")])
    pictures = []
    for drawing in (trajectories(phases), steps_per_episode(phases)):
        assert drawing.draw is not None
        figure = drawing.draw()
        figure.set_size_inches(9, 3.3)
        figure.savefig(PICTURE)
        pictures.append(cv2.imread(str(PICTURE)))
    cv2.imwrite(str(PICTURE), np.vstack(pictures))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
