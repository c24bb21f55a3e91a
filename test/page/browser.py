"""A real browser without a screen, as a person would use it: what it sees, asks for and can press."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

ENOUGH = 100.0  # seconds; a test that waits longer has failed, however loaded the machine is
CHROMIUM, DRIVER = "chromium", "chromedriver"
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)


def require_browser() -> None:
    """Skip the tests of a file where there is no browser to drive."""
    pytest.importorskip("selenium", reason="selenium drives the browser")
    for name in (CHROMIUM, DRIVER):
        if shutil.which(name) is None:
            pytest.skip(f"no {name} here: apt install chromium chromium-driver", allow_module_level=True)


class Browser:
    """One window."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Open a page and wait until it is alive."""
        self.driver.get(url)
        self.wait("its connection", lambda: self.run("return !!(window.socket && window.socket.connected)"))

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def text(self, name: str) -> str:
        """Return the text of an element by its id, empty where there is none."""
        return str(self.run("return document.getElementById(arguments[0])?.innerText ?? ''", name))

    def is_shown(self, name: str) -> bool:
        """Whether an element can be seen."""
        return bool(self.run("return !!document.getElementById(arguments[0])?.offsetParent", name))

    def click(self, name: str) -> None:
        """Click an element that can be seen, as a person would."""
        self.wait(f"{name} to press", lambda: self.is_shown(name))
        self.driver.find_element("id", name).click()

    def press(self, key: str) -> None:
        """Press a key wherever the page has its focus."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(key).perform()

    def choose(self, name: str, choice: str) -> None:
        """Choose an entry of a list."""
        self.click(name)
        entries = "[...document.querySelectorAll('.q-menu .q-item')]"
        find = f"return {entries}.find(each => each.innerText.trim() === arguments[0])"
        self.wait(f"the choice {choice}", lambda: self.run(find, choice))
        self.run(find, choice).click()

    def wait(self, what: str, until: Callable[[], Any]) -> None:
        """Wait until something holds; fail with what the page shows where it never does."""
        deadline = time.monotonic() + ENOUGH
        while not until():
            if time.monotonic() > deadline:
                shown = self.run("return document.body.innerText")
                raise AssertionError(f"waited in vain for: {what}\n{shown}")
            time.sleep(0.02)

    def hosts(self) -> set[str]:
        """Return whom the page has asked for anything since it was last asked."""
        entries = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [each["params"] for each in entries if each["method"] == "Network.requestWillBeSent"]
        urls = [urlsplit(each["request"]["url"]) for each in asked]
        return {url.netloc for url in urls if url.scheme not in ("data", "blob")}


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser for the duration of the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which(CHROMIUM))
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which(DRIVER)))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
