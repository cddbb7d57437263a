"""A comparison of an item's candidates, as a value for each: the share of the others that it was
placed above, where an equal one counts half. So 1 is best, whatever was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as short_repr
from typing import Any

from django.utils.translation import gettext as _

from annotation.protocols.records import ProtocolQuestion
from hits.exceptions import AnswerUnreadable

TIE = "tie"


def compared_values(
    question: ProtocolQuestion, value: Any, keys: Sequence[str]
) -> dict[str, float]:
    """The value of each candidate, by blind key."""
    read = {"preference": _preference, "best_worst": _best_worst, "ranking": _ranking}
    return read[question.kind](question, value, keys)


def _preference(question: ProtocolQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    """The preferred one has 1 and the others 0, which says nothing of these among themselves."""
    if value == TIE and question.ties:
        return dict.fromkeys(keys, 0.5)
    return {key: float(key == _candidate_key(question, value, keys)) for key in keys}


def _best_worst(question: ProtocolQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    if not isinstance(value, dict) or set(value) != {"best", "worst"}:
        raise AnswerUnreadable(
            _("'{question}' is {value}, not a best and a worst").format(
                question=question.name, value=short_repr(value)
            ),
            code="not_best_and_worst",
        )
    best, worst = (_candidate_key(question, value[end], keys) for end in ("best", "worst"))
    if best == worst:
        raise AnswerUnreadable(
            _("'{question}' names '{best}' as the best and the worst").format(
                question=question.name, best=best
            ),
            code="best_is_worst",
        )
    return dict.fromkeys(keys, 0.5) | {best: 1.0, worst: 0.0}


def _ranking(question: ProtocolQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    groups = _groups(question, value)
    ranked = [_candidate_key(question, key, keys) for group in groups for key in group]
    if len(ranked) != len(keys) or set(ranked) != set(keys):
        raise AnswerUnreadable(
            _("'{question}' must rank each of the {n} candidates once; it is {value}").format(
                question=question.name, n=len(keys), value=short_repr(value)
            ),
            code="incomplete_ranking",
        )
    n_others = max(len(keys) - 1, 1)
    n_below = len(keys)
    values: dict[str, float] = {}
    for group in groups:
        n_below -= len(group)
        values |= dict.fromkeys(group, (n_below + (len(group) - 1) / 2) / n_others)
    return values


def _groups(question: ProtocolQuestion, value: Any) -> list[list[str]]:
    """From the best to the worst, those that are equally good together."""
    is_ranking = isinstance(value, list) and all(isinstance(group, list) for group in value)
    if not is_ranking or not all(value):
        raise AnswerUnreadable(
            _("'{question}' is {value}, not lists of candidates").format(
                question=question.name, value=short_repr(value)
            ),
            code="not_a_ranking",
        )
    if not question.ties and any(len(group) > 1 for group in value):
        raise AnswerUnreadable(
            _("'{question}' has equal ranks, which are not allowed").format(question=question.name),
            code="equal_ranks",
        )
    return list(value)


def _candidate_key(question: ProtocolQuestion, key: Any, keys: Sequence[str]) -> str:
    if not isinstance(key, str) or key not in keys:
        raise AnswerUnreadable(
            _("'{question}' names {key}, which is not a candidate here").format(
                question=question.name, key=short_repr(key)
            ),
            code="unknown_candidate",
        )
    return key
