from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from marketplace import clock
from marketplace.exceptions import InvalidParameter, MarketplaceError, require
from marketplace.hits import review
from marketplace.models import (
    Assignment,
    Intent,
    Outcome,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    Session,
)
from marketplace.people.erasure import erased_among, note_paid_since, note_places_since
from marketplace.recruiting.connections import Patience, keep_turn
from marketplace.recruiting.intents import last_decision
from marketplace.recruiting.participants import account_of, encrypted
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.records import (
    UNREADABLE_SUBMISSION,
    NotFound,
    RejectionCategory,
    Submission,
    SubmissionState,
)
from marketplace.recruiting.sessions import (
    free_items,
    return_session,
    screen_out_session,
    time_out_session,
)

# Submissions that wait at their recruiter to be paid though their work is not here: a code that was
# passed on, work that was left in the middle, a place that was not given back, work that came when
# others had done all of it.
#
# Nothing approves them from here, but time does so there. So each is put before a person, once,
# among the calls that somebody must look after: it is rejected there, or left as it is. An approval
# of what there is of the work, as of its first HIT, waits for that: the recruiter pays all of it or
# nothing.

Kind, State = Intent.Kind, Intent.State
# Whether nobody else can have the place; of who ran out of time it may come back by a late code.
HOLD_PLACES = {
    SubmissionState.AWAITING_REVIEW: True,
    SubmissionState.APPROVED: True,
    SubmissionState.RETURNED: False,
    SubmissionState.REJECTED: False,
    SubmissionState.SCREENED_OUT: False,
}
# Prolific approves what nobody has reviewed by then.
APPROVED_AFTER = timedelta(days=21)
# Whoever was asked to return the place has so long before it is put before anybody.
RETURNED_WITHIN = timedelta(days=1)
REASON = (
    "The work of this study was not submitted, or not all of it, and the study was handed in at "
    "the recruiter all the same. Please write to us if you think that this is a mistake."
)
REASON_OF_LATE = (
    "The work of this study was submitted after the time allowed for it, when others had done all "
    "of it in its place. Please write to us if you think that this is a mistake."
)

# What a person reads of a submission in doubt.
NOT_OPENED = gettext_lazy("Nobody has opened the study here for it.")
DONE_BY_OTHERS = gettext_lazy(
    "All of the work was submitted here after its time, when others had done each page in its "
    "place: it counts for nothing."
)
APPROVAL_WAITS = gettext_lazy(
    "What was approved of it waits: left as it is, all of it is approved there."
)
PASSED_ON = gettext_lazy(
    "It entered the code of who may not take part, and {recruiter} paid it as one, though nobody "
    "was told so here. One code stands for all of them: it may have been passed on."
)


def follow_doubts(
    study: RecruitedStudy, submissions: Sequence[Submission], *, is_whole: bool
) -> int:
    """List submissions that wait at the recruiter without their work, and drop those that no
    longer do; return how many are new. If the list is not whole, only those in it are dropped."""
    codes = {code: Outcome(outcome) for outcome, code in study.codes.values_list("outcome", "code")}
    known = {one.submission_id: one for one in Session.objects.filter(study=study)}
    approved = _approved_here(study)
    waiting = {one.id: one for one in submissions if _is_waiting(one, approved)}
    # Of who had all erased nobody is asked: time approves it there.
    for key in erased_among(study.connection, waiting.keys() - known.keys()):
        del waiting[key]
    unused = set(_done_by_others().filter(study=study).values_list("pk", flat=True))
    doubtful = {
        key: one for key, one in waiting.items() if _is_doubtful(known.get(key), one, codes, unused)
    }
    over = Intent.objects.filter(
        session__study=study, kind=Kind.DOUBT, state=State.UNCERTAIN
    ).exclude(session__submission_id__in=doubtful)
    if not is_whole:
        over = over.filter(session__submission_id__in=[one.id for one in submissions])
    over.delete()
    unknown = (one for one in submissions if one.id not in known and one.state in HOLD_PLACES)
    note_places_since(study, {one.id: HOLD_PLACES[one.state] for one in unknown})
    _note_paid(study, submissions, known)
    n_new = _note_screened_out(study, submissions, known)
    for key, submission in doubtful.items():
        n_new += _note(
            known.get(key) or _absent(study, submission), submission, codes.get(submission.code)
        )
    return n_new


