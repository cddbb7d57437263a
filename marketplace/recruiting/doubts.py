"""Submissions that wait at their recruiter to be paid though their work is not here: a code that
was passed on, work that was left in the middle, a place that was not given back, work that came
when others had done all of it.

Nothing approves them from here, but time does so there. So each is put before a person, once, among
the calls that somebody must look after: it is rejected there, or left as it is. An approval of what
there is of the work, as of its first HIT, waits for that: the recruiter pays all of it or nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.models import (
    Assignment,
    Intent,
    Outcome,
    RecruitedStudy,
    RecruiterCharge,
    Session,
)
from marketplace.people.erased_submissions import (
    erased_among,
    note_paid_since,
    note_places_since,
)
from marketplace.recruiting.participants import account_of, encrypted
from marketplace.recruiting.records import RejectionCategory, Submission, SubmissionState

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
    """Put before a person what waits there without its work, and drop what does so no more, where
    the list is whole; return how many are new."""
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
    open_ones = Intent.objects.filter(session__study=study, kind=Kind.DOUBT, state=State.UNCERTAIN)
    over = open_ones.exclude(session__submission_id__in=doubtful)
    if not is_whole:
        over = over.filter(session__submission_id__in=[one.id for one in submissions])
    over.delete()
    unknown = (one for one in submissions if one.id not in known and one.state in HOLD_PLACES)
    note_places_since(study, {one.id: HOLD_PLACES[one.state] for one in unknown})
    _note_paid(study, submissions, known)
    n_new = _note_screened_out(study, submissions, known)
    for key, submission in doubtful.items():
        session = known.get(key) or _absent(study, submission)
        n_new += _note(session, submission, codes.get(submission.code))
    return n_new


def _note_paid(
    study: RecruitedStudy, submissions: Iterable[Submission], known: Mapping[str, Session]
) -> None:
    """Keep who was paid there though nobody has opened the study here for it, or had all of that
    erased since: it is charged for."""
    paid = {one.id: one for one in submissions if one.state == SubmissionState.APPROVED}
    unknown = paid.keys() - known.keys()
    note_paid_since(study, dict.fromkeys(unknown, RecruiterCharge.Kind.REWARD))
    for key in unknown - erased_among(study.connection, unknown):
        _absent(study, paid[key], Session.State.APPROVED)


def _note_screened_out(
    study: RecruitedStudy, submissions: Iterable[Submission], known: Mapping[str, Session]
) -> int:
    """Say of whom the recruiter has paid for being screened out, and whom nobody screened out here:
    one code stands for all, and can be passed on. It is paid, and charged for; return how many."""
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
    """Leave it as it is, or have it rejected there, unless all of its work has come since."""
    # Whatever else is decided on it meanwhile waits, or was before.
    session = Session.objects.select_for_update(no_key=True).get(pk=doubt.session_id)
    is_late = is_done_by_others(session)
    if session.outcome == Outcome.COMPLETED and not is_left and not is_late:
        text = _("All of its work has come since this was listed: decide on it as on any other's.")
        raise InvalidParameter(text, code="work_has_come")
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
    """Whether all of the work came, but so late that others had done each item in its place: there
    is nothing here that could be approved or rejected."""
    return _done_by_others().filter(pk=session.pk).exists()


def _done_by_others() -> QuerySet[Session]:
    items = Assignment.objects.filter(session_item__session=OuterRef("pk"))
    complete = Session.objects.filter(Exists(items), outcome=Outcome.COMPLETED)
    return complete.filter(~Exists(items.handed_in()))


def is_to_be_looked_at(session: Session) -> bool:
    """Whether an approval waits for a person to see that the work is not all here."""
    if session.outcome == Outcome.COMPLETED:
        return False
    return not session.intents.filter(kind=Kind.DOUBT, state=State.DONE).exists()


def _is_decided(session: Session) -> bool:
    """Whether a decision reached the recruiter, or is a rejection on its way there. One that was
    refused there decides nothing: the submission may be handed in once more."""
    approved = Q(kind=Kind.APPROVE, state=State.DONE)
    rejected = Q(kind=Kind.REJECT, state__in=[State.DONE, *Intent.OPEN_STATES])
    decisions = session.intents.filter(kind__in=[Kind.APPROVE, Kind.REJECT])
    last = decisions.order_by("-pk").values_list("pk", flat=True).first()
    return last is not None and decisions.filter(approved | rejected, pk=last).exists()


def _approved_here(study: RecruitedStudy) -> set[str]:
    """Submissions of which an approval waits to be sent."""
    waiting = Intent.objects.filter(
        session__study=study, kind=Kind.APPROVE, state__in=Intent.OPEN_STATES
    )
    return set(waiting.values_list("session__submission_id", flat=True))


def _is_waiting(submission: Submission, approved: set[str]) -> bool:
    """Whether it is to be decided there, or was rejected and is to be approved all the same."""
    if submission.state == SubmissionState.REJECTED:
        return submission.id in approved
    return submission.state == SubmissionState.AWAITING_REVIEW


def _absent(
    study: RecruitedStudy,
    submission: Submission,
    state: Session.State = Session.State.FINISHED,
) -> Session:
    """A participation of somebody who never opened the link, so that it can be decided on."""
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
    is_claimed = reported == Outcome.COMPLETED
    category = RejectionCategory.BAD_CODE if is_claimed else RejectionCategory.NO_DATA
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
    text = _(
        "The code entered there is that of: {outcome}. {work} Unless it is rejected or returned, "
        "{recruiter} approves and pays it on {day}."
    )
    return text.format(
        outcome=reported.label if reported else _("none of this study"),
        work=work,
        recruiter=session.connection.name,
        day=f"{day:%Y-%m-%d}",
    )
