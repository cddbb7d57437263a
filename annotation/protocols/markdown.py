from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token


@lru_cache(maxsize=64)
def markdown_html(text: str) -> SafeString:
    return SafeString(_markdown().render(text).strip())  # HTML in the text is escaped


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    markdown.disable("image")
    markdown.add_render_rule("link_open", _open_link)
    markdown.add_render_rule("heading_open", _heading)
    markdown.add_render_rule("heading_close", _heading)
    return markdown


def _open_link(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    tokens[index].attrSet("target", "_blank")
    tokens[index].attrSet("rel", "noopener noreferrer")
    return str(renderer.renderToken(tokens, index, options, environment))


def _heading(
    renderer: Any, tokens: Sequence[Token], index: int, options: Any, environment: Any
) -> str:
    # The page itself has the first two levels.
    name = f"h{min(int(tokens[index].tag[1:]) + 2, 6)}"
    return f"<{name}>" if tokens[index].nesting == 1 else f"</{name}>\n"
