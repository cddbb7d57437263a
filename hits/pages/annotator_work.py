"""Whose work an annotator's is: the worker, and where the review desk has it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from django.db.models import Count, Min
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.assignment_facts import DeskWork
from annotation.models import Study
from hits.pages.review_desk import (
    APPROVED,
    REJECTED,
    WAITING,
    listed_assignments,
)

IN_WORDS: dict[str, Promise] = {
    WAITING: _("%(n)s waiting"),
    REJECTED: _("%(n)s rejected"),
    APPROVED: _("%(n)s approved"),
}


def desk_work(study: Study, annotators: Collection[str]) -> dict[str, Sequence[DeskWork]]:
    """By pseudonym, in the order of the desk's lists."""
    work: defaultdict[str, list[DeskWork]] = defaultdict(list)
    names = ("submission__annotator__pseudonym", "worker__worker_id")
    for list_name in IN_WORDS:
        listed = listed_assignments(study, list_name)
        rows = listed.filter(submission__annotator__pseudonym__in=annotators)
        counts = rows.order_by().values_list(*names).annotate(n=Count("pk"), first=Min("pk"))
        for name, worker_id, n, first in counts:
            words = str(IN_WORDS[list_name]) % {"n": f"{n:,}"}
            work[name].append(DeskWork(list_name, n, first, worker_id, words))
    return dict(work)
