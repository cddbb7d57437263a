"""Pages as people read them."""

import csv
import io
import re
from html import unescape


def words_of(content: str) -> str:
    """A page as it reads, without its tags."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", content))).strip()


def rows_of(answer):
    """The rows of a CSV answer."""
    return list(csv.DictReader(io.StringIO(answer.content.decode())))
