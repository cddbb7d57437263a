"""Pages as people read them."""

import csv
import io
import re
from collections import Counter
from html import unescape

import lxml.html


def words_of(content: str) -> str:
    """A page as it reads, without its tags."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", content))).strip()


def rows_of(answer):
    """The rows of a CSV answer."""
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def rows_alike(content: str) -> list[tuple[str, ...]]:
    """The headers of rows of a page's tables that do not tell a row from another of its table."""
    alike: list[tuple[str, ...]] = []
    for table in lxml.html.fromstring(content).xpath("//table"):
        headers = Counter(
            tuple(each.text_content() for each in row.xpath("./th[@scope='row']"))
            for row in table.xpath("./tbody/tr")
        )
        alike += [row for row, n in headers.items() if n > 1]
    return alike
