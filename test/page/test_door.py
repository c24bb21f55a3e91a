"""Who may open a page: tokens, cookies, names of this machine, and scripts of other web sites."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lift_ros.graph.page_address import Address
from lift_ros.page.door import Door

TOKEN = "a-token-that-nobody-guesses"
LOCAL, OPEN = Address("127.0.0.1", 8765), Address("0.0.0.0", 8765)


async def inside(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def ask(address: Address, token: str, kind: str = "http", query: str = "", path: str = "/", **headers: str) -> Any:
    """Return the first message of the answer; headers are those of a browser."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    given = [(name.encode(), value.encode()) for name, value in {"host": str(LOCAL), **headers}.items()]
    scope = {"type": kind, "path": path, "query_string": query.encode(), "headers": given}
    asyncio.run(Door(inside, address, token)(scope, receive, send))
    return sent[0]


def test_this_machine_comes_in_without_a_token() -> None:
    answer = ask(LOCAL, "")
    assert answer["status"] == 200
    assert (b"x-frame-options", b"DENY") in answer["headers"]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example:8765"}, {"origin": "http://evil.example"}, {"origin": "http://127.0.0.1:80"}, {"host": ""}],
)
def test_other_names_and_other_web_sites_stay_outside(kind: str, headers: dict[str, str]) -> None:
    answer = ask(LOCAL, "", kind, **headers)
    assert answer.get("status", answer.get("code")) in (403, 4403)


def test_our_own_origin_comes_in() -> None:
    assert ask(LOCAL, "", origin=f"http://{LOCAL}")["status"] == 200


@pytest.mark.parametrize("query", ["", "token=", "token=wrong", f"token={TOKEN}x", "token=%ff"])
def test_nobody_comes_in_with_another_token(query: str) -> None:
    assert ask(OPEN, TOKEN, query=query)["status"] == 401


@pytest.mark.parametrize("cookie", ["", "lift_page_8765=wrong", f"other={TOKEN}", "lift_page_8765=", "\x01=;;"])
def test_nobody_comes_in_with_another_cookie(cookie: str) -> None:
    assert ask(OPEN, TOKEN, cookie=cookie)["status"] == 401
    assert ask(OPEN, TOKEN, "websocket", cookie=cookie)["code"] == 4403
    assert ask(OPEN, TOKEN, "websocket", query=f"token={TOKEN}", cookie=cookie)["code"] == 4403


def test_a_token_becomes_a_cookie_that_opens_the_door() -> None:
    answer = ask(OPEN, TOKEN, query=f"token={TOKEN}", path="//evil.example/")
    headers = dict(answer["headers"])
    assert (answer["status"], headers[b"location"]) == (303, b"/evil.example/")  # a path here, not another host
    cookie = headers[b"set-cookie"].decode()
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert ask(OPEN, TOKEN, cookie=cookie.split(";")[0])["status"] == 200
