"""Pages as people read them."""

import re
from html import unescape


def words_of(content: str) -> str:
    """A page as it reads, without its tags."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", content))).strip()
