"""How batches' studies at a recruiter, their participations and decisions stand, as the marketplace
says: followed each minute and after each request, and stored beside the batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from hits import recruiter_api
from hits.account_requests import store_recruiters
from hits.exceptions import MarketplaceFault
from hits.models import (
    Assignment,
    Batch,
    Connection,
    Participation,
    Payment,
    RecruiterCall,
    Recruitment,
)
from hits.payments import note_refused_payments
from hits.recruiter_api import Rows, Standing, annotation_prefix
from hits.submissions import delete_withdrawn, set_status

FACTS = ("worker_id", "state", "outcome", "reported", "arrived_at")
CALL_FACTS = (
    *("number", "kind", "is_uncertain", "amount", "currency", "worker_id", "request_token"),
    *("submission_id", "problem", "shows_by"),
)
# The items of a participation are reserved together, when its participant arrives; nobody is done
# with one, and comes again, so soon.
RESERVED_WITHIN = timedelta(minutes=1)


def items_of_participation(assignment: Assignment) -> QuerySet[Assignment]:
    """All items of the participation that this one is of: whoever comes to a batch twice is decided
    on each time by itself."""
    mine = Assignment.objects.of(assignment.hit.batch).filter(worker=assignment.worker_id)
    return mine.filter(accepted_at__range=_about(assignment))


def standing_of(assignment: Assignment) -> QuerySet[Participation]:
    """How the participation stands at the recruiter that this item is of, where a decision should
    know it; one of before arrivals were told may be any of the participant's."""
    rows = Participation.objects.filter(
        recruitment__batch=assignment.hit.batch, worker_id=assignment.worker.worker_id
    )
    of_it = Q(arrived_at__range=_about(assignment)) | Q(arrived_at=None)
    return rows.filter(of_it).select_related("recruitment__recruiter")


def _about(assignment: Assignment) -> tuple[Any, Any]:
    at = assignment.accepted_at
    return at - RESERVED_WITHIN, at + RESERVED_WITHIN


def store_participations(recruitment: Recruitment, rows: Rows) -> None:
    mine = [one for one in rows if one["study"] == recruitment.public_id]
    told = {tuple(one[name] for name in FACTS) for one in mine}
    known = Participation.objects.filter(recruitment=recruitment)
    stored = {row[1:]: row[0] for row in known.values_list("pk", *FACTS)}
    if gone := [key for facts, key in stored.items() if facts not in told]:
        known.filter(pk__in=gone).delete()
    Participation.objects.bulk_create(
        Participation(recruitment=recruitment, **dict(zip(FACTS, facts, strict=True)))
        for facts in sorted(told - stored.keys(), key=repr)
    )


State = Recruitment.State
# Calls without which the recruiter approves a submission by time.
PAID_BY_TIME = ("doubt", "reject", "approve")
# A participation at a recruiter takes less than a day, with ten minutes of grace, and who stops it
# at its end may have submitted a first page at its beginning: a day more is for what is not heard.
TAKEN_BACK_WITHIN = timedelta(days=2)
# By then it is known whether a decision or a bonus waits for the recruiter.
HEARD_WITHIN = timedelta(days=1)


def follow_batch(batch: Batch) -> None:
    prefix = annotation_prefix(batch)
    store_standing(batch.connection, recruiter_api.fetch_standing(batch.connection, prefix=prefix))


@transaction.atomic
def store_standing(connection: Connection, standing: Standing) -> None:
    store_recruiters(connection, standing.recruiters)
    mine = Recruitment.objects.select_for_update(of=("self",))
    mine = mine.filter(batch__connection=connection)
    by_key = {recruitment.key: recruitment for recruitment in mine}
    for key, values in standing.studies.items():
        if (recruitment := by_key.get(key)) is not None:
            _store_study(recruitment, values, standing)
            _store_calls(recruitment, standing)
            refused = standing.refused_bonuses
            note_refused_payments(recruitment.batch, refused, asked_at=standing.asked_at)
            store_participations(recruitment, standing.participations)
    if standing.withdrawn:
        known = Assignment.objects.filter(hit__batch__connection=connection)
        delete_withdrawn(known.filter(assignment_id__in=standing.withdrawn))


def connections_to_follow() -> list[Connection]:
    """Those over which participants may come, or a token is being tried."""
    of_batches = Q(batches__recruitments__in=Recruitment.objects.unfinished())
    rows = Connection.objects.filter(
        of_batches
        | Q(batches__in=_undecided_batches())
        | Q(batches__in=_batches_sent_on())
        | Q(recruiters__is_being_tried=True)
    )
    return list(rows.distinct())


