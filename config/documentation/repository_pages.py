"""The repository's own pages and files, which the site has too."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
FILES = {
    "assay_client.py": "files/assay_client.py",
    "static/assay.svg": "images/icon.svg",
}
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
INTO_DOCS = "docs/"
FOLDERS = {"docs/adr": "adr/index.md", "docs/notebooks": "client.md"}


def repository_files(root: Path) -> dict[str, str]:
    """What the site has at which path, with links as they are from there."""
    pages = {path: _page((root / name).read_text("utf-8")) for name, path in PAGES.items()}
    files = {path: (root / name).read_text("utf-8") for name, path in FILES.items()}
    return {**pages, **files, "apps.md": _apps_page(root)}


def _apps_page(root: Path) -> str:
    """The READMEs of all apps, a section each."""
    texts = [page.read_text("utf-8") for page in sorted(root.glob("*/README.md"))]
    sections = [re.sub(r"(?m)^#", "##", text).replace("](../", "](") for text in texts]
    return _page("# The apps\n\n" + "\n".join(sections))


def _page(text: str) -> str:
    return LINK.sub(lambda match: f"]({_address(match[1])}{match[2] or ''})", text)


def _address(address: str) -> str:
    if address in PAGES:
        return PAGES[address]
    if address.endswith("/README.md"):
        return f"apps.md#{address.removesuffix('/README.md')}"
    return FOLDERS.get(address.rstrip("/"), address.removeprefix(INTO_DOCS))
