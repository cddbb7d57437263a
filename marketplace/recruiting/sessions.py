"""A participation from arrival to its end: items are reserved, an outcome is decided once.

Locks: HITs are never waited for while a session is held that others wait for: a session that
gives its HITs back holds its own row, which nobody holds who has a HIT.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import AssignmentClosed, NotQualified, ParticipantUnknown, require
from marketplace.hits import lifecycle
from marketplace.hits.assignments import (
    answer_document,
    give_up,
    submit_answer,
    submit_assignment,
    take_late_answer,
    withdraw,
)
from marketplace.models import (
    Assignment,
    AssignmentDraft,
    Intent,
    Invitation,
    Outcome,
    PaidBy,
    RecruitedStudy,
    Session,
    SessionDemographics,
    SessionItem,
    SurplusAnswer,
    WorkerAccount,
)
from marketplace.qualifications.eligibility import require_acceptance
from marketplace.recruiting.intents import DECIDED, DECISIONS
from marketplace.recruiting.places import Contended, hits_of, reserve_items
from marketplace.recruiting.studies import code_of
from marketplace.users import User

# Beyond the study's own time, so that the last page is not lost to a slow network. Participants
# are shown the study's own: their recruiter gives their place away after it.
GRACE = timedelta(minutes=10)
State = Session.State


def start_session(
    *,
    study: RecruitedStudy,
    worker: WorkerAccount,
    submission_id: str,
    encrypted_participant_id: str = "",
    external_study_id: str = "",
    is_compatible: bool = True,
) -> Session:
    """The submission's session, with its items or with the outcome that there are none; the same
    at each visit. `is_compatible`: the study accepts the participant's device."""
    facts = {
        "study": study,
        "worker": worker,
        "submission_id": submission_id,
        "encrypted_participant_id": encrypted_participant_id,
        "external_study_id": external_study_id,
    }
    has_settled = waits = False
    while True:
        if (known := _find(study, submission_id)) is not None:
            require(
                known.worker_id == worker.pk and known.study_id == study.pk,
                ParticipantUnknown("This submission is another participant's."),
            )
            return known
        try:
            with transaction.atomic():
                session = _create(**facts)
                if not is_compatible:
                    _decide(session, Outcome.INCOMPATIBLE_DEVICE)
                    return session
                if _give_items(session, waits=waits, is_last_try=has_settled):
                    return session
        except Contended:
            waits = True
            continue
        except _Settleable:
            # Time may have freed a HIT that is not written down yet.
            lifecycle.settle_due(hits_of(study), now=clock.now())
            has_settled = True
        except IntegrityError:
            if _find(study, submission_id) is None:
                raise


class _Settleable(Exception):
    """Too few items, before expired assignments were settled."""


def latest_session(worker: WorkerAccount) -> Session | None:
    rows = Session.objects.filter(worker=worker).select_related("study__hit_type__requester")
    return rows.order_by("-pk").first()


def next_assignment(session: Session) -> Assignment | None:
    return (
        Assignment.objects.filter(
            session_item__session=session,
            status=Assignment.Status.ACCEPTED,
            deadline__gt=clock.now(),
        )
        .order_by("session_item__position")
        .first()
    )


def due_at(session: Session) -> datetime:
    return session.expires_at - GRACE


def due_at_of(assignment: Assignment) -> datetime | None:
    item = SessionItem.objects.filter(assignment=assignment).select_related("session").first()
    return due_at(item.session) if item else None


def place_of(assignment: Assignment) -> tuple[int, int] | None:
    item = SessionItem.objects.filter(assignment=assignment).first()
    if item is None:
        return None
    return item.position, SessionItem.objects.filter(session=item.session_id).count()


def hand_in(*, public_id: str, fields: Sequence[tuple[str, list[str]]]) -> Assignment:
    """Hand in the answers, and complete the session if they were the last. A participant's late
    work is accepted, too."""
    submit = partial(submit_assignment, public_id=public_id, fields=fields)
    return _hand_in(submit, public_id, answer_document(fields))


def hand_in_form(*, public_id: str, answer: str) -> Assignment:
    submit = partial(submit_answer, public_id=public_id, answer=answer, is_checked=True)
    return _hand_in(submit, public_id, answer)


