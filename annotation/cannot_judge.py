"""Answers among a question's categories that say that nothing can be said."""

from __future__ import annotations

import re
from collections.abc import Sequence

CANNOT_JUDGE = re.compile(
    r"(i )?(can['’]?t|cannot|can not|unable to) (judge|tell|say|decide|rate)\b.*"
    r"|(i )?(don['’]?t|do not) know\b.*|unrateable|unjudgeable",
    re.IGNORECASE,
)


def says_nothing(category: str) -> bool:
    """Whether it is no answer on the scale, but that there is none."""
    return CANNOT_JUDGE.fullmatch(category.strip()) is not None


def first_that_says_nothing(categories: Sequence[str]) -> int:
    """The position of the first such category, or how many categories there are."""
    positions = (n for n, name in enumerate(categories) if says_nothing(name))
    return next(positions, len(categories))
