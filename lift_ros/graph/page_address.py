"""Where a page listens: on this machine alone unless told otherwise, elsewhere only behind a token."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from dataclasses import dataclass

from lift_ros.errors import UserError

DEFAULT_ADDRESS = "127.0.0.1:8765"
TOKEN_VARIABLE = "LIFT_PAGE_TOKEN"  # an environment variable, as parameters can be read by everybody in the graph
SHORTEST_TOKEN = 16
_NAME = "localhost"


@dataclass(frozen=True)
class Address:
    """Host and port of a page; port 0 takes any that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the address that HOST:PORT says."""
        host, _, port = text.rpartition(":")
        host = host.strip("[]")
        if not host or not port.isdecimal() or int(port) > 65535:
            allowed = f"HOST:PORT with a port up to 65535, as {DEFAULT_ADDRESS}"
            raise UserError(f"the page's address is {text!r}; allowed: {allowed}")
        return cls(host, int(port))

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return self.host == _NAME or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def bind(self) -> socket.socket:
        """Return a socket that listens here, or say why there can be none."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a page that was killed comes back at once
        try:
            listening.bind((self.host, self.port))
            listening.listen()
        except OSError as error:
            listening.close()
            raise UserError(
                f"the page cannot listen on {self}: {error.strerror or error}; end what listens there, or choose "
                "another address with --page-address HOST:PORT"
            ) from None
        return listening

    def url(self, token: str = "") -> str:
        """Return what a browser is given to open the page."""
        return f"http://{self}/" + (f"?token={token}" if token else "")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def choose_token(address: Address, given: str) -> str:
    """Return the token that browsers must bring: none where only this machine reaches the page, else yours or a new."""
    if given and len(given) < SHORTEST_TOKEN:
        raise UserError(f"{TOKEN_VARIABLE} has {len(given)} characters; allowed: {SHORTEST_TOKEN} or more, or unset it")
    return given or ("" if address.is_local else secrets.token_urlsafe(24))
