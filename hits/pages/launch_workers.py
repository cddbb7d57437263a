"""Who may work on a launch, in a sentence, and what so many of them for an item allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hits.models import Batch
from hits.preflight import Finding, Level
from hits.qualifications import country_name, language_name, who_may_work


def workers_text(draft: Batch) -> str:
    """What a launch requires of its workers; of participants their recruiter asks."""
    if draft.is_recruited:
        return ""
    parts = list(_requirements(draft))
    if not parts:
        return _("Who may work: any worker of the marketplace.")
    return _("Who may work: %(requirements)s.") % {"requirements": "; ".join(parts)}


def _requirements(draft: Batch) -> Iterator[str]:
    who = who_may_work(draft)
    if who.countries:
        yield _("country %(names)s") % {"names": _any_of(map(country_name, who.countries))}
    if who.languages:
        names = ", ".join(map(language_name, who.languages))
        yield _("languages %(names)s") % {"names": names}
    if who.min_approval_percent:
        yield _("approval rate %(n)d %% or more") % {"n": who.min_approval_percent}
    if who.min_approved:
        yield _("approved HITs %(n)s or more") % {"n": f"{who.min_approved:,}"}
    if draft.needs_masters:
        yield _("Masters only")
    qualifications = draft.document.qualifications
    if n_tests := len(qualifications.tests):
        yield ngettext("%(n)d test passed", "%(n)d tests passed", n_tests) % {"n": n_tests}
    if qualifications.practice is not None:
        yield _("practice passed")


def _any_of(names: Iterable[str]) -> str:
    """a, b or c."""
    *first, last = names
    if not first:
        return last
    return _("%(names)s or %(last)s") % {"names": ", ".join(first), "last": last}


def agreement_findings(draft: Batch, batches: Iterable[Batch]) -> Iterator[Finding]:
    """Of one worker for an item, where no other round asks another one."""
    if draft.max_assignments > 1 or any(one.round != draft.round for one in batches):
        return
    text = _("One worker for each item: how far annotators agree will not be known.")
    yield Finding(Level.WARNING, text, "max_assignments", code="one_worker")
