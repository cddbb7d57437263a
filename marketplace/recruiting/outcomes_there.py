"""What became of submissions at their recruiter, followed here: there is the truth of who left,
whose time was over, and what was approved by time or by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import MarketplaceError
from marketplace.hits import review
from marketplace.models import Assignment, Intent, RecruitedStudy, RecruiterConnection, Session
from marketplace.recruiting.doubts import follow_doubts
from marketplace.recruiting.intents import DECISIONS
from marketplace.recruiting.problems import NotFound
from marketplace.recruiting.prolific import Prolific
from marketplace.recruiting.records import (
    UNREADABLE_SUBMISSION,
    Submission,
    SubmissionState,
)
from marketplace.recruiting.sessions import (
    free_items,
    return_session,
    screen_out_session,
    time_out_session,
)
from marketplace.recruiting.turns import Patience, keep_turn

# Rows of a list after which the turn is kept: a recruiter's page, which may take half a minute.
PAGE = 100
State, There = Session.State, SubmissionState
OPEN = (State.STARTED, State.FINISHED)
# Who was let go, or turned down, may still be approved there, for as long as people remember.
REVERSIBLE = (State.TIMED_OUT, State.RETURNED, State.REJECTED)
REVERSIBLE_FOR = timedelta(days=30)
# What a rejection has in its basis that was not made there, since the time had run out there.
TIMED_OUT = "timed_out"
# A word that is not known here says nothing of whether it is decided.
UNDECIDED = (
    *(There.RESERVED, There.ACTIVE, There.PROCESSING, There.AWAITING_REVIEW),
    There.UNKNOWN,
)
SAME = {
    There.RETURNED: State.RETURNED,
    There.TIMED_OUT: State.TIMED_OUT,
    There.APPROVED: State.APPROVED,
    There.REJECTED: State.REJECTED,
    There.SCREENED_OUT: State.SCREENED_OUT,
}


def follow_submissions(connection: RecruiterConnection, recruiter: Prolific) -> int:
    """Follow every session of the connection's studies that may change; return how many did."""
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
    payable = {one.id for one in there if _may_be_paid(one, now)} | _to_be_approved(study)
    _note_payable(study, len(payable) if is_stopped and is_whole else None)


def _paid_late(
    study: RecruitedStudy,
    there: Iterable[Submission],
    known: Mapping[str, str],
    *,
    followed: Collection[str],
) -> dict[str, Session]:
    """Who is followed no more and was approved all the same, as three weeks after a late code."""
    approved = {one.id for one in there if one.state == There.APPROVED} - set(followed)
    keys = [key for key in approved if known.get(key) in REVERSIBLE]
    if not keys:
        return {}
    rows = Session.objects.filter(study=study, submission_id__in=keys)
    return {one.submission_id: one for one in rows}


def _keeping_turn(submissions: Iterable[Submission]) -> Iterator[Submission]:
    """All of a list, however long it is; the turn is kept meanwhile."""
    for n, submission in enumerate(submissions):
        if n % PAGE == 0:
            keep_turn()
        yield submission


def _note_code(session: Session, submission: Submission, codes: Mapping[str, str]) -> None:
    """Keep of which outcome the code is that was entered there."""
    reported = codes.get(submission.code, Session.OTHER) if submission.code else ""
    if reported != session.reported:
        Session.objects.filter(pk=session.pk).update(reported=reported)
        session.reported = reported


def _to_be_approved(study: RecruitedStudy) -> set[str]:
    """Submissions whose approval waits to be sent, however they stand there."""
    approvals = Intent.objects.filter(session__study=study, kind=Intent.Kind.APPROVE)
    waiting = approvals.filter(state__in=Intent.OPEN_STATES)
    return set(waiting.values_list("session__submission_id", flat=True))


def _note_payable(study: RecruitedStudy, n_payable: int | None) -> None:
    """Write down how many there may be paid still; more places, or an approval, which come in
    between have it looked at again."""
    if n_payable != study.n_payable_there:
        rows = RecruitedStudy.objects.filter(pk=study.pk)
        rows.filter(n_payable_there=study.n_payable_there).update(n_payable_there=n_payable)


def _may_be_paid(there: Submission, now: datetime) -> bool:
    """Whether it is under way, or time may approve it; a code may come after the time."""
    if there.state == There.TIMED_OUT:
        return there.started_at is not None and there.started_at > now - REVERSIBLE_FOR
    return there.state in UNDECIDED


def is_followed(session: Session, now: datetime) -> bool:
    """Whether what becomes of it there still matters."""
    return Session.objects.filter(_followed(now), pk=session.pk).exists()


def _followed(now: datetime) -> Q:
    recent = Q(ended_at__gt=now - REVERSIBLE_FOR) | Q(ended_at=None)
    return Q(state__in=OPEN) | Q(state__in=REVERSIBLE) & recent


def follow_submission(session: Session, there: Submission) -> bool:
    """Do here what was done there; whether anything changed."""
    before = session.state
    if SAME.get(there.state) == before:
        return False
    if there.state == There.RETURNED:
        after = return_session(session=session).state
    elif there.state == There.TIMED_OUT:
        after = time_out_session(session=session).state
    elif there.state == There.APPROVED:
        after = take_over(session, State.APPROVED)
    elif there.state == There.REJECTED:
        after = take_over(session, State.REJECTED)
    elif there.state == There.SCREENED_OUT:
        after = screen_out_session(session=session).state
    elif there.state == There.AWAITING_REVIEW and before == State.REJECTED:
        return _reject_after_all(session)
    else:
        return False
    session.state = after
    return after != before


@transaction.atomic
def _reject_after_all(session: Session) -> bool:
    """The code came long after the time: what was rejected here, and could not be there since its
    time had run out, waits to be rejected there, before time approves and pays it."""
    # Whoever decides holds the session first, too.
    Session.objects.select_for_update(no_key=True).get(pk=session.pk)
    decisions = Intent.objects.filter(session=session, kind__in=DECISIONS).order_by("-pk")
    last = decisions.first()
    if last is None or last.kind != Intent.Kind.REJECT or TIMED_OUT not in last.basis:
        return False
    rows = Intent.objects.filter(pk=last.pk, state=Intent.State.REFUSED)
    waiting = {"state": Intent.State.WRITTEN, "problem": "", "done_at": None, "sent_at": None}
    return bool(rows.update(**waiting))


@transaction.atomic
def take_over(session: Session, state: str) -> str:
    """Approve or reject what was handed in, as the submission was; no money moves here."""
    rows = Session.objects.select_for_update(no_key=True, of=("self",))
    locked = rows.select_related("study__requester").get(pk=session.pk)
    is_approved = state == State.APPROVED
    # Whoever is approved there is approved here, though a rejection was on its way.
    open_statuses = [Assignment.Status.SUBMITTED]
    if is_approved:
        open_statuses.append(Assignment.Status.REJECTED)
    handed_in = Assignment.objects.filter(session_item__session=locked, status__in=open_statuses)
    for public_id in list(handed_in.order_by("hit_id").values_list("public_id", flat=True)):
        _decide_one(locked, public_id, is_approved=is_approved)
    if state == State.REJECTED:
        free_items(locked)
    locked.state = state
    locked.save(update_fields=["state"])
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
