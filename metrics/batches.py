"""Which texts to score, and in which order: each content once, those of like length together."""

import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeVar

from metrics.scorers.scorer import Example

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")

DIGITS = 32


class Content(NamedTuple):
    """What a scorer reads of an example, as a digest, and how much of it there is."""

    digest: str
    n_characters: int


def content_of(example: Example) -> Content:
    """The digest of an example's texts; whose response it is and to which item does not count."""
    texts = (example.response, example.context, example.reference, example.condition)
    digest = sha256(json.dumps(texts).encode()).hexdigest()[:DIGITS]
    return Content(digest, sum(len(text or "") for text in texts))


def grouped(contents: Iterable[tuple[Key, Content]]) -> list[tuple[Content, list[Key]]]:
    """Each content once, with the keys that have it, the longest first.

    The longest batch comes first because it is the one that may not fit into memory, and so
    that the time left is over- and not underestimated.
    """
    keys: dict[Content, list[Key]] = {}
    for key, content in contents:
        keys.setdefault(content, []).append(key)
    return sorted(keys.items(), key=lambda group: (-group[0].n_characters, group[0].digest))


def chunks(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Consecutive parts of at most this size."""
    for start in range(0, len(things), size):
        yield things[start : start + size]