def _note_paid(
    study: RecruitedStudy, submissions: Iterable[Submission], known: Mapping[str, Session]
) -> None:
    """Keep participants who were paid there but are unknown or erased here: they are charged."""
    paid = {one.id: one for one in submissions if one.state == SubmissionState.APPROVED}
    unknown = paid.keys() - known.keys()
    note_paid_since(study, dict.fromkeys(unknown, RecruiterCharge.Kind.REWARD))
    for key in unknown - erased_among(study.connection, unknown):
        _absent(study, paid[key], Session.State.APPROVED)


def _note_screened_out(
    study: RecruitedStudy, submissions: Iterable[Submission], known: Mapping[str, Session]
) -> int:
    """List participants whom the recruiter paid as screened out and nobody screened out here: the
    code may have been passed on. Return how many are new."""
    paid = {one.id: one for one in submissions if one.state == SubmissionState.SCREENED_OUT}
    unknown = paid.keys() - known.keys()
    note_paid_since(study, dict.fromkeys(unknown, RecruiterCharge.Kind.SCREEN_OUT))
    erased = erased_among(study.connection, unknown)
    n_new = 0
    for key in paid.keys() - erased:
        session = known.get(key) or _absent(study, paid[key], Session.State.SCREENED_OUT)
        if session.outcome == Outcome.SCREENED_OUT:
            continue
        _row, is_new = Intent.objects.get_or_create(
            connection=session.connection,
            key=f"{Kind.DOUBT}:screened_out:{session.pk}",
            defaults={
                "session": session,
                "kind": Kind.DOUBT,
                "state": State.REFUSED,
                "problem": PASSED_ON.format(recruiter=session.connection.name),
                "created_at": clock.now(),
                "done_at": clock.now(),
            },
        )
        n_new += is_new
    return n_new


@transaction.atomic
def settle_doubt(*, doubt: Intent, is_left: bool) -> None:
    """Leave the submission as it is, or have it rejected, unless all of its work has come since."""
    # Whatever else is decided on it meanwhile waits, or was before.
    session = Session.objects.locked().get(pk=doubt.session_id)
    is_late = is_done_by_others(session)
    require(
        session.outcome != Outcome.COMPLETED or is_left or is_late,
        InvalidParameter(
            _("All of its work has come since this was listed: decide on it as on any other's."),
            code="work_has_come",
        ),
    )
    Intent.objects.filter(pk=doubt.pk).update(state=State.DONE, done_at=clock.now())
    if is_left or _is_decided(doubt.session):
        return
    doubt.session.intents.filter(kind=Kind.APPROVE, state__in=Intent.OPEN_STATES).update(
        state=State.REFUSED,
        done_at=clock.now(),
        problem=_("Rejected there, since the work is not all here."),
    )
    n_before = doubt.session.intents.filter(kind=Kind.REJECT).count()
    Intent.objects.create(
        connection=doubt.connection,
        session=doubt.session,
        kind=Kind.REJECT,
        key=f"{Kind.REJECT}:{doubt.session_id}:{n_before}",
        text=REASON_OF_LATE if is_late else REASON,
        basis=doubt.basis,
        created_at=clock.now(),
    )


def _is_doubtful(
    session: Session | None,
    submission: Submission,
    codes: Mapping[str, Outcome],
    unused: Collection[int],
) -> bool:
    if session is None:
        return True
    # First, since most that wait are complete, and nothing need be asked of them.
    if session.outcome == Outcome.COMPLETED and session.pk not in unused:
        return False
    if _is_decided(session):
        return False
    if session.outcome == Outcome.COMPLETED:
        return True
    is_asked_back = session.outcome and codes.get(submission.code) == session.outcome
    since = session.ended_at or session.arrived_at
    return not is_asked_back or since < clock.now() - RETURNED_WITHIN


