"""Names within a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _


def join_names(names: Sequence[str]) -> str:
    """a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return _("%(names)s and %(last)s") % {"names": ", ".join(names[:-1]), "last": names[-1]}
