"""Newport stages behind an XPS, through `newportxps`: an example of axes of one's own. NOT VERIFIED on any XPS.

    pip install newportxps
    axes: {driver: "newport_axes:NewportAxes", host: 192.168.0.254, stages: [GROUP1.POSITIONER], axes: [...]}

Only the names of the library's methods were compared with its release 2026.1.1. An XPS answers a move when it has
ended, so each stage has a connection of its own, and stops another. Try it with your hand at the power switch.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.drivers.protocol import Axis, DriverFault
from lift_ros.errors import UserError


class NewportAxes:
    """One axis per stage, each in a group of its own, in the units of the controller's configuration."""

    def __init__(
        self,
        layout: tuple[Axis, ...],
        host: str,
        stages: list[str],
        username: str = "Administrator",
        password: str = "Administrator",
    ) -> None:
        groups = [stage.partition(".")[0] for stage in stages]
        if len(stages) != len(layout) or len(set(groups)) != len(groups):
            raise UserError(f"stages is {stages}; allowed: one GROUP.POSITIONER for each axis, each in its own group")
        self.layout = layout
        self._stages, self._groups = stages, groups
        self._host, self._login = host, {"username": username, "password": password}
        self._reader: Any = None
        self._stopper: Any = None
        self._movers: list[Any] = []
        self._threads = ThreadPoolExecutor(len(stages), thread_name_prefix="xps")
        self._moves: list[Future[Any]] = []
        self._stopped = False

    def connect(self) -> None:
        """Log in once to read, once to stop and once per stage to move; nothing moves."""
        from newportxps import NewportXPS

        self._reader, self._stopper, *self._movers = (
            NewportXPS(self._host, **self._login) for _ in range(2 + len(self._stages))
        )
        missing = [stage for stage in self._stages if stage not in self._reader.stages]
        if missing:
            raise DriverFault(f"the XPS has no stage {missing[0]!r}; known are {', '.join(self._reader.stages)}")

    def home(self) -> None:
        """Begin to initialise and home all groups."""
        self._begin([(mover, self._home, (group,)) for mover, group in zip(self._opened(), self._groups, strict=True)])

    def position(self) -> FloatArray:
        """Read all stages."""
        self._opened()
        return np.array([float(self._reader.get_stage_position(stage)) for stage in self._stages])

    def start(self, target: FloatArray) -> None:
        """Start all stages."""
        moves = zip(self._opened(), self._stages, target.tolist(), strict=True)
        self._begin([(mover, _move, (stage, value)) for mover, stage, value in moves])

    def busy(self) -> bool:
        """Whether a stage moves; raises what the controller says of a move that failed, unless it was stopped."""
        if any(not move.done() for move in self._moves):
            return True
        ended, self._moves = self._moves, []
        for move in ended:
            if (error := move.exception()) is not None and not self._stopped:
                raise DriverFault(f"the XPS refused or ended a move: {error}")
        return False

    def stop(self) -> None:
        """Abort what all groups do."""
        self._opened()
        self._stopped = True
        for group in self._groups:
            self._stopper.abort_group(group)

    def close(self) -> None:
        """Log out."""
        connections = [each for each in (self._reader, self._stopper, *self._movers) if each is not None]
        self._reader = self._stopper = None
        self._movers, self._moves = [], []
        for connection in connections:
            connection.disconnect()

    def _begin(self, deeds: list[tuple[Any, Any, tuple[Any, ...]]]) -> None:
        self._stopped = False
        self._moves = [self._threads.submit(deed, mover, *words) for mover, deed, words in deeds]

    def _home(self, mover: Any, group: str) -> None:
        """Home a group from whatever state it is in; what was stopped in between goes no further."""
        for deed in (mover.kill_group, mover.initialize_group, mover.home_group):
            if not self._stopped:
                deed(group)

    def _opened(self) -> list[Any]:
        if not self._movers:
            raise DriverFault("the XPS is not connected; connect the rig first")
        return self._movers


def _move(mover: Any, stage: str, value: float) -> None:
    mover.move_stage(stage, value)
