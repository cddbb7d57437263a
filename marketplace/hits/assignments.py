from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.documents.answer_schemas import SCHEMA_TYPE, answer_errors
from marketplace.documents.answers import render_answers
from marketplace.documents.questions import is_form, parse_question
from marketplace.exceptions import (
    AlreadyWorkedOn,
    AssignmentClosed,
    AssignmentDoesNotExist,
    HitDoesNotExist,
    HitTypeDoesNotExist,
    NoAssignmentsLeft,
    WorkRefused,
    first_or_raise,
    require,
)
from marketplace.hits import lifecycle
from marketplace.hits.policies import review_assignment
from marketplace.hits.settlement import count_assignments
from marketplace.identifiers import is_entity_id
from marketplace.models import (
    Assignment,
    AssignmentDraft,
    Hit,
    HitType,
    PaidBy,
    SurplusAnswer,
    WorkerAccount,
)
from marketplace.money import ledger
from marketplace.notifications.events import announce
from marketplace.qualifications.eligibility import require_acceptance, require_preview

PREVIEW_ID = "ASSIGNMENT_ID_NOT_AVAILABLE"
RESERVED_FIELDS = {"assignmentId", "hitId", "workerId", "turkSubmitTo"}
Status = Assignment.Status


@transaction.atomic
def accept_hit(*, worker: WorkerAccount, hit: Hit) -> Assignment:
    # Assignments are counted under the HIT's lock, so the last one goes to exactly one worker.
    return create_assignment(Hit.objects.locked().get(pk=hit.pk), worker, is_qualified=False)


def accept_next(*, worker: WorkerAccount, hit_type: HitType) -> Assignment:
    """Accept an assignment of the group's oldest HIT that this worker can still do. Locked HITs
    are waited for only if there are no others."""
    require_acceptance(worker, hit_type)
    if (assignment := _accept_oldest_unlocked(worker, hit_type)) is not None:
        return assignment
    last_seen = 0
    while hit := find_next(worker=worker, hit_type=hit_type, after=last_seen):
        last_seen = hit.pk
        try:
            return accept_hit(worker=worker, hit=hit)
        except WorkRefused:
            continue  # another worker was quicker: on to the next
    raise NoAssignmentsLeft(_("No HITs of this group are left for you."))


def find_next(*, worker: WorkerAccount, hit_type: HitType, after: int = 0) -> Hit | None:
    """The group's oldest HIT that this worker could accept. Expired assignments are settled only
    if there seems to be none."""
    now = clock.now()
    group = Hit.objects.in_group(hit_type).filter(pk__gt=after)
    hit = group.workable_by(worker, now).order_by("pk").first()
    if hit is None and lifecycle.settle_due(group, now=now):
        hit = group.workable_by(worker, now).order_by("pk").first()
    return hit


@transaction.atomic
def return_assignment(*, assignment: Assignment) -> None:
    now = clock.now()
    assignment, hit = lock_assignment(assignment.public_id, now=now)
    require_accepted(assignment)
    _give_up(assignment, hit, Status.RETURNED, now=now)


def _give_up(assignment: Assignment, hit: Hit, status: Status, *, now: datetime) -> None:
    assignment.save_values(status=status, closed_at=now)
    if status == Status.RETURNED:
        AssignmentDraft.objects.filter(assignment=assignment).delete()
    announce(f"Assignment{status.value}", hit=hit, assignment=assignment, at=now)
    lifecycle.refresh(hit, now=now)


def submit_assignment(*, public_id: str, fields: Sequence[tuple[str, list[str]]]) -> Assignment:
    """Hand in the answers; repeating it changes nothing. Expired assignments stay settled even if
    the answers come too late."""
    require(
        public_id != PREVIEW_ID,
        WorkRefused(
            _("This was a preview. Accept the HIT first, then submit your work."),
            code="preview_only",
            status=403,
        ),
    )
    return submit_answer(
        public_id=public_id,
        answer=answer_document(fields),
        is_checked=False,
        problems=_problems_of(public_id, fields),
    )


