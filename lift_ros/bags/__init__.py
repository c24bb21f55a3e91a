"""Episodes to and from rosbags: `RunWriter` writes a run, `RunReader` reads it strictly, `load_arrays` reads it fast.

`importing` turns bags of others into runs, `exporting` writes runs for others.
"""

from lift_ros.bags.arrays import EpisodeArrays, episodes_to_arrays
from lift_ros.bags.contents import seen_part
from lift_ros.bags.faults import BagError, DiskFull, EpisodeError
from lift_ros.bags.hindsight import hindsight
from lift_ros.bags.loading import load_arrays
from lift_ros.bags.pictures import PictureStore, store_episode_pictures, store_pictures
from lift_ros.bags.reader import LeftOut, RunReader, read_run
from lift_ros.bags.writer import RunWriter

__all__ = [
    "BagError",
    "DiskFull",
    "EpisodeArrays",
    "EpisodeError",
    "LeftOut",
    "PictureStore",
    "RunReader",
    "RunWriter",
    "episodes_to_arrays",
    "hindsight",
    "load_arrays",
    "read_run",
    "seen_part",
    "store_episode_pictures",
    "store_pictures",
]
