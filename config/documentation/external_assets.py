"""What a page fetches of other sites' when it is read: links that a reader follows are none."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

# What a browser fetches by itself, and by which attribute of which element.
FETCHED: Final = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
}
# A link that only says something of the page, of which nothing is fetched.
SAID: Final = frozenset({"canonical", "next", "prev", "alternate"})


class _Assets(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "link" and values.get("rel") in SAID:
            return
        for name in FETCHED.get(tag, ()):
            address = values.get(name) or ""
            if address.startswith(("http:", "https:", "//")):
                self.addresses.append(address)


def external_assets(html: str) -> list[str]:
    """Addresses of other sites in scripts, styles, pictures and frames, in the page's order."""
    parser = _Assets()
    parser.feed(html)
    return parser.addresses