def _hand_in(submit: Callable[[], Assignment], public_id: str, answer: str | None) -> Assignment:
    try:
        submitted = submit()
    except AssignmentClosed:
        late = take_late_answer(public_id=public_id, answer=answer)
        if late is None:
            raise
        submitted = late
    item = SessionItem.objects.filter(assignment=submitted).first()
    if item is not None:
        complete_if_done(item.session_id)
    return submitted


@transaction.atomic
def complete_if_done(session_id: int) -> bool:
    session = _locked(session_id)
    if session.outcome or session.state not in (State.STARTED, State.TIMED_OUT):
        return False
    statuses = Q(assignment__status__in=Assignment.HANDED_IN_STATUSES)
    items = SessionItem.objects.filter(session=session)
    done = items.filter(statuses | Q(assignment__surplus_answer__isnull=False))
    if not items.exists() or done.count() < items.count():
        return False
    _decide(session, Outcome.COMPLETED)
    return True


@transaction.atomic
def end_session(*, session: Session, outcome: str) -> Session:
    """End a session without completing it, and free what was not handed in; withdrawn consent
    frees all of it. An earlier outcome stays."""
    require(
        outcome != Outcome.COMPLETED,
        ValueError("outcome must not be completed: that follows from the items"),
    )
    locked = _locked(session.pk)
    if not locked.outcome and locked.state == State.STARTED:
        _decide(locked, outcome)
        free_items(locked, Assignment.Status.RETURNED)
        if outcome == Outcome.NO_CONSENT:
            _withdraw(locked, is_decided_too=True)
            SessionDemographics.objects.filter(session=locked).delete()
    return locked


def can_be_left(session: Session) -> bool:
    """Whether the participant can stop. Not after the recruiter decided on all of it: that is
    paid, or not, and nothing of it is deleted."""
    is_at_work = session.state == State.STARTED and not session.outcome
    return is_at_work and next_assignment(session) is not None


def n_withdrawn_by_stopping(session: Session) -> int:
    """How many answers are deleted if the participant stops. Of a worker paid here, decided ones
    stay: their money has moved."""
    mine = Assignment.objects.filter(session_item__session=session).handed_in()
    return mine.filter(Q(status=Assignment.Status.SUBMITTED) | Q(paid_by=PaidBy.RECRUITER)).count()


@transaction.atomic
def return_session(*, session: Session) -> Session:
    """The participant returned the place, even after finishing. The study says whether answers are
    kept; decided ones stay."""
    locked = _locked(session.pk)
    if locked.state in (State.STARTED, State.FINISHED, State.TIMED_OUT):
        _give_back(locked)
    return locked


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, user: User | None = None) -> None:
    """Close one person's link. Submitted work stays; reserved HITs are free again."""
    study = invitation.study
    if Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=clock.now()):
        who, detail = study.requester, {"invitation": invitation.pk}
        note("study.revoke", subject=study.name, user=user, requester=who, detail=detail)
    # Repeated for a person who came in at the moment of the first call.
    for session in Session.objects.filter(
        study=study, worker__invitations=invitation, state=State.STARTED
    ):
        return_session(session=session)


@transaction.atomic
def time_out_session(*, session: Session) -> Session:
    locked = _locked(session.pk)
    # Of who was to give the place back, too: it is free by that.
    is_lapsed = locked.state == State.FINISHED and locked.outcome != Outcome.COMPLETED
    if locked.state == State.STARTED or is_lapsed:
        free_items(locked, Assignment.Status.ABANDONED)
        _set_state(locked, State.TIMED_OUT)
    return locked


@transaction.atomic
def screen_out_session(*, session: Session) -> Session:
    """The recruiter paid the participant as screened out; reserved items are free again."""
    locked = _locked(session.pk)
    free_items(locked, Assignment.Status.RETURNED)
    _set_state(locked, State.SCREENED_OUT)
    return locked


