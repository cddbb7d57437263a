"""Heads of rows, for readers who listen: Markdown has none."""

from __future__ import annotations

import re

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