def answer_document(fields: Sequence[tuple[str, list[str]]]) -> str | None:
    answers = [field for field in fields if field[0] not in RESERVED_FIELDS]
    return render_answers(answers) if answers else None


def _problems_of(public_id: str, fields: Sequence[tuple[str, list[str]]]) -> list[str]:
    rows = Hit.objects.filter(assignments__public_id=public_id, assignments__status=Status.ACCEPTED)
    xml = rows.values_list("question", flat=True).first() if is_entity_id(public_id) else None
    if xml is None or SCHEMA_TYPE not in xml:
        return []
    return answer_errors(parse_question(xml, allow_http=True).content, fields)


def submit_answer(
    *, public_id: str, answer: str | None, is_checked: bool, problems: Sequence[str] = ()
) -> Assignment:
    """Hand in a QuestionFormAnswers document, or None for a form without an answer. If
    `is_checked`, a QuestionForm's answer was checked before."""
    now = clock.now()
    with transaction.atomic():
        assignment, hit = lock_assignment(public_id, now=now)
        require(
            is_checked or not is_form(hit.question),
            WorkRefused(
                _("This HIT is answered on the marketplace's own page."),
                code="form_not_checked",
                status=400,
            ),
        )
        if assignment.status == Status.ACCEPTED and answer is not None:
            require(
                not problems,
                WorkRefused(
                    _(
                        "Your answer was not taken, since the page's own rules forbid it: "
                        "%(problems)s."
                    )
                    % {"problems": "; ".join(problems)},
                    code="answer_refused",
                    status=422,
                ),
            )
            hand_in_locked(assignment, hit, answer, now=now)
    if assignment.status in Assignment.GIVEN_UP_STATUSES:
        require_accepted(assignment)
    require(
        assignment.status != Status.ACCEPTED,
        WorkRefused(
            _("The form came in without a single answer. Nothing was submitted."),
            code="nothing_answered",
            status=400,
        ),
    )
    return assignment


def find_assignment_of(worker: WorkerAccount, public_id: str) -> Assignment:
    mine = Assignment.objects.by(worker).filter(public_id=public_id)
    mine = mine.select_related("hit__hit_type__requester")
    assignment = first_or_raise(mine, AssignmentDoesNotExist(public_id))
    if lifecycle.is_due(assignment.hit, now=clock.now()):
        lifecycle.settle_due(Hit.objects.filter(pk=assignment.hit_id), now=clock.now())
        assignment = mine.get()
    assignment.worker = worker
    return assignment


def find_hit_for(worker: WorkerAccount, public_id: str) -> tuple[Hit, Assignment | None]:
    """The HIT and the worker's open assignment of it. Without one, the worker must be able to
    accept one now."""
    require(is_entity_id(public_id), HitDoesNotExist(public_id))
    now = clock.now()
    rows = Hit.objects.filter(public_id=public_id)
    lifecycle.settle_due(rows, now=now)
    hit = first_or_raise(
        rows.listed().select_related("hit_type__requester"), HitDoesNotExist(public_id)
    )
    assignment = Assignment.objects.on(hit).by(worker).filter(status=Status.ACCEPTED).first()
    if assignment is None:
        own_statuses = Assignment.objects.on(hit).live().by(worker).values_list("status", flat=True)
        _check_acceptable(hit, own_statuses.first(), now=now)
        require_preview(worker, hit.hit_type)
    return hit, assignment


def find_group(public_id: str) -> HitType:
    require(is_entity_id(public_id), HitTypeDoesNotExist(public_id))
    return first_or_raise(
        HitType.objects.filter(Q(public_id=public_id) | Q(group_id=public_id)).select_related(
            "requester", "notification_setting"
        ),
        HitTypeDoesNotExist(public_id),
    )


