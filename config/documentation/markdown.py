"""Markdown that a forge shows and mkdocs does not, and the repository's own pages."""

import re
from collections.abc import Iterator
from pathlib import Path

# What docs/ names beside itself, and where the site has it (`REPOSITORY_PAGES`).
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
    up = "../" * source.count("/")
    text = LINK.sub(lambda match: f"]({_moved(match[1], up)}{match[2] or ''})", markdown)
    return "\n".join(_lines(text))


def _moved(address: str, up: str) -> str:
    beside = address.removeprefix(up)
    return f"{up}{MOVED[beside]}" if address == up + beside and beside in MOVED else address


def _lines(text: str) -> Iterator[str]:
    # A bar in a table's code is escaped for forges, which split cells at it; mkdocs does not.
    is_code = False
    for line in text.split("\n"):
        if FENCE.match(line):
            is_code = not is_code
        if line.startswith("|") and not is_code:
            line = CODE_IN_TABLE.sub(lambda match: match[0].replace("\\|", "|"), line)
        yield line


REPOSITORY_PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
REPOSITORY_FILES = {
    "assay_client.py": "files/assay_client.py",
    "static/assay.svg": "images/icon.svg",
    "static/tokens.css": "stylesheets/tokens.css",
}
FOLDERS = {"docs/adr": "adr/index.md", "docs/notebooks": "client.md"}


def repository_files(root: Path) -> dict[str, str]:
    pages = {
        path: _rewrite_links((root / name).read_text("utf-8"))
        for name, path in REPOSITORY_PAGES.items()
    }
    files = {path: (root / name).read_text("utf-8") for name, path in REPOSITORY_FILES.items()}
    return {**pages, **files, "apps.md": _apps_page(root)}


def _apps_page(root: Path) -> str:
    texts = [page.read_text("utf-8") for page in sorted(root.glob("*/README.md"))]
    sections = [re.sub(r"(?m)^#", "##", text).replace("](../", "](") for text in texts]
    return _rewrite_links("# The apps\n\n" + "\n".join(sections))


def _rewrite_links(text: str) -> str:
    return LINK.sub(lambda match: f"]({_address(match[1])}{match[2] or ''})", text)


def _address(address: str) -> str:
    if address in REPOSITORY_PAGES:
        return REPOSITORY_PAGES[address]
    if address.endswith("/README.md"):
        return f"apps.md#{address.removesuffix('/README.md')}"
    return FOLDERS.get(address.rstrip("/"), address.removeprefix("docs/"))
