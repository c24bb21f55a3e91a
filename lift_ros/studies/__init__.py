"""Studies: grids of independent experiments as files, computed on processes or a Ray cluster, stored cell by cell.

`load_study` reads one, `run_study` computes what is missing, `write_page` shows what is there. Baselines that only
studies need live here, too. Names are imported when they are first used, since torch takes a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lift_ros.lazy import lazily

if TYPE_CHECKING:
    from lift_ros.studies.page import write_page
    from lift_ros.studies.running import run_study
    from lift_ros.studies.study import Study, load_study, study_names

__all__ = ["Study", "load_study", "run_study", "study_names", "write_page"]
__getattr__ = lazily(
    __name__,
    {
        "lift_ros.studies.page": "write_page",
        "lift_ros.studies.running": "run_study",
        "lift_ros.studies.study": "Study load_study study_names",
    },
)