@transaction.atomic
def _accept_oldest_unlocked(worker: WorkerAccount, hit_type: HitType) -> Assignment | None:
    workable = Hit.objects.in_group(hit_type).workable_by(worker, clock.now())
    hit = workable.not_locked_by_others().order_by("pk").first()
    if hit is None:
        return None
    hit.hit_type = hit_type
    try:
        return create_assignment(hit, worker, is_qualified=True)
    except WorkRefused:
        return None  # the same worker was quicker, in another window


def create_assignment(
    hit: Hit, worker: WorkerAccount, *, is_qualified: bool, deadline: datetime | None = None
) -> Assignment:
    now = clock.now()
    lifecycle.apply_time(hit, now=now)
    tally = count_assignments(hit, worker=worker)
    _check_acceptable(hit, tally.own_status, now=now)
    if not is_qualified:
        require_acceptance(worker, hit.hit_type)
    duration = timedelta(seconds=hit.hit_type.assignment_duration_seconds)
    is_paid_here = worker.paid_by == PaidBy.LEDGER
    assignment = Assignment.objects.create(
        hit=hit,
        worker=worker,
        slot=_lowest_free_slot(hit),
        reward_usd=hit.hit_type.reward_usd if is_paid_here else ledger.NOTHING,
        fee_usd=hit.fee_usd if is_paid_here else ledger.NOTHING,
        paid_by=worker.paid_by,
        accepted_at=now,
        deadline=deadline or now + duration,
    )
    announce("AssignmentAccepted", hit=hit, assignment=assignment, at=now)
    tally.add_accepted(assignment)
    # What was held for a free assignment is now held for this one.
    lifecycle.refresh(hit, now=now, tally=tally, is_hold_right=True)
    return assignment


def _lowest_free_slot(hit: Hit) -> int:
    # A page may give each slot its own order of items: whoever replaces a worker who returned a HIT
    # gets that order. The HIT is locked.
    held = set(Assignment.objects.on(hit).holding_slots().values_list("slot", flat=True))
    return next(slot for slot in count() if slot not in held)


def hand_in_locked(assignment: Assignment, hit: Hit, answer: str, *, now: datetime) -> None:
    delay = timedelta(seconds=hit.hit_type.auto_approval_delay_seconds)
    assignment.status = Status.SUBMITTED
    assignment.answer = answer
    # A machine's clock may have been put back meanwhile; nobody works for less than no time.
    assignment.submitted_at = assignment.closed_at = max(now, assignment.accepted_at)
    assignment.auto_approval_at = assignment.submitted_at + delay
    assignment.save(
        update_fields=["status", "answer", "submitted_at", "closed_at", "auto_approval_at"]
    )
    AssignmentDraft.objects.filter(assignment=assignment).delete()
    announce("AssignmentSubmitted", hit=hit, assignment=assignment, at=now)
    review_assignment(assignment, hit, now=now)
    # An assignment that became dearer meanwhile was held at its new price, in case it was returned.
    lifecycle.refresh(
        hit,
        now=now,
        is_hold_right=assignment.price_usd >= hit.price_usd and not hit.review_policies.all(),
    )
    lifecycle.apply_time(hit, now=now)  # a delay of 0 approves at once


def lock_assignment(public_id: str, *, now: datetime) -> tuple[Assignment, Hit]:
    require(is_entity_id(public_id), AssignmentDoesNotExist(public_id))
    hit = first_or_raise(
        Hit.objects.filter(assignments__public_id=public_id).locked(),
        AssignmentDoesNotExist(public_id),
    )
    lifecycle.apply_time(hit, now=now)
    assignment = Assignment.objects.get(public_id=public_id)
    assignment.hit = hit
    return assignment, hit


