"""Formulas as MathML: pages write them in LaTeX, `$…$` in a line and `$$…$$` as a paragraph."""

from __future__ import annotations

import re
from html import unescape

from latex2mathml.converter import convert

# As pymdownx.arithmatex marks them with `generic`.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAYED = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def mathml(formula: str) -> str:
    """A formula as a page writes it, between its dollars."""
    is_displayed = formula.startswith("$$")
    return str(convert(formula.strip("$").strip(), display="block" if is_displayed else "inline"))


def with_mathml(html: str) -> str:
    """The page with its formulas drawn by the browser itself."""
    html = INLINE.sub(lambda match: convert(unescape(match[1]).strip()), html)
    return DISPLAYED.sub(
        lambda match: convert(unescape(match[1]).strip(), display="block"),
        html,
    )
