"""Who may open a page: whoever has the token where there is one, and never a script of another web site."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lift_ros.graph.page_address import Address

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_REFUSED = 4403  # close code of a websocket
_SECURE = (
    (b"x-frame-options", b"DENY"),  # nobody lays another page over the buttons
    (b"referrer-policy", b"no-referrer"),
)


class Door:
    """An ASGI application around another that lets in whom it should, requests and websockets alike.

    A token is given once in the address (`?token=`) and then kept as a cookie. Names other than this machine's own are
    refused on a local address, and so are other origins everywhere: else any web site could press buttons here.
    """

    def __init__(self, inside: Application, address: Address, token: str) -> None:
        self._inside = inside
        self._address = address
        self._token = token
        self._cookie = f"lift_page_{address.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or websocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._inside(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if refusal := self._refusal(headers):
            await _refuse(scope, send, 403, refusal)
        elif not self._token or self._same(self._cookie_of(headers)):
            await self._inside(scope, receive, _with_headers(send))
        elif scope["type"] == "http" and self._same(_token_in(scope)):
            await self._welcome(scope, send)
        else:
            words = "This page asks for a token: open the address with ?token=… that was printed when it was started."
            await _refuse(scope, send, 401, words)

    def _refusal(self, headers: MutableMapping[str, str]) -> str:
        host = headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if self._address.is_local and name not in (*_LOCAL_NAMES, self._address.host):
            return f"This page is for this machine alone, not for {name!r}."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "This page does not take requests from other web sites."
        return ""

    def _same(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _cookie_of(self, headers: MutableMapping[str, str]) -> str:
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return ""
        return str(cookies[self._cookie].value) if self._cookie in cookies else ""

    async def _welcome(self, scope: Scope, send: Send) -> None:
        """Keep the token as a cookie and lead to the page without it, so that it stays in no history."""
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800"
        path = scope["path"].lstrip("/\\")  # never the beginning of another host's name
        headers = [(b"location", f"/{path}".encode()), (b"set-cookie", cookie.encode()), *_SECURE]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _token_in(scope: Scope) -> str:
    return str(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0])


def _with_headers(send: Send) -> Send:
    async def forward(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_SECURE]
        await send(message)

    return forward


async def _refuse(scope: Scope, send: Send, status: int, words: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _REFUSED})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_SECURE]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode()})
