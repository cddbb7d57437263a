"""Erasing a worker's personal data on the worker's own request, made on a page or by letter.

What says who somebody is goes at once: name, password, addresses, second factor, sessions,
profile, payout details, messages, drafts, the ids that links carried. Assignments, answers,
qualifications and the ledger stay under the Worker ID, a pseudonym that leads to nobody any more:
requesters' studies and the books rest on them. Nothing is erased while work or money is open,
because nobody could be paid afterwards.
"""

import uuid
from collections.abc import Collection, Mapping
from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _, ngettext

from encryption import seals
from error_codes import CodedText
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import ErasureRefused
from marketplace.models import (
    Assignment,
    ErasedSubmission,
    Intent,
    Outcome,
    PaidBy,
    Payout,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    RecruiterEvent,
    Session,
    WorkerAccount,
)
from marketplace.money import ledger
from marketplace.people.personal_data import TABLES
from marketplace.users import User

# Participations of people whose data was erased, known again at their recruiter by a seal alone.
#
# A recruiter goes on listing a submission that waits for review there, and its link may be opened
# once more. Neither must make an account, or a row with the person's id, of somebody who had all of
# that erased.

PURPOSE = "erased submission"


def seal_submissions_of(worker: WorkerAccount) -> None:
    """Keep seals of the submissions whose sessions are about to be deleted, and forget which
    events and charges were about them."""
    sessions = Session.objects.filter(worker=worker).select_related("connection", "study")
    # Who is in the groups is no more to be told by how many came.
    RecruitedStudy.objects.filter(sessions__worker=worker).update(group_size=0)
    uncharged = {session.pk: _uncharged(session) for session in sessions}
    holding = set(sessions.holding_places().values_list("pk", flat=True))
    for session in sessions:
        for charge in RecruiterCharge.objects.filter(
            session=session, external_id=session.submission_id[:100]
        ):
            charge.save_values(external_id=f"erased:{charge.pk}")
        RecruiterEvent.objects.filter(
            connection=session.connection, submission_id=session.submission_id
        ).update(submission_id="")
    ErasedSubmission.objects.bulk_create(
        [
            ErasedSubmission(
                connection=session.connection,
                study_id=session.study_id,
                seal=_seals(session.connection, session.submission_id)[0],
                uncharged=uncharged[session.pk],
                is_unpaid=_is_unpaid(session),
                holds_place=session.pk in holding,
            )
            for session in sessions
        ],
        ignore_conflicts=True,
    )


def _uncharged(session: Session) -> str:
    study, kind = session.study, ""
    if _is_approved_there(session) and study.external_id and study.reward is not None:
        kind = RecruiterCharge.Kind.REWARD.value
    if session.state == Session.State.SCREENED_OUT and study.screen_out_reward_paid is not None:
        kind = RecruiterCharge.Kind.SCREEN_OUT.value
    if kind and RecruiterCharge.objects.filter(session=session, kind=kind).exists():
        return ""
    return kind


def _is_unpaid(session: Session) -> bool:
    is_paid = session.state == Session.State.SCREENED_OUT or _is_approved_there(session)
    return bool(session.study.external_id) and not is_paid


def _is_approved_there(session: Session) -> bool:
    """Whether the recruiter has approved it. An unsent approval is deleted with the session."""
    approvals = session.intents.filter(kind=Intent.Kind.APPROVE, state__in=Intent.OPEN_STATES)
    return session.state == Session.State.APPROVED and not approvals.exists()


def note_paid_since(study: RecruitedStudy, kinds: Mapping[str, str]) -> None:
    """Mark erased submissions that the recruiter has paid since then to be charged for, once each
    and without their ids."""
    unpaid = ErasedSubmission.objects.filter(study=study, is_unpaid=True)
    waiting = dict(unpaid.values_list("seal", "pk"))
    if not waiting:
        return
    for submission_id, kind in kinds.items():
        for seal in _seals(study.connection, submission_id):
            if (key := waiting.get(seal)) is not None:
                unpaid.filter(pk=key).update(is_unpaid=False, uncharged=kind)


def note_places_since(study: RecruitedStudy, places: Mapping[str, bool]) -> None:
    """Record which erased submissions, by the ids that the recruiter lists, hold their place
    there."""
    rows = ErasedSubmission.objects.filter(study=study)
    known = set(rows.values_list("seal", "holds_place"))
    for submission_id, holds_place in places.items() if known else ():
        for seal in _seals(study.connection, submission_id):
            if (seal, not holds_place) in known:
                rows.filter(seal=seal).update(holds_place=holds_place)


def erased_among(connection: RecruiterConnection, submission_ids: Collection[str]) -> set[str]:
    if not submission_ids:
        return set()
    sealed = {seal: one for one in submission_ids for seal in _seals(connection, one)}
    rows = ErasedSubmission.objects.filter(connection=connection)
    # All of them: a recruiter lists more submissions than people have themselves erased.
    return {sealed[seal] for seal in rows.values_list("seal", flat=True) if seal in sealed}


def _seals(connection: RecruiterConnection, submission_id: str) -> list[str]:
    return seals(f"{connection.pk}:{submission_id}", purpose=PURPOSE)


# Nobody is kept from erasure for longer by what nobody settles.
CALLS_WAIT = timedelta(days=30)


