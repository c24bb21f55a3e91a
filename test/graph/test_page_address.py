"""Where a page listens: addresses, tokens, and what is refused in one sentence."""

from __future__ import annotations

import pytest

from lift_ros.errors import UserError
from lift_ros.graph.page_address import DEFAULT_ADDRESS, SHORTEST_TOKEN, Address, choose_token


@pytest.mark.parametrize(
    ("text", "local"),
    [(DEFAULT_ADDRESS, True), ("localhost:80", True), ("[::1]:80", True), ("0.0.0.0:80", False), ("rig.lab:80", False)],
)
def test_addresses_are_local_or_not(text: str, local: bool) -> None:
    address = Address.parse(text)
    assert (str(address), address.is_local) == (text, local)


@pytest.mark.parametrize("text", ["", "8080", ":8080", "host:", "host:x", "host:65536", "host:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="allowed: HOST:PORT"):
        Address.parse(text)


def test_only_this_machine_needs_no_token() -> None:
    assert choose_token(Address("127.0.0.1", 1), "") == ""
    assert len(choose_token(Address("0.0.0.0", 1), "")) >= SHORTEST_TOKEN
    given = "x" * SHORTEST_TOKEN
    assert choose_token(Address("127.0.0.1", 1), given) == choose_token(Address("0.0.0.0", 1), given) == given
    with pytest.raises(UserError, match=r"LIFT_PAGE_TOKEN has 5 characters; allowed: 16"):
        choose_token(Address("0.0.0.0", 1), "short")


def test_an_address_that_is_taken_is_refused_with_a_remedy() -> None:
    listening = Address("127.0.0.1", 0).bind()
    taken = Address("127.0.0.1", listening.getsockname()[1])
    with listening, pytest.raises(UserError, match=rf"cannot listen on {taken}: .* --page-address"):
        taken.bind()
