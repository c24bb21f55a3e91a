"""One Micro-Manager core per configuration: stages and cameras of a rig share it, as in Micro-Manager itself."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from lift_ros.configuration import Key
from lift_ros.drivers.libraries import needed_by
from lift_ros.drivers.protocol import DriverFault
from lift_ros.errors import UserError

DEMO = "demo"
CORE_KEYS = {
    "configuration": Key(str, meaning="Micro-Manager's configuration file; demo: the devices of mm-test-adapters"),
    "adapters": Key(str, None, optional=True, meaning="folder of device adapters, of the API that pymmcore has"),
}
_DEMO_DEVICES = {"Camera": "DCam", "XY": "DXYStage", "Z": "DStage"}


class Core:
    """One Micro-Manager core, shared by the axes and the camera of a rig; open as long as one of them uses it."""

    _known: ClassVar[WeakValueDictionary[tuple[str, str | None], Core]] = WeakValueDictionary()

    def __init__(self, configuration: str, adapters: str | None) -> None:
        self._configuration, self._adapters = configuration, adapters
        self._users: set[object] = set()
        self._opening = threading.Lock()
        self._core: Any = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Core:
        """Return the core of a configuration: the same one for all that name it alike."""
        key = settings["configuration"], settings["adapters"]
        core = cls._known.get(key)
        if core is None:
            core = cls._known[key] = cls(*key)
        return core

    @property
    def api(self) -> Any:
        """The library's own core; DriverFault where it is not open."""
        if self._core is None:
            raise DriverFault("Micro-Manager is not connected; connect the rig first")
        return self._core

    def acquire(self, user: object) -> None:
        """Open the core, where nobody did."""
        with self._opening:
            if self._core is None:
                self._core = self._open()
            self._users.add(user)

    def release(self, user: object) -> None:
        """Close the core, where nobody else uses it."""
        with self._opening:
            self._users.discard(user)
            if not self._users and self._core is not None:
                core, self._core = self._core, None
                core.reset()

    def _open(self) -> Any:
        with needed_by("micromanager"):
            import pymmcore
        core = pymmcore.CMMCore()
        adapters = _demo_adapters() if self._configuration == DEMO else self._adapters
        if adapters is not None:
            core.setDeviceAdapterSearchPaths([adapters])
        try:
            _load(core, self._configuration)
        except UserError:
            raise
        except Exception as error:  # RuntimeError, OSError, ValueError and others, by the kind of error
            core.reset()
            raise DriverFault(
                f"Micro-Manager cannot load the configuration {self._configuration!r} ({error}); check its labels, the "
                "devices' power and that adapters names a folder of the same device API"
            ) from error
        return core


def _demo_adapters() -> str:
    with needed_by("micromanager", "pip install mm-test-adapters, or name a configuration file of your own"):
        import mm_test_adapters
    return str(mm_test_adapters.device_adapter_path())


def _load(core: Any, configuration: str) -> None:
    if configuration != DEMO:
        if not Path(configuration).expanduser().is_file():
            raise UserError(f"configuration is {configuration!r}, which is no file; name one, or {DEMO}")
        core.loadSystemConfiguration(str(Path(configuration).expanduser()))
        return
    core.loadDevice("Hub", "DemoCamera", "DHub")
    core.initializeDevice("Hub")
    for label, name in _DEMO_DEVICES.items():
        core.loadDevice(label, "DemoCamera", name)
        core.setParentLabel(label, "Hub")
        core.initializeDevice(label)
    core.setXYStageDevice("XY")
    core.setFocusDevice("Z")
