"""Writes CHANGELOG.rst from CHANGELOG.md: bloom and the tools of a ROS release read that one.

`python -m tools.changelog` writes it, and so does `make format`; a test holds that it is current. What is not released
stands under `Forthcoming`, to which `catkin_prepare_release` gives its number and date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "CHANGELOG.md"
PAGE = ROOT / "CHANGELOG.rst"
TITLE = "Changelog for package lift_ros"
_HEADING = re.compile(r"## (?P<version>\d+\.\d+\.\d+) \((?P<date>[\d-]+|unreleased)\)")


def as_rst(markdown: str) -> str:
    """Return the changelog as bloom wants it."""
    _, *sections = re.split(r"^(?=## )", markdown, flags=re.MULTILINE)
    frame = "^" * len(TITLE)
    return "\n".join([frame, TITLE, frame, *(line for section in sections for line in _section(section))]) + "\n"


def _section(section: str) -> Iterator[str]:
    heading, *lines = _inline(section.rstrip()).splitlines()
    match = _HEADING.fullmatch(heading)
    if match is None:
        raise ValueError(f"CHANGELOG.md: heading {heading!r}; allowed: ## 1.2.3 (2026-01-31) or ## 1.2.3 (unreleased)")
    title = "Forthcoming" if match["date"] == "unreleased" else f"{match['version']} ({match['date']})"
    yield from ("", title, "-" * len(title))
    before = ""
    for line in lines:
        if line and before and _is_listed(line) != _is_listed(before):
            yield ""
        yield line
        before = line


def _is_listed(line: str) -> bool:
    return line.startswith(("- ", "  "))


def _inline(text: str) -> str:
    """Return text with links and code as reStructuredText writes them."""
    code = re.sub(r"`([^`]+)`", r"``\1``", text)
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"`\1 <\2>`__", code)


def main() -> int:
    """Write the page."""
    PAGE.write_text(as_rst(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
