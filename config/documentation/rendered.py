import re
from html import unescape
from html.parser import HTMLParser
from typing import Final

from latex2mathml.converter import convert

# As pymdownx.arithmatex marks them with `generic`.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAYED = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def mathml(formula: str) -> str:
    is_displayed = formula.startswith("$$")
    return str(convert(formula.strip("$").strip(), display="block" if is_displayed else "inline"))


def with_mathml(html: str) -> str:
    html = INLINE.sub(lambda match: convert(unescape(match[1]).strip()), html)
    return DISPLAYED.sub(
        lambda match: convert(unescape(match[1]).strip(), display="block"),
        html,
    )


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
    parser = _Assets()
    parser.feed(html)
    return parser.addresses


TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
UNNAMED = re.compile(r"<thead>\s*<tr>\s*<th[^>]*></th>")
FIRST_CELL = re.compile(r"(<tr>\s*)<td([^>]*)>(.*?)</td>", re.DOTALL)


def with_row_heads(html: str) -> str:
    """Tables whose first column has no name are read by it: its cells are heads of their rows."""
    return TABLE.sub(lambda match: _headed(match[0]), html)


def _headed(table: str) -> str:
    if not UNNAMED.search(table):
        return table
    return FIRST_CELL.sub(r'\1<th scope="row"\2>\3</th>', table)
