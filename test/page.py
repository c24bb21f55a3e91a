"""What a page of the docs prints: the files it names and the blocks below its headings, to be run as they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


@dataclass(frozen=True)
class Block:
    """One block of code: its language, and the file that the line above it names."""

    language: str
    file: str
    text: str

    @property
    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip()]


def blocks(page: Path, heading: str = "") -> list[Block]:
    """Return the blocks of a page, or those between a heading and the next one of its level."""
    text = page.read_text()
    if heading:
        level = heading.split()[0]
        text = re.split(rf"^{level} ", text.partition(f"{heading}\n")[2], flags=re.MULTILINE)[0]
        assert text, f"{page.name} has no heading {heading!r}"
    found = re.findall(r"(?:^`([^`\n]+)`\n)?^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [Block(language, file, content) for file, language, content in found]


def write_files(page: Path, folder: Path) -> None:
    """Write every file that a page prints."""
    for block in blocks(page):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
