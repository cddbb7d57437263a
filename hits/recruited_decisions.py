"""Decisions on participants' work that were not sent from here: of the other items of somebody
whose first was decided, by hand at the recruiter, or by time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from hits import recruiter_api
from hits.exceptions import MarketplaceFault
from hits.models import Assignment, Connection
from hits.submissions import set_status

if TYPE_CHECKING:
    from collections.abc import Mapping

# What is left of more is asked for a minute later.
MOST_ANSWERS = 20
# Two that are written down at once may be seen in another order than their times.
OVERLAP = timedelta(minutes=2)
DECIDED = (Assignment.Status.APPROVED, Assignment.Status.REJECTED)


def follow_decisions(connection: Connection) -> int:
    """Store what was decided since it was asked last; return how much of it is new here."""
    n_new, after = 0, connection.decisions_after
    for _answer in range(MOST_ANSWERS):
        decided, after_these = recruiter_api.fetch_decisions(connection, after=after)
        n_new += _store(connection, decided)
        if after_these == after:
            after = _a_little_before(after)
            break
        after = after_these
        Connection.objects.filter(pk=connection.pk).update(decisions_after=after)
    Connection.objects.filter(pk=connection.pk).update(decisions_after=after)
    return n_new


def _store(connection: Connection, decided: Mapping[str, str]) -> int:
    rows = Assignment.objects.filter(
        hit__batch__connection=connection, assignment_id__in=list(decided)
    )
    n_new = 0
    for one in rows:
        status = decided[one.assignment_id]
        if status in DECIDED and status != one.status:
            n_new += set_status(assignment=one, status=Assignment.Status(status))
    return n_new


def _a_little_before(after: str) -> str:
    at, _separator, _key = after.partition(" ")
    try:
        return (datetime.fromisoformat(at) - OVERLAP).isoformat() if at else ""
    except ValueError as error:  # as 2026-02-31
        raise MarketplaceFault(_("{name} is no time").format(name="after")) from error