def _check_acceptable(hit: Hit, own_status: str | None, *, now: datetime) -> None:
    require(
        own_status != Status.ACCEPTED,
        AlreadyWorkedOn(_("You are working on this HIT already."), code="in_progress"),
    )
    require(
        own_status is None,
        AlreadyWorkedOn(_("You have done this HIT already."), code="done_already"),
    )
    require(
        hit.expiration > now,
        WorkRefused(_("This HIT has expired."), code="hit_expired", status=410),
    )
    require(
        hit.status == Hit.Status.ASSIGNABLE,
        NoAssignmentsLeft(_("All assignments of this HIT are taken.")),
    )


def require_accepted(assignment: Assignment) -> None:
    """Raise WorkRefused, with the reason for the worker, unless it is accepted and open."""
    require(
        assignment.status != Status.RETURNED,
        AssignmentClosed(
            _("You returned this assignment, so it can't be worked on any more."), code="returned"
        ),
    )
    require(
        assignment.status != Status.ABANDONED,
        AssignmentClosed(
            _("The time allotted for this assignment is over, and it was given back."),
            code="time_over",
        ),
    )
    require(
        assignment.status == Status.ACCEPTED,
        WorkRefused(_("This assignment has been submitted already."), code="assignment_not_held"),
    )


# What becomes of a participant's assignment when the participation ends before its work, or the
# work comes after the participation.


@transaction.atomic
def give_up(*, public_id: str, status: str) -> None:
    now = clock.now()
    assignment, hit = lock_assignment(public_id, now=now)
    if assignment.status == Status.ACCEPTED:
        _give_up(assignment, hit, Status(status), now=now)


@transaction.atomic
def withdraw(*, public_id: str, is_decided_too: bool = False) -> None:
    """Delete submitted work at its author's wish, and free the HIT. With `is_decided_too` also
    decided work that a recruiter was to pay: no money has moved for it here."""
    now = clock.now()
    assignment, hit = lock_assignment(public_id, now=now)
    takes_decided = is_decided_too and assignment.paid_by == PaidBy.RECRUITER
    statuses = Assignment.HANDED_IN_STATUSES if takes_decided else (Status.SUBMITTED,)
    if assignment.status not in statuses:
        return
    assignment.status = Status.RETURNED
    assignment.answer = ""
    assignment.submitted_at = assignment.auto_approval_at = None
    assignment.approved_at = assignment.rejected_at = None
    assignment.closed_at = assignment.withdrawn_at = now
    assignment.save()
    announce("AssignmentReturned", hit=hit, assignment=assignment, at=now)
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def take_late_answer(*, public_id: str, answer: str | None) -> Assignment | None:
    if answer is None or not is_entity_id(public_id):
        return None
    now = clock.now()
    assignment, hit = lock_assignment(public_id, now=now)
    if assignment.status != Status.ABANDONED or assignment.paid_by != PaidBy.RECRUITER:
        return None
    tally = count_assignments(hit, worker=assignment.worker)
    has_room = tally.taken < hit.max_assignments and hit.status != Hit.Status.DISPOSED
    if has_room and tally.own_status is None:
        hand_in_locked(assignment, hit, answer, now=now)
    else:
        SurplusAnswer.objects.get_or_create(
            assignment=assignment, defaults={"answer": answer, "received_at": now}
        )
    return assignment


# Who pays for a HIT type: the requester's balance here, until it is handed to a recruiter.


@transaction.atomic
def let_recruiter_pay(hit_type: HitType) -> None:
    """From now on a recruiter pays for this HIT type; irreversible. Holds are released, except for
    assignments that workers of the marketplace have accepted."""
    # Before the type: whoever creates HITs holds it.
    list(Hit.objects.in_group(hit_type).order_by("pk").locked().values_list("pk", flat=True))
    HitType.objects.filter(pk=hit_type.pk).update(paid_by=PaidBy.RECRUITER)
    hit_type.paid_by = PaidBy.RECRUITER
    now = clock.now()
    for hit in Hit.objects.in_group(hit_type).order_by("pk").locked():
        hit.hit_type = hit_type
        lifecycle.apply_time(hit, now=now)
        lifecycle.refresh(hit, now=now)