@transaction.atomic
def erase_worker(worker: WorkerAccount) -> None:
    """Erase who the worker is; repeating it changes nothing. Raises ErasureRefused, with reasons,
    while work or money is open."""
    # Before the worker, as whoever decides on one does, who writes to the worker then; and before
    # their studies. What is decided until then is an obstacle.
    _hold_sessions(worker)
    # In full: whoever accepts a HIT for this worker, or posts to the earnings, waits.
    user = User.objects.select_for_update().get(pk=worker.user_id)
    locked = WorkerAccount.objects.select_for_update().get(pk=worker.pk)
    if locked.erased_at is not None:
        return
    _hold_sessions(locked)  # those that began in between, of which nothing can be decided yet
    if obstacles := erasure_obstacles(locked):
        raise ErasureRefused(" ".join(obstacles), code=obstacles[0].code)
    for session in UserSession.objects.filter(user=user):
        session.end()
    seal_submissions_of(locked)
    for table in TABLES:
        if table.is_deleted:
            table.rows(locked).delete()
    _close(user)
    _make_pseudonymous(locked)
    note("worker.erase", subject=locked.worker_id)


def _hold_sessions(worker: WorkerAccount) -> None:
    sessions = Session.objects.filter(worker=worker).select_for_update().order_by("pk")
    list(sessions.values_list("pk", flat=True))


def erasure_obstacles(worker: WorkerAccount) -> list[CodedText]:
    obstacles: list[CodedText] = []
    if _is_more_than_a_worker(worker.user):
        text = " ".join(
            [
                _("This account is also a researcher's, a requester's or an operator's."),
                _("Ask the operator to separate the two."),
            ]
        )
        obstacles.append(CodedText(text, "other_role"))
    assignments = Assignment.objects.by(worker)
    if n := assignments.filter(status=Assignment.Status.ACCEPTED).count():
        text = ngettext(
            "%(n)s accepted assignment is neither submitted nor returned.",
            "%(n)s accepted assignments are neither submitted nor returned.",
            n,
        )
        obstacles.append(CodedText(text % {"n": n}, "accepted_work"))
    if n := assignments.filter(status=Assignment.Status.SUBMITTED).count():
        text = ngettext(
            "%(n)s assignment waits for review, and may still be paid.",
            "%(n)s assignments wait for review, and may still be paid.",
            n,
        )
        obstacles.append(CodedText(text % {"n": n}, "submitted_work"))
    # What they say would be gone with them.
    calls = Intent.objects.filter(session__worker=worker, state__in=Intent.OPEN_STATES)
    # Where nobody is called, the requester's file said it; but of a recruiter that was called no
    # bonus that was not paid.
    is_file_silent = Q(kind=Intent.Kind.BONUS, connection__kind=RecruiterConnection.Kind.PROLIFIC)
    calls = calls.filter(is_file_silent | ~Q(connection__encrypted_token=""))
    if calls.filter(created_at__gt=clock.now() - CALLS_WAIT).exists():
        text = _("A decision on work, a bonus or a message is not yet settled at the recruiter.")
        obstacles.append(CodedText(text, "open_calls"))
    obstacles += _places_held(worker)
    is_paid_here = worker.paid_by == PaidBy.LEDGER
    balance_usd = ledger.balance_of(ledger.earnings_account(worker)) if is_paid_here else None
    if balance_usd:
        text = _("$%(amount)s of the earnings has not been paid out.")
        obstacles.append(CodedText(text % {"amount": f"{balance_usd:.2f}"}, "unpaid_earnings"))
    if Payout.objects.filter(worker=worker, paid_at=None).exists():
        obstacles.append(CodedText(_("A payout is under way."), "open_payout"))
    return obstacles


def _places_held(worker: WorkerAccount) -> list[CodedText]:
    # A code entered after the erasure would be paid by time, and nobody could tell whose it was.
    held = Session.objects.filter(worker=worker, state=Session.State.FINISHED)
    held = held.exclude(outcome__in=["", Outcome.COMPLETED])
    # One that calls nobody hears of no return.
    held = held.exclude(connection__encrypted_token="").exclude(study__external_id="")
    held = held.filter(ended_at__gt=clock.now() - CALLS_WAIT).select_related("connection")
    text = _(
        "You may hold a place at %(name)s still: return it there first. It is seen here a minute "
        "later; on %(day)s your data can be erased in any case."
    )
    return [
        CodedText(
            text % {"name": one.connection.name, "day": f"{one.ended_at + CALLS_WAIT:%Y-%m-%d}"},
            "place_held",
        )
        for one in held
        if one.ended_at is not None
    ]


def _is_more_than_a_worker(user: User) -> bool:
    """Whether tables of any app, other than a worker's, refer to the user."""
    if user.is_staff or user.is_superuser:
        return True
    decided = {table.model for table in TABLES}
    return any(
        relation.related_model._default_manager.filter(**{relation.field.name: user.pk}).exists()
        for relation in User._meta.related_objects
        if relation.related_model not in decided
    )


def _close(user: User) -> None:
    # Random, so that nothing leads from the Worker ID to whoever had the account.
    user.username = f"erased-{uuid.uuid4().hex}"
    user.first_name = user.last_name = user.email = ""
    user.last_login = None
    user.is_active = False
    user.set_unusable_password()
    user.save()


def _make_pseudonymous(worker: WorkerAccount) -> None:
    worker.country = worker.subdivision = ""
    worker.languages = []
    worker.adult_confirmed_at = worker.master_since = None
    worker.erased_at = clock.now()
    worker.save()
