"""Motor records of EPICS over Channel Access, through `pyepics`."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lift_ros.array_types import FloatArray
from lift_ros.configuration import Key
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import Axis, DriverFault, MoveRefused

KEYS = {
    "connection_seconds": Key(float, 3.0, above=0, high=600, meaning="seconds to find a record, or to be answered"),
}
AXIS_KEYS = {
    "record": Key(str, meaning="name of the motor record, without a field"),
    "home": Key(str, "forward", choices=("forward", "reverse", "none"), meaning="direction of homing; none: not homed"),
}
_FIELDS = ("VAL", "RBV", "DMOV", "STOP", "LLM", "HLM", "EGU")
_HOMING = {"forward": "HOMF", "reverse": "HOMR"}


@functools.cache
def _library() -> Any:
    """Return pyepics with connections that belong to a thread which never ends: libca crashes without theirs."""
    with needed_by("epics"):
        import epics
    ready = threading.Event()

    def keep() -> None:
        epics.ca.initialize_libca()
        ready.set()
        threading.Event().wait()

    threading.Thread(target=keep, name="channel access", daemon=True).start()
    ready.wait()
    return epics


class EpicsAxes:
    """One motor record per axis; DMOV only hints, since records say done before they began."""

    def __init__(
        self, layout: tuple[Axis, ...], axes: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
    ) -> None:
        self.layout = layout
        self._records = [axis["record"] for axis in axes]
        self._homing = [_HOMING.get(axis["home"]) for axis in axes]
        self._seconds: float = settings["connection_seconds"]
        self._epics: Any = None
        self._channels: list[dict[str, Any]] = []

    def connect(self) -> None:
        """Find every record and its fields, and compare its unit with the scenario's."""
        self._join()
        self._channels = []
        for record, homing in zip(self._records, self._homing, strict=True):
            fields = [*_FIELDS, *([homing] if homing else [])]
            self._channels.append({name: self._epics.get_pv(f"{record}.{name}", auto_monitor=False) for name in fields})
        for record, channels in zip(self._records, self._channels, strict=True):
            for name, channel in channels.items():
                if not channel.wait_for_connection(timeout=self._seconds):
                    raise DriverFault(
                        f"EPICS record {record}: no answer for field {name} within {self._seconds:g} s; check that its "
                        "server runs and EPICS_CA_ADDR_LIST"
                    )
        for axis, unit in zip(self.layout, self._read("EGU"), strict=True):
            if unit and unit != axis.unit:
                raise DriverFault(f"axis {axis.name} is in {unit}, not in {axis.unit}; correct its unit and limits")

    def home(self) -> None:
        """Begin to home every axis that has a direction to do so."""
        self._join()
        for field, channels, record in zip(self._homing, self._channels, self._records, strict=True):
            if field:
                self._put(channels[field], 1, record)

    def position(self) -> FloatArray:
        """Read RBV."""
        return np.array(self._read("RBV"), dtype=float)

    def start(self, target: FloatArray) -> None:
        """Put VAL of all axes, once all lie within the records' own limits, which servers may not check."""
        bounds = zip(self.layout, target.tolist(), self._read("LLM"), self._read("HLM"), strict=True)
        for axis, value, low, high in bounds:
            if (low, high) != (0, 0) and not low <= value <= high:  # 0/0 means unset
                raise MoveRefused(
                    f"the target of axis {axis.name} is {axis.show(value)}; allowed: {axis.show(low)} to "
                    f"{axis.show(high)}, LLM and HLM of its record; narrow the scenario's limits, or change the record"
                )
        for value, channels, record in zip(target.tolist(), self._channels, self._records, strict=True):
            self._put(channels["VAL"], value, record)

    def busy(self) -> bool:
        """Whether a record says that it moves."""
        return not all(self._read("DMOV"))

    def stop(self) -> None:
        """Put STOP of every record, from whichever thread, without waiting."""
        self._join()
        failed = []
        for channels, record in zip(self._channels, self._records, strict=True):
            try:
                self._put(channels["STOP"], 1, record)
            except DriverFault as fault:
                failed.append(fault)
        if failed:
            raise failed[0]

    def close(self) -> None:
        """Forget the channels; the library keeps them and finds them again on connecting."""
        self._channels = []

    def _join(self) -> None:
        """Let this thread use the connections of the one that made them."""
        if self._epics is None:
            self._epics = _library()
        if self._epics.ca.current_context() is None:
            self._epics.ca.use_initial_context()

    def _read(self, field: str) -> list[Any]:
        self._join()
        if not self._channels:
            raise DriverFault("EPICS records are not connected; connect the rig first")
        return [
            self._get(channels[field], record) for channels, record in zip(self._channels, self._records, strict=True)
        ]

    def _get(self, channel: Any, record: str) -> Any:
        gone = DriverFault(
            f"EPICS record {record} is gone: no answer within {self._seconds:g} s; check its server, reset, connect"
        )
        try:
            value = channel.get(timeout=self._seconds, use_monitor=False) if channel.connected else None
        except self._epics.ca.ChannelAccessGetFailure as error:  # the server ended while it was asked
            raise gone from error
        if value is None:
            raise gone
        return value

    def _put(self, channel: Any, value: float, record: str) -> None:
        if not channel.connected or channel.put(value, wait=False) is None:
            raise DriverFault(f"EPICS record {record} is gone: {value:g} was not sent; check its server, then connect")
