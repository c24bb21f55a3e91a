"""Episodes and checks for tests of reports and their figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lift_ros.collection.records import Episode, Mode, Outcome, Source, Step


def make_episode(length: int, mode: Mode, source: Source) -> Episode:
    path = np.linspace([1.0, -1.0], [0.0, 0.0], length + 1)
    steps = [
        Step(0, i, i, path[i], path[i + 1] - path[i], source, position=path[i], reward=-float(np.hypot(*path[i + 1])))
        for i in range(length)
    ]
    return Episode(0, 1, mode, Outcome.REACHED, steps, path[-1], final_position=path[-1], goal=np.zeros(2))


def assert_inside(figure: Figure) -> None:
    """Every title and label of a drawn figure lies within it, and no label reaches into the next panel's."""
    FigureCanvasAgg(figure).draw()
    texts: list[Any] = [figure._suptitle] if figure.get_suptitle() else []  # type: ignore[attr-defined]
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label] if axes.get_visible() else []
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    for number, box in enumerate(boxes):
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1, box
        assert not any(box.overlaps(other) for other in boxes[number + 1 :]), box
