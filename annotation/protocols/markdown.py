from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token


@lru_cache(maxsize=64)
def markdown_html(text: str) -> SafeString:
    html = _markdown().render(text).strip()
    return SafeString(html)  # HTML in the text is escaped


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    markdown.disable("image")
    markdown.add_render_rule("link_open", _open_link)
    markdown.add_render_rule("heading_open", _open_heading)
    markdown.add_render_rule("heading_close", _close_heading)
    return markdown


def _open_link(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    tokens[index].attrSet("target", "_blank")
    tokens[index].attrSet("rel", "noopener noreferrer")
    return str(renderer.renderToken(tokens, index, options, environment))


def _open_heading(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    return f"<{_heading(tokens[index])}>"


def _close_heading(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    return f"</{_heading(tokens[index])}>\n"


def _heading(token: Token) -> str:
    return f"h{min(int(token.tag[1:]) + 2, 6)}"
