"""Markdown that a forge shows and mkdocs does not: the two differ in small things."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What docs/ names beside itself, and where the site has it (repository_pages.py).
MOVED = {
    "../ARCHITECTURE.md": "architecture.md",
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../SECURITY.md": "security.md",
    "../assay_client.py": "files/assay_client.py",
}
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^ {0,3}(```|~~~)")
CODE_IN_TABLE = re.compile(r"`[^`]*`")


def as_rendered(markdown: str, source: str) -> str:
    """A page's Markdown, as mkdocs has to read it."""
    up = "../" * source.count("/")
    text = LINK.sub(lambda match: f"]({_moved(match[1], up)}{match[2] or ''})", markdown)
    return "\n".join(_lines(text))


def _moved(address: str, up: str) -> str:
    """Where a page `up` levels below docs/ finds what it names."""
    beside = address.removeprefix(up)
    return f"{up}{MOVED[beside]}" if address == up + beside and beside in MOVED else address


def _lines(text: str) -> Iterator[str]:
    """A bar in a table's code is escaped for forges, which split cells at it; mkdocs does not."""
    is_code = False
    for line in text.split("\n"):
        if FENCE.match(line):
            is_code = not is_code
        if line.startswith("|") and not is_code:
            line = CODE_IN_TABLE.sub(lambda match: match[0].replace("\\|", "|"), line)
        yield line