def is_done_by_others(session: Session) -> bool:
    """Whether all of the work came so late that others had done each item: nothing here can be
    approved or rejected."""
    return _done_by_others().filter(pk=session.pk).exists()


def _done_by_others() -> QuerySet[Session]:
    items = Assignment.objects.filter(session_item__session=OuterRef("pk"))
    return Session.objects.filter(
        Exists(items), ~Exists(items.handed_in()), outcome=Outcome.COMPLETED
    )


def is_to_be_looked_at(session: Session) -> bool:
    if session.outcome == Outcome.COMPLETED:
        return False
    return not session.intents.filter(kind=Kind.DOUBT, state=State.DONE).exists()


def _is_decided(session: Session) -> bool:
    """Whether a decision reached the recruiter or a rejection is on its way. A decision refused
    there does not count."""
    last = last_decision(session)
    if last is None:
        return False
    is_rejected = last.kind == Kind.REJECT and last.state in Intent.OPEN_STATES
    return is_rejected or last.state == State.DONE


def _approved_here(study: RecruitedStudy) -> set[str]:
    return set(
        Intent.objects.filter(
            session__study=study, kind=Kind.APPROVE, state__in=Intent.OPEN_STATES
        ).values_list("session__submission_id", flat=True)
    )


def _is_waiting(submission: Submission, approved: set[str]) -> bool:
    if submission.state == SubmissionState.REJECTED:
        return submission.id in approved
    return submission.state == SubmissionState.AWAITING_REVIEW


def _absent(
    study: RecruitedStudy,
    submission: Submission,
    state: Session.State = Session.State.FINISHED,
) -> Session:
    now = clock.now()
    session, _is_new = Session.objects.get_or_create(
        connection=study.connection,
        submission_id=submission.id,
        defaults={
            "study": study,
            "worker": account_of(study, submission.participant or submission.id),
            "encrypted_participant_id": encrypted(submission.participant),
            "external_study_id": study.external_id,
            "state": state,
            "arrived_at": now,
            "expires_at": now,
            "ended_at": now,
        },
    )
    return session


def _note(session: Session, submission: Submission, reported: Outcome | None) -> bool:
    category = (
        RejectionCategory.BAD_CODE if reported == Outcome.COMPLETED else RejectionCategory.NO_DATA
    )
    if is_done_by_others(session):
        category = RejectionCategory.TOO_SLOWLY
    problem = _problem(session, submission, reported)
    row, is_new = Intent.objects.get_or_create(
        connection=session.connection,
        key=f"{Kind.DOUBT}:{session.pk}",
        defaults={
            "session": session,
            "kind": Kind.DOUBT,
            "state": State.UNCERTAIN,
            "basis": {"category": category.value},
            "problem": problem,
            "created_at": clock.now(),
        },
    )
    if row.state == State.UNCERTAIN and row.problem != problem:  # more has come, or was approved
        Intent.objects.filter(pk=row.pk, state=State.UNCERTAIN).update(problem=problem)
    return is_new


def _problem(session: Session, submission: Submission, reported: Outcome | None) -> str:
    items = Assignment.objects.filter(session_item__session=session)
    n_items, n_done = items.count(), items.handed_in().count()
    work = ngettext(
        "%(done)s of %(n)s page was submitted here.",
        "%(done)s of %(n)s pages were submitted here.",
        n_items,
    ) % {"done": n_done, "n": n_items}
    if not n_items:
        work = str(NOT_OPENED)
    elif is_done_by_others(session):
        work = str(DONE_BY_OTHERS)
    if session.intents.filter(kind=Kind.APPROVE, state__in=Intent.OPEN_STATES).exists():
        work = f"{work} {APPROVAL_WAITS}"
    day = (submission.completed_at or clock.now()) + APPROVED_AFTER
    return _(
        "The code entered there is that of: {outcome}. {work} Unless it is rejected or returned, "
        "{recruiter} approves and pays it on {day}."
    ).format(
        outcome=reported.label if reported else _("none of this study"),
        work=work,
        recruiter=session.connection.name,
        day=f"{day:%Y-%m-%d}",
    )


