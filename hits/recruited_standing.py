"""How batches' studies at a recruiter stand, as the marketplace says: followed each minute and
after each request, and stored beside the batch; which calls a person is to look after."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from hits import recruiter_api
from hits.models import (
    Assignment,
    Batch,
    Connection,
    Payment,
    RecruiterCall,
    Recruitment,
)
from hits.participations import store_participations
from hits.payments import note_refused_payments
from hits.recruiter_accounts import store_recruiters
from hits.recruiter_api import annotation_prefix
from hits.recruiting_records import RefusedBonus, Standing, StudyRecord
from hits.submissions import delete_withdrawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

State = Recruitment.State
# Calls without which the recruiter approves a submission by time.
PAID_BY_TIME = ("doubt", "reject", "approve")
# A participation at a recruiter takes less than a day, with ten minutes of grace, and who stops it
# at its end may have submitted a first page at its beginning: a day more is for what is not heard.
TAKEN_BACK_WITHIN = timedelta(days=2)
# By then it is known whether a decision or a bonus waits for the recruiter.
HEARD_WITHIN = timedelta(days=1)


def follow_batch(batch: Batch) -> None:
    """Store how the studies of a batch stand."""
    prefix = annotation_prefix(batch)
    store_standing(batch.connection, recruiter_api.fetch_standing(batch.connection, prefix=prefix))


@transaction.atomic
def store_standing(connection: Connection, standing: Standing) -> None:
    """Store what a marketplace says of a team's recruiting."""
    store_recruiters(connection, standing.recruiters)
    mine = Recruitment.objects.select_for_update(of=("self",))
    mine = mine.filter(batch__connection=connection)
    by_key = {recruitment.key: recruitment for recruitment in mine}
    for one in standing.studies:
        if (recruitment := by_key.get(one.key)) is not None:
            _store_study(recruitment, one, standing.refused_bonuses)
            _store_calls(recruitment, standing)
            asked_at = standing.asked_at or timezone.now()
            refused = standing.refused_bonuses
            note_refused_payments(recruitment.batch, refused, asked_at=asked_at)
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


def _store_study(
    recruitment: Recruitment, one: StudyRecord, bonuses: Iterable[RefusedBonus]
) -> None:
    recruitment.public_id = one.public_id
    recruitment.state = _state_of(one)
    recruitment.is_under_way = bool(one.action)
    recruitment.problem = one.problem
    recruitment.places = one.places
    recruitment.quoted_places, recruitment.quoted_cost = one.quoted_places, one.quoted_cost
    recruitment.quoted_bonus = one.quoted_bonus
    recruitment.quoted_bonus_cost = one.quoted_bonus_cost
    recruitment.sessions, recruitment.outcomes = dict(one.sessions), dict(one.outcomes)
    recruitment.unsent, recruitment.n_entered = dict(one.unsent), one.n_entered
    recruitment.charges = {kind: f"{amount:f}" for kind, amount in one.charges.items()}
    recruitment.free, recruitment.needed = one.free, one.needed
    recruitment.reward_there = one.reward_there
    recruitment.screen_out_reward_there = one.screen_out_reward_there
    # Of whomever they are for: a participant's other study of the batch may be the one that pays.
    mine = (bonus for bonus in bonuses if bonus.request_token.startswith(f"{recruitment.key}:"))
    # Of whom was erased since nothing is told any more; what was refused stays so.
    recruitment.refused_bonuses |= {bonus.request_token: bonus.problem for bonus in mine}
    recruitment.n_waiting, recruitment.fetched_at = one.n_waiting, timezone.now()
    recruitment.save()


def _state_of(one: StudyRecord) -> str:
    if one.state == State.DRAFT and not one.is_posted:
        return State.REQUESTED if one.action else State.REFUSED
    if one.state == State.STOPPED and not one.is_posted:
        return State.DISCARDED
    return one.state if one.state in State.values else State.STOPPED


def _store_calls(recruitment: Recruitment, standing: Standing) -> None:
    """What somebody must look after; of a call that is listed already the row stays, which a page
    names that is open somewhere."""
    mine = [one for one in standing.calls if one.study == recruitment.public_id]
    listed = {one.number: one for one in mine}.values()
    calls = RecruiterCall.objects.filter(recruitment=recruitment)
    calls.exclude(number__in=[one.number for one in listed]).delete()
    RecruiterCall.objects.bulk_create(
        [
            RecruiterCall(
                recruitment=recruitment,
                number=one.number,
                kind=one.kind,
                is_uncertain=one.is_uncertain,
                amount=one.amount,
                currency=one.currency,
                worker_id=one.worker_id,
                request_token=one.request_token,
                submission_id=one.submission_id,
                problem=one.problem,
                shows_by=one.shows_by,
            )
            for one in listed
        ],
        update_conflicts=True,
        unique_fields=["recruitment", "number"],
        update_fields=[
            "kind",
            "is_uncertain",
            "amount",
            "currency",
            "request_token",
            "problem",
            "submission_id",
            "shows_by",
        ],
    )
