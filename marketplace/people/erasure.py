"""Erasing a worker's personal data on the worker's own request, made on a page or by letter.

What says who somebody is goes at once: name, password, addresses, second factor, sessions,
profile, payout details, messages, drafts, the ids that links carried. Assignments, answers,
qualifications and the ledger stay under the Worker ID, a pseudonym that leads to nobody any more:
requesters' studies and the books rest on them. Nothing is erased while work or money is open,
because nobody could be paid afterwards.
"""

import uuid
from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from error_codes import CodedText
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import ErasureRefused
from marketplace.models import (
    Assignment,
    Intent,
    Outcome,
    PaidBy,
    Payout,
    RecruiterConnection,
    Session,
    WorkerAccount,
)
from marketplace.money import ledger
from marketplace.people.erased_submissions import seal_submissions_of
from marketplace.people.personal_data import TABLES
from marketplace.users import User

Status = Assignment.Status
# Nobody is kept from erasure for longer by what nobody settles.
CALLS_WAIT = timedelta(days=30)


@transaction.atomic
def erase_worker(worker: WorkerAccount) -> None:
    """Erase what says who the worker is; a second time changes nothing. Refused, with the
    reasons, while work or money is open."""
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
    """What has to end before the worker's data can be erased, in sentences."""
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
    if n := assignments.filter(status=Status.ACCEPTED).count():
        text = ngettext(
            "%(n)s accepted assignment is neither submitted nor returned.",
            "%(n)s accepted assignments are neither submitted nor returned.",
            n,
        )
        obstacles.append(CodedText(text % {"n": n}, "accepted_work"))
    if n := assignments.filter(status=Status.SUBMITTED).count():
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
    """Of who was asked to return a place at a recruiter: what is entered there afterwards would be
    paid by time, and nobody could tell any more whose it was."""
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
    """Whether anything but a worker's tables refers to the user, whatever app it is of."""
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
