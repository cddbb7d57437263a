"""Names within a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

MOST_LISTED = 3


def join_names(names: Sequence[str]) -> str:
    """a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return _("%(names)s and %(last)s") % {"names": ", ".join(names[:-1]), "last": names[-1]}


def shorten_names(names: Sequence[str]) -> str:
    """a, b and c; of more than three the first two, and how many others there are."""
    rest = len(names) - MOST_LISTED + 1
    if rest < 2:
        return join_names(list(names))
    others = ngettext("%(n)d other", "%(n)d others", rest) % {"n": rest}
    return join_names([*names[: MOST_LISTED - 1], others])