# Rows of a list after which the turn is kept: a recruiter's page, which may take half a minute.
PAGE = 100
SessionState, There = Session.State, SubmissionState
OPEN = (SessionState.STARTED, SessionState.FINISHED)
# Who was let go, or turned down, may still be approved there, for as long as people remember.
REVERSIBLE = (SessionState.TIMED_OUT, SessionState.RETURNED, SessionState.REJECTED)
REVERSIBLE_FOR = timedelta(days=30)
# What a rejection has in its basis that was not made there, since the time had run out there.
TIMED_OUT = "timed_out"
# A word that is not known here says nothing of whether it is decided.
UNDECIDED = (
    *(There.RESERVED, There.ACTIVE, There.PROCESSING, There.AWAITING_REVIEW),
    There.UNKNOWN,
)
SAME = {
    There.RETURNED: SessionState.RETURNED,
    There.TIMED_OUT: SessionState.TIMED_OUT,
    There.APPROVED: SessionState.APPROVED,
    There.REJECTED: SessionState.REJECTED,
    There.SCREENED_OUT: SessionState.SCREENED_OUT,
}
ENDINGS = {
    There.RETURNED: return_session,
    There.TIMED_OUT: time_out_session,
    There.SCREENED_OUT: screen_out_session,
}


def follow_submissions(connection: RecruiterConnection, recruiter: Prolific) -> int:
    changed, now = Counter[int](), clock.now()
    sessions = Session.objects.filter(_followed(now), connection=connection)
    studies = RecruitedStudy.objects.filter(connection=connection).exclude(external_id="")
    is_open = Q(state__in=[RecruitedStudy.State.ACTIVE, RecruitedStudy.State.PAUSED])
    is_open |= Q(state=RecruitedStudy.State.STOPPED) & ~Q(n_payable_there=0)
    with Patience() as patience:
        for study in studies.filter(Q(pk__in=sessions.values("study")) | is_open).order_by("pk"):
            here = {one.submission_id: one for one in sessions.filter(study=study)}
            follow = partial(_follow_those_of, study, here, recruiter, now, changed)
            patience.try_to(follow, key=f"submissions:{study.pk}")
    return changed.total()


def _follow_those_of(
    study: RecruitedStudy,
    here: Mapping[str, Session],
    recruiter: Prolific,
    now: datetime,
    changed: Counter[int],
) -> None:
    try:
        listed = list(_keeping_turn(recruiter.submissions(study.external_id)))
    except NotFound:
        return  # it was deleted there: its sessions end by their time
    there = [one for one in listed if one is not UNREADABLE_SUBMISSION]
    known = dict(Session.objects.filter(study=study).values_list("submission_id", "state"))
    # From a list that lacks somebody nothing follows of who is not in it.
    is_whole = len(there) == len(listed) and known.keys() <= {one.id for one in there}
    codes = {code: outcome for outcome, code in study.codes.values_list("outcome", "code")}
    paid_late = _paid_late(study, there, known, followed=here)
    for submission in there:
        session = here.get(submission.id) or paid_late.get(submission.id)
        if session is not None:
            _note_code(session, submission, codes)
        changed[study.pk] += session is not None and follow_submission(session, submission)
    follow_doubts(study, there, is_whole=is_whole)
    is_stopped = study.state == RecruitedStudy.State.STOPPED and not study.action
    payable = {one.id for one in there if _may_be_paid(one, now)} | _approved_here(study)
    _note_payable(study, len(payable) if is_stopped and is_whole else None)


def _paid_late(
    study: RecruitedStudy,
    there: Iterable[Submission],
    known: Mapping[str, str],
    *,
    followed: Collection[str],
) -> dict[str, Session]:
    """Sessions no longer followed that were approved all the same, as weeks after a late code."""
    approved = {one.id for one in there if one.state == There.APPROVED} - set(followed)
    keys = [key for key in approved if known.get(key) in REVERSIBLE]
    if not keys:
        return {}
    return {
        one.submission_id: one
        for one in Session.objects.filter(study=study, submission_id__in=keys)
    }


