"""Whom a recruiter invites, as a requester writes it: a filter a line, by the recruiter's names.

    age = 18..65
    current-country-of-residence = 1, 45

What a filter is called and which values it has is the recruiter's to say, when the draft is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from django.utils.translation import gettext as _

from marketplace.exceptions import InvalidParameter
from marketplace.recruiting.records import Filter

MOST_FILTERS = 30
LONGEST_LINE = 1000
EXCLUDING = "participant_group_blocklist"
LABELS = (
    *("survey", "writing_task", "annotation", "decision_making_task", "interview", "other"),
    *(
        "ai_annotation",
        "ai_evaluation",
        "ai_reasoning",
        "ai_fact_checking",
        "ai_safety",
        "ai_other",
    ),
)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
NUMBER = r"-?[0-9]{1,9}(?:\.[0-9]{1,4})?"
RANGE = re.compile(rf"({NUMBER})?\s*\.\.\s*({NUMBER})?")


def filters_of(lines: Iterable[str]) -> tuple[Filter, ...]:
    """The filters of lines such as `age = 18..65`, or InvalidParameter."""
    filters = tuple(map(filter_of, lines))
    names = [one.filter_id for one in filters]
    if len(names) > MOST_FILTERS:
        text = _("A study has at most %(n)s filters.") % {"n": MOST_FILTERS}
        raise InvalidParameter(text, code="too_many_filters")
    if twice := next((name for name in names if names.count(name) > 1), None):
        text = _("The filter %(name)s is there twice.") % {"name": twice}
        raise InvalidParameter(text, code="repeated_filter")
    return filters


def filter_of(line: str) -> Filter:
    """One filter: its name, and values by commas or a range of numbers."""
    name, _equals, right = (part.strip() for part in line.partition("="))
    is_line = right and len(line) <= LONGEST_LINE and line.isprintable()
    if not NAME.fullmatch(name) or not is_line:
        text = _("A filter is a name and its values, as in age = 18..65, not “%(line)s”.")
        raise InvalidParameter(text % {"line": line[:80]}, code="bad_filter")
    if name == EXCLUDING:
        text = _("Whose participants may not come is said by naming those studies.")
        raise InvalidParameter(text, code="excluding_filter")
    if name.startswith("custom_"):
        # They list participants, whose ids are kept with their sessions and nowhere else.
        text = _("The filter %(name)s lists participants: set it at the recruiter.")
        raise InvalidParameter(text % {"name": name}, code="listing_filter")
    if ends := RANGE.fullmatch(right):
        return _range(name, *ends.groups())
    return Filter(name, values=tuple(one.strip() for one in right.split(",") if one.strip()))


def _range(name: str, lower: str | None, upper: str | None) -> Filter:
    low, high = (None if end is None else Decimal(end) for end in (lower, upper))
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        text = _("The range of the filter %(name)s is empty.") % {"name": name}
        raise InvalidParameter(text, code="empty_range")
    return Filter(name, lower=low, upper=high)