def forget_submissions(followed: Iterable[Connection]) -> None:
    """Forget whose submissions calls were of, where the marketplace is followed no more: that a
    participant was erased there is heard of no more, either."""
    calls = RecruiterCall.objects.exclude(recruitment__batch__connection__in=followed)
    calls.exclude(submission_id="").update(submission_id="")


def _undecided_batches() -> QuerySet[Batch]:
    """Participants' batches with answers that may be taken back still, though they come by links
    that the marketplace's own pages gave, of which nothing is known here."""
    is_undecided = Q(status=Assignment.Status.SUBMITTED)
    # Whose author may be at work on the other pages still, and stop.
    is_recent = Q(submitted_at__gt=timezone.now() - TAKEN_BACK_WITHIN)
    answers = Assignment.objects.filter(is_undecided | is_recent, hit__batch=OuterRef("pk"))
    return Batch.objects.filter(Exists(answers), is_recruited=True)


def _batches_sent_on() -> QuerySet[Batch]:
    """Participants' batches of which something was sent just now that their recruiter may refuse,
    however long ago they were closed."""
    recently = timezone.now() - HEARD_WITHIN
    decided = Assignment.objects.filter(hit__batch=OuterRef("pk"), decided_at__gt=recently)
    paid = Payment.objects.filter(assignment__hit__batch=OuterRef("pk"), confirmed_at__gt=recently)
    return Batch.objects.filter(Exists(decided) | Exists(paid), is_recruited=True)


def participants_to_look_after(study_ids: Iterable[int]) -> list[tuple[Batch, int, int]]:
    """Batches of these studies, with of how many participants somebody must look after a call, and
    of how many the recruiter pays by time what nobody decides on."""
    if not (keys := set(study_ids)):
        return []
    rows = RecruiterCall.objects.to_look_after().filter(recruitment__batch__study__in=keys)
    workers = Count("worker_id", distinct=True)
    is_paid_by_time = Q(kind__in=PAID_BY_TIME) & (Q(is_uncertain=True) | ~Q(kind="doubt"))
    paid = Count("worker_id", distinct=True, filter=is_paid_by_time)
    counted = rows.order_by().values_list("recruitment__batch").annotate(n=workers, n_paid=paid)
    counts = {key: (n, n_paid) for key, n, n_paid in counted}
    batches = Batch.objects.filter(pk__in=counts).select_related("study").order_by("pk")
    return [(batch, *counts[batch.pk]) for batch in batches]


def _store_study(recruitment: Recruitment, values: dict[str, Any], standing: Standing) -> None:
    for name, value in values.items():
        setattr(recruitment, name, value)
    # Of whomever they are for: a participant's other study of the batch may be the one that pays.
    bonuses = standing.refused_bonuses
    mine = (bonus for bonus in bonuses if bonus.request_token.startswith(f"{recruitment.key}:"))
    # Of whom was erased since nothing is told any more; what was refused stays so.
    recruitment.refused_bonuses |= {bonus.request_token: bonus.problem for bonus in mine}
    recruitment.fetched_at = timezone.now()
    recruitment.save()


def _store_calls(recruitment: Recruitment, standing: Standing) -> None:
    """What somebody must look after; of a call that is listed already the row stays, which a page
    names that is open somewhere."""
    listed = {one["number"]: one for one in standing.calls if one["study"] == recruitment.public_id}
    calls = RecruiterCall.objects.filter(recruitment=recruitment)
    calls.exclude(number__in=listed).delete()
    RecruiterCall.objects.bulk_create(
        (
            RecruiterCall(recruitment=recruitment, **{name: one[name] for name in CALL_FACTS})
            for one in listed.values()
        ),
        update_conflicts=True,
        unique_fields=["recruitment", "number"],
        update_fields=[name for name in CALL_FACTS if name not in ("number", "worker_id")],
    )


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
        n_new += _store_decisions(connection, decided)
        if after_these == after:
            after = _a_little_before(after)
            break
        after = after_these
        Connection.objects.filter(pk=connection.pk).update(decisions_after=after)
    Connection.objects.filter(pk=connection.pk).update(decisions_after=after)
    return n_new


def _store_decisions(connection: Connection, decided: Mapping[str, str]) -> int:
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