def _keeping_turn(submissions: Iterable[Submission]) -> Iterator[Submission]:
    for n, submission in enumerate(submissions):
        if n % PAGE == 0:
            keep_turn()
        yield submission


def _note_code(session: Session, submission: Submission, codes: Mapping[str, str]) -> None:
    reported = codes.get(submission.code, Session.OTHER) if submission.code else ""
    if reported != session.reported:
        Session.objects.filter(pk=session.pk).update(reported=reported)
        session.reported = reported


def _note_payable(study: RecruitedStudy, n_payable: int | None) -> None:
    # Only if nothing changed it meanwhile: more places or an approval reset it.
    if n_payable != study.n_payable_there:
        RecruitedStudy.objects.filter(pk=study.pk, n_payable_there=study.n_payable_there).update(
            n_payable_there=n_payable
        )


def _may_be_paid(there: Submission, now: datetime) -> bool:
    # A code may come late.
    if there.state == There.TIMED_OUT:
        return there.started_at is not None and there.started_at > now - REVERSIBLE_FOR
    return there.state in UNDECIDED


def is_followed(session: Session, now: datetime) -> bool:
    return Session.objects.filter(_followed(now), pk=session.pk).exists()


def _followed(now: datetime) -> Q:
    recent = Q(ended_at__gt=now - REVERSIBLE_FOR) | Q(ended_at=None)
    return Q(state__in=OPEN) | Q(state__in=REVERSIBLE) & recent


def follow_submission(session: Session, there: Submission) -> bool:
    before = session.state
    if SAME.get(there.state) == before:
        return False
    if there.state == There.AWAITING_REVIEW and before == SessionState.REJECTED:
        return _reject_after_all(session)
    if there.state not in SAME:
        return False
    if there.state in ENDINGS:
        session.state = ENDINGS[there.state](session=session).state
    else:
        session.state = take_over(session, SAME[there.state])
    return session.state != before


@transaction.atomic
def _reject_after_all(session: Session) -> bool:
    # The code came long after the time. The rejection from here could not be made then, and must be
    # sent before time approves it.
    # Whoever decides holds the session first, too.
    Session.objects.locked().get(pk=session.pk)
    last = last_decision(session)
    if last is None or last.kind != Intent.Kind.REJECT or TIMED_OUT not in last.basis:
        return False
    rows = Intent.objects.filter(pk=last.pk, state=Intent.State.REFUSED)
    return bool(rows.update(state=Intent.State.WRITTEN, problem="", done_at=None, sent_at=None))


@transaction.atomic
def take_over(session: Session, state: str) -> str:
    """Approve or reject what was handed in, as the submission was; no money moves here."""
    locked = Session.objects.locked().select_related("study__requester").get(pk=session.pk)
    is_approved = state == SessionState.APPROVED
    # Whoever is approved there is approved here, though a rejection was on its way.
    open_statuses = [Assignment.Status.SUBMITTED]
    if is_approved:
        open_statuses.append(Assignment.Status.REJECTED)
    handed_in = Assignment.objects.filter(session_item__session=locked, status__in=open_statuses)
    for public_id in list(handed_in.order_by("hit_id").values_list("public_id", flat=True)):
        _decide_one(locked, public_id, is_approved=is_approved)
    if state == SessionState.REJECTED:
        free_items(locked, Assignment.Status.RETURNED)
    locked.save_values(state=state)
    return state


def _decide_one(session: Session, public_id: str, *, is_approved: bool) -> None:
    requester = session.study.requester
    text = _("Decided at {recruiter}.").format(recruiter=session.connection.name)
    try:
        with transaction.atomic():
            if is_approved:
                review.approve_assignment(
                    requester=requester, public_id=public_id, feedback=text, override_rejection=True
                )
            else:
                review.reject_assignment(requester=requester, public_id=public_id, feedback=text)
    except MarketplaceError:
        return  # it was decided here meanwhile, or its HIT is gone
