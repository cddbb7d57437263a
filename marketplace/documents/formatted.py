"""Requesters' formatted text, made safe to show on our own pages.

A QuestionForm is shown outside any frame, so what its FormattedContent may hold is a
short list: text, tables, pictures and links. No scripts, styles, forms, frames, ids.
"""

from html import unescape

import nh3

TAGS = {
    "a", "abbr", "b", "big", "blockquote", "br", "caption", "center", "cite", "code", "col",
    "colgroup", "dd", "del", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i",
    "img", "ins", "li", "ol", "p", "pre", "q", "s", "small", "span", "strong", "sub", "sup",
    "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "a": {"href", "title"},
    "abbr": {"title"},
    "img": {"src", "alt", "title", "width", "height"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
}
SCHEMES = {"http", "https", "mailto"}
REFERRER = "noopener noreferrer"


def sanitise(html: str) -> str:
    """Requesters' HTML with nothing left in it but what is allowed here."""
    return nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        url_relative="deny",
        link_rel=REFERRER,
        set_tag_attribute_values={
            "a": {"target": "_blank"},
            "img": {"referrerpolicy": "no-referrer", "loading": "lazy"},
        },
    )


def plain(html: str) -> str:
    """Only the text, for where no markup can be shown."""
    return " ".join(unescape(nh3.clean(html, tags=set(), attributes={})).split())
