"""Serves pages made with NiceGUI from a thread of its own, so that whoever starts them goes on with its work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from lift_ros.errors import UserError
from lift_ros.graph.page_address import Address
from lift_ros.page.door import Door

# Has NiceGUI know its pages, and adds to the server what is none of NiceGUI's.
Declare = Callable[[Any], None]
_START_SECONDS = 60.0
_END_SECONDS = 2.0


class PageServer:
    """A web server for the pages that `declare` adds; there is one in a process, as NiceGUI keeps its pages there."""

    def __init__(self, address: Address, token: str, title: str, declare: Declare) -> None:
        self._listening = address.bind()
        self.address = Address(address.host, self._listening.getsockname()[1])
        self.token = token
        self._server = _make_server(self.address, token, title, declare)
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="page", daemon=True)

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise UserError(f"the page's server did not start: {self._failed or 'nobody knows why'}")
            time.sleep(0.01)

    def join(self, seconds: float) -> bool:
        """Wait until the server has ended, at most so long; tell whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def close(self) -> None:
        """End, whoever still looks."""
        self._server.should_exit = True
        if self._thread.is_alive() and not self.join(_END_SECONDS):
            self._server.force_exit = True
            self.join(_END_SECONDS)
        self._listening.close()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._listening])
        except (Exception, SystemExit) as error:
            self._failed = error


def _make_server(address: Address, token: str, title: str, declare: Declare) -> Any:
    import uvicorn
    from fastapi import FastAPI
    from nicegui import ui

    inside = FastAPI(openapi_url=None)
    declare(inside)
    # No utility classes are compiled in the browser: a rig's old tablet has better things to do.
    ui.run_with(inside, title=title, dark=None, tailwind=False, show_welcome_message=False, reconnect_timeout=5.0)
    application: Any = Door(inside, address, token)
    config = uvicorn.Config(application, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    return uvicorn.Server(config)