@transaction.atomic
def leave_session(*, session: Session, state: str) -> None:
    """The place was returned or timed out at the recruiter after a decision on part of it here:
    that part stays."""
    locked = _locked(session.pk)
    if state == State.RETURNED:
        _give_back(locked)
    else:
        free_items(locked, Assignment.Status.ABANDONED)
        _set_state(locked, state)


def _give_back(locked: Session) -> None:
    free_items(locked, Assignment.Status.RETURNED)
    if locked.study.discards_returned:
        _withdraw(locked)
    SessionDemographics.objects.filter(session=locked).delete()
    _set_state(locked, State.RETURNED)


def settle_sessions(now: datetime) -> int:
    n = 0
    done = Session.objects.filter(state=State.STARTED).filter(
        ~Exists(
            SessionItem.objects.filter(
                session=OuterRef("pk"), assignment__status=Assignment.Status.ACCEPTED
            )
        )
    )
    for key in list(done.values_list("pk", flat=True)):
        n += complete_if_done(key)
    for session in list(Session.objects.overdue(now)):
        n += time_out_session(session=session).state == State.TIMED_OUT
    return n


def _find(study: RecruitedStudy, submission_id: str) -> Session | None:
    rows = Session.objects.filter(connection=study.connection, submission_id=submission_id)
    return rows.select_related("study__hit_type__requester", "worker").first()


def _create(**facts: Any) -> Session:
    now, study = clock.now(), facts["study"]
    return Session.objects.create(
        connection=study.connection,
        arrived_at=now,
        expires_at=now + timedelta(seconds=study.maximum_seconds) + GRACE,
        **facts,
    )


def _give_items(session: Session, *, waits: bool, is_last_try: bool) -> bool:
    try:
        require_acceptance(session.worker, session.study.hit_type)
    except NotQualified:
        _decide(session, Outcome.SCREENED_OUT)
        return True
    if not reserve_items(session, now=clock.now(), waits=waits, takes_fewer=is_last_try):
        if not is_last_try:
            raise _Settleable
        _decide(session, Outcome.NO_MORE_ITEMS)
    return True


def _decide(session: Session, outcome: str) -> None:
    session.outcome, session.code = outcome, code_of(session.study, outcome)
    if session.state == State.STARTED:
        session.state = _decided_state(session) if outcome == Outcome.COMPLETED else State.FINISHED
    session.ended_at = clock.now()
    session.save(update_fields=["outcome", "code", "state", "ended_at"])


def _decided_state(session: Session) -> str:
    # A decision on its first HITs holds for the whole session.
    decisions = Intent.objects.filter(session=session, kind__in=DECISIONS).order_by("-pk")
    last = decisions.exclude(state=Intent.State.REFUSED).first()
    return DECIDED[Intent.Kind(last.kind)] if last else State.FINISHED


def _set_state(session: Session, state: str) -> None:
    session.save_values(state=state, ended_at=session.ended_at or clock.now())


def free_items(session: Session, status: str) -> None:
    for assignment in _assignments(session, Assignment.Status.ACCEPTED):
        give_up(public_id=assignment.public_id, status=status)


def _withdraw(session: Session, *, is_decided_too: bool = False) -> None:
    # The HIT says, once it is held, what of it can be taken back.
    statuses = Assignment.HANDED_IN_STATUSES if is_decided_too else (Assignment.Status.SUBMITTED,)
    for assignment in _assignments(session, *statuses):
        withdraw(public_id=assignment.public_id, is_decided_too=is_decided_too)
    if is_decided_too:
        # Of what is deleted nobody is told a decision that nobody has been told yet.
        Intent.objects.filter(
            session=session, kind__in=DECISIONS, state=Intent.State.WRITTEN
        ).delete()
    # Work that came late, or was begun and ran out of time.
    SurplusAnswer.objects.filter(assignment__session_item__session=session).delete()
    AssignmentDraft.objects.filter(assignment__session_item__session=session).delete()


def _assignments(session: Session, *statuses: str) -> list[Assignment]:
    return list(
        Assignment.objects.filter(session_item__session=session, status__in=statuses).order_by(
            "hit_id"
        )
    )


def _locked(session_id: int) -> Session:
    return Session.objects.locked().select_related("study__hit_type").get(pk=session_id)
