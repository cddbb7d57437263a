"""A comparison of an item's candidates, as a value for each: the share of the others that it was
placed above, where an equal one counts half. So 1 is best, whatever was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as short_repr
from typing import Any

from annotation.protocols.records import AskedQuestion
from hits.exceptions import AnswerUnreadable

TIE = "tie"


def compared_values(asked: AskedQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    """The value of each candidate, by blind key."""
    read = {"preference": _preference, "best_worst": _best_worst, "ranking": _ranking}
    return read[asked.kind](asked, value, keys)


def _preference(asked: AskedQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    """The preferred one has 1 and the others 0, which says nothing of these among themselves."""
    if value == TIE and asked.ties:
        return dict.fromkeys(keys, 0.5)
    return {key: float(key == _known(asked, value, keys)) for key in keys}


def _best_worst(asked: AskedQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    if not isinstance(value, dict) or set(value) != {"best", "worst"}:
        raise AnswerUnreadable(f"'{asked.name}' is {short_repr(value)}, not a best and a worst")
    best, worst = (_known(asked, value[end], keys) for end in ("best", "worst"))
    if best == worst:
        raise AnswerUnreadable(f"'{asked.name}' names '{best}' as the best and the worst")
    return dict.fromkeys(keys, 0.5) | {best: 1.0, worst: 0.0}


def _ranking(asked: AskedQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    groups = _groups(asked, value)
    ranked = [_known(asked, key, keys) for group in groups for key in group]
    if len(ranked) != len(keys) or set(ranked) != set(keys):
        raise AnswerUnreadable(
            f"'{asked.name}' must rank each of the {len(keys)} candidates once; "
            f"it is {short_repr(value)}"
        )
    n_others = max(len(keys) - 1, 1)
    n_below = len(keys)
    values: dict[str, float] = {}
    for group in groups:
        n_below -= len(group)
        values |= dict.fromkeys(group, (n_below + (len(group) - 1) / 2) / n_others)
    return values


def _groups(asked: AskedQuestion, value: Any) -> list[list[str]]:
    """From the best to the worst, those that are equally good together."""
    is_ranking = isinstance(value, list) and all(isinstance(group, list) for group in value)
    if not is_ranking or not all(value):
        raise AnswerUnreadable(f"'{asked.name}' is {short_repr(value)}, not lists of candidates")
    if not asked.ties and any(len(group) > 1 for group in value):
        raise AnswerUnreadable(f"'{asked.name}' has equal ranks, which are not allowed")
    return list(value)


def _known(asked: AskedQuestion, key: Any, keys: Sequence[str]) -> str:
    if not isinstance(key, str) or key not in keys:
        raise AnswerUnreadable(
            f"'{asked.name}' names {short_repr(key)}, which is not a candidate here"
        )
    return key
