"""Why a worker can't do HITs that are for people of some place, in words that need no code."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from error_codes import CodedText
from marketplace.people.countries import place_name
from marketplace.qualifications.comparators import NEGATIONS, Locale


def place_reason(comparator: str, places: Sequence[Locale], own: Locale | None) -> CodedText:
    """What a requirement of a place asks of a worker, who has stated `own` or nothing yet."""
    if comparator in NEGATIONS:
        reason, code = _("You must not be in %(places)s."), "excluded_place"
    elif own is None:
        reason, code = _("You must be in %(places)s."), "not_stated"
    else:
        reason = _("You must be in %(places)s; by your profile you are in %(own)s.")
        code = "elsewhere"
    named = {"places": _any_of(places), "own": place_name(*own) if own else ""}
    return CodedText(reason % named, code)


def _any_of(places: Sequence[Locale]) -> str:
    *first, last = [place_name(*place) for place in places]
    if not first:
        return last
    return _("%(names)s or %(last)s") % {"names": ", ".join(first), "last": last}
