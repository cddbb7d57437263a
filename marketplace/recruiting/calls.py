"""Intents are sent to their recruiter, each once; one whose answer was lost is settled by looking.

An intent is claimed (written -> sent, committed) before the call, so that of two processes one
makes it, and one that is killed leaves it claimed: after a while that is as uncertain as a lost
answer. Verdicts may be repeated, since a submission is approved or rejected once; a bonus is paid
as often as it is asked for, so it is never asked for again: what the submission had before, and
what was to be added, tell whether it was paid. A message is sent once at most.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from encryption import decrypt
from marketplace import clock
from marketplace.exceptions import InvalidParameter, RecruiterBusy
from marketplace.models import Intent, Outcome, RecruiterCharge, RecruiterConnection, Session
from marketplace.recruiting.attached import follow_attached
from marketplace.recruiting.charges import charge_rewards
from marketplace.recruiting.connections import recruiter_of
from marketplace.recruiting.doubts import is_to_be_looked_at, settle_doubt
from marketplace.recruiting.events import follow_events
from marketplace.recruiting.groups import follow_blocks, follow_groups
from marketplace.recruiting.outcomes_there import (
    SAME,
    follow_submission,
    follow_submissions,
    take_over,
)
from marketplace.recruiting.patience import Patience
from marketplace.recruiting.port import Recruiter
from marketplace.recruiting.posting import follow_studies
from marketplace.recruiting.problems import (
    NotAuthorized,
    RecruiterProblem,
    Refused,
    Uncertain,
    Unreachable,
)
from marketplace.recruiting.records import (
    Approval,
    Bonus,
    Rejection,
    RejectionCategory,
    Reversal,
    Submission,
    SubmissionState,
    Verdict,
)
from marketplace.recruiting.requests import end_abandoned_actions
from marketplace.recruiting.sessions import leave_session
from marketplace.recruiting.subscriptions import keep_subscribed
from marketplace.recruiting.turns import turn_at

logger = logging.getLogger(__name__)
# A claim of this age is of a process that was killed.
CLAIM_LASTS = timedelta(minutes=10)
# A bonus that has not shown itself by then is a person's to decide.
SHOWN_WITHIN = timedelta(hours=1)
# Who handed in all of the work after the time there may enter the code later than that.
LATE_CODE_WITHIN = timedelta(days=1)
Kind, State = Intent.Kind, Intent.State
DECISIONS = (Kind.APPROVE, Kind.REJECT)
WORKING = (SubmissionState.RESERVED, SubmissionState.ACTIVE, SubmissionState.PROCESSING)


@dataclass
class Called:
    """What came of calling all recruiters."""

    n_done: int = 0
    n_refused: int = 0
    n_uncertain: int = 0
    n_waiting: int = 0
    n_followed: int = 0
    problems: tuple[str, ...] = ()


def call_recruiters() -> Called:
    """Follow what changed at each recruiter that has an API, and send what waits for it."""
    called = Called()
    connected = RecruiterConnection.objects.exclude(encrypted_token="")
    for connection in connected.select_related("requester").order_by("pk"):
        try:
            recruiter = recruiter_of(connection)
            if recruiter is not None:
                _call(connection, recruiter, called)
        except Exception as error:
            logger.exception("recruiter '%s' (%s) cannot be called", connection, connection.pk)
            name = type(error).__name__
            text = _("{recruiter} cannot be called ({error}): the site's log has the rest.")
            called.problems += (text.format(recruiter=connection, error=name),)
    return called


@transaction.atomic
def decide_uncertain(*, intent: Intent, was_done: bool) -> None:
    """What a person found at the recruiter of a call that nobody answered: it was done, or it was
    not and is to be sent again; so is a decision that was refused."""
    held = Intent.objects.select_for_update().get(pk=intent.pk)
    if held.state == State.REFUSED and held.kind in DECISIONS and not was_done:
        _send_again(held)
        return
    if held.state != State.UNCERTAIN:
        raise InvalidParameter(_("This is not uncertain: it is {state}.").format(state=held.state))
    if held.kind == Kind.DOUBT:
        settle_doubt(doubt=held, is_left=was_done)
    elif not was_done:
        if held.kind == Kind.BONUS and _may_still_show(held):
            text = _("Whether it was paid shows within an hour: say so after {time} UTC.")
            shown_at = (held.sent_at or clock.now()) + SHOWN_WITHIN
            raise InvalidParameter(text.format(time=f"{shown_at.astimezone(UTC):%H:%M}"))
        _note(held, State.WRITTEN)
    elif held.kind == Kind.BONUS:
        _paid(held)
    else:
        _note(held, State.DONE)


def _send_again(refused: Intent) -> None:
    """Have a decision that was refused once, as for want of money, made once more."""
    later = Intent.objects.filter(session=refused.session_id, kind__in=DECISIONS)
    if later.filter(pk__gt=refused.pk).exists():
        raise InvalidParameter(_("It was decided again since."))
    rows = Intent.objects.filter(pk=refused.pk, state=State.REFUSED)
    rows.update(state=State.WRITTEN, problem="", done_at=None, sent_at=None)


def _call(connection: RecruiterConnection, recruiter: Recruiter, called: Called) -> None:
    problem = ""
    try:
        with turn_at(connection) as turn, Patience() as patience:
            for step in _steps(connection, recruiter, called):
                turn.go_on()
                patience.try_to(step)
    except RecruiterBusy as busy:  # whoever calls it follows and sends the same
        called.problems += (str(busy),)
        return
    except RecruiterProblem as error:  # the rest, or what it was of, is tried again in a minute
        problem = str(error)
        called.problems += (f"{connection}: {problem}",)
    RecruiterConnection.objects.filter(pk=connection.pk).update(
        problem=problem, called_at=clock.now()
    )
    counts = Counter(connection.intents.values_list("state", flat=True))
    called.n_done += counts[State.DONE]
    called.n_refused += counts[State.REFUSED]
    called.n_uncertain += counts[State.UNCERTAIN] + counts[State.SENT]
    called.n_waiting += counts[State.WRITTEN]


def _steps(
    connection: RecruiterConnection, recruiter: Recruiter, called: Called
) -> tuple[Callable[[], object], ...]:
    """What is done each minute, in this order; none of it needs what comes before."""

    def follow() -> None:
        called.n_followed += follow_submissions(connection, recruiter)

    return (
        partial(end_abandoned_actions, connection),
        partial(_keep_subscribed, connection, recruiter),
        partial(follow_events, connection, recruiter),
        follow,
        partial(_settle_all, connection, recruiter),
        partial(_send_all, connection, recruiter),
        partial(follow_studies, connection, recruiter),
        partial(charge_rewards, connection, recruiter),
        partial(follow_attached, connection),
        partial(follow_groups, connection, recruiter),
        partial(follow_blocks, connection, recruiter),
    )


def _keep_subscribed(connection: RecruiterConnection, recruiter: Recruiter) -> None:
    """News only make it sooner: nothing waits for them."""
    with suppress(RecruiterProblem):
        keep_subscribed(connection, recruiter)


def _intents(connection: RecruiterConnection, *states: str) -> list[Intent]:
    rows = connection.intents.filter(state__in=states).order_by("pk")
    return list(rows.select_related("session__study", "session__connection__requester"))


def _settle_all(connection: RecruiterConnection, recruiter: Recruiter) -> None:
    now = clock.now()
    with Patience() as patience:
        for intent in _intents(connection, State.SENT, State.UNCERTAIN):
            if intent.kind == Kind.DOUBT:
                continue  # a person's to decide
            if intent.state == State.UNCERTAIN or _is_abandoned(intent, now):
                settle = partial(_settle_one, intent, recruiter)
                patience.try_to(settle, key=f"submission:{intent.session_id}")


def _settle_one(intent: Intent, recruiter: Recruiter) -> None:
    try:
        _settle(intent, recruiter)
    except NotAuthorized:
        raise
    except Refused as problem:  # it is not there any more
        _note(intent, State.UNCERTAIN, str(problem))


def _is_abandoned(intent: Intent, now: datetime) -> bool:
    return intent.sent_at is None or intent.sent_at <= now - CLAIM_LASTS


def _settle(intent: Intent, recruiter: Recruiter) -> None:
    """Look what became of a call without an answer."""
    if intent.kind == Kind.MESSAGE:
        _note(intent, State.UNCERTAIN, _("It may have been sent: no answer came."))
        return
    found = recruiter.submission(intent.session.submission_id)
    if intent.kind == Kind.BONUS:
        _settle_bonus(intent, found)
    else:
        _note(intent, State.WRITTEN)  # the state there is looked at before it is asked for again


def _settle_bonus(intent: Intent, found: Submission) -> None:
    if "prepared" not in intent.basis:  # killed before anything that pays was called
        _note(intent, State.WRITTEN)
        return
    before = Counter(map(Decimal, intent.basis["before"]))
    there = Counter(found.bonuses)
    if there == before + Counter([intent.amount]):
        _paid(intent)
    elif there != before:
        said = ", ".join(f"{amount:.2f}" for amount in found.bonuses)
        text = _("Bonuses that were paid there: {amounts}. Look there whether this is one of them.")
        _note(intent, State.UNCERTAIN, text.format(amounts=said))
    elif not _may_still_show(intent):
        _note(intent, State.UNCERTAIN, _("It was not paid within an hour, as far as can be seen."))
    else:
        _note(intent, State.UNCERTAIN, _("No answer came. Whether it was paid shows in an hour."))


def _may_still_show(bonus: Intent) -> bool:
    return bonus.sent_at is not None and bonus.sent_at > clock.now() - SHOWN_WITHIN


def _send_all(connection: RecruiterConnection, recruiter: Recruiter) -> None:
    with Patience() as patience:
        for intent in _intents(connection, State.WRITTEN):
            send = partial(_send_one, intent, recruiter)
            patience.try_to(send, key=f"submission:{intent.session_id}")


def _send_one(intent: Intent, recruiter: Recruiter) -> None:
    try:
        _send(intent, recruiter)
    except Uncertain as problem:
        _note(intent, State.UNCERTAIN, str(problem))
    except (Unreachable, NotAuthorized):
        _note(intent, State.WRITTEN)
        raise
    except (Refused, ValueError) as problem:
        _refused(intent, str(problem))


@transaction.atomic
def _refused(intent: Intent, problem: str) -> None:
    """A participation whose approval was refused there is not approved, nor is it paid: it is
    followed until somebody approves it there, or time does."""
    if _note(intent, State.REFUSED, problem) and intent.kind == Kind.APPROVE:
        approved = Session.objects.filter(pk=intent.session_id, state=Session.State.APPROVED)
        approved.update(state=Session.State.FINISHED)


def _send(intent: Intent, recruiter: Recruiter) -> None:
    # Since the round began the participant may have withdrawn, or handed in the rest.
    intent.session.refresh_from_db(fields=["state", "outcome", "ended_at"])
    if intent.kind == Kind.MESSAGE:
        participant = decrypt(intent.session.encrypted_participant_id)
        if _claim(intent):
            recruiter.message(intent.session.study.external_id, participant, intent.text)
            _note(intent, State.DONE)
        return
    found = recruiter.submission(intent.session.submission_id)
    if intent.kind == Kind.BONUS:
        _pay(intent, found, recruiter)
    else:
        _decide(intent, found, recruiter)


def _decide(intent: Intent, found: Submission, recruiter: Recruiter) -> None:
    """Give a verdict, unless it was given there already, or something else was."""
    wanted = SubmissionState.APPROVED if intent.kind == Kind.APPROVE else SubmissionState.REJECTED
    if found.state in WORKING or _may_be_late(intent.session, found):
        return  # the participant has not come back yet: later
    if found.state == wanted:
        _decided(intent)
        return
    if _is_left(intent.session, found):
        _leave_unpaid(intent, found)
        return
    if intent.kind == Kind.APPROVE and intent.session.outcome == Outcome.NO_CONSENT:
        text = _(
            "The participant withdrew before this was approved there, and was told that nothing is "
            "paid. If it is to be paid all the same, approve it there."
        )
        _refused(intent, text)
        return
    if found.state == SubmissionState.SCREENED_OUT:
        follow_submission(intent.session, found)
        text = _(
            "It was paid there as one who may not take part, and is neither approved nor rejected. "
            "If more is to be paid, pay a bonus."
        )
        _note(intent, State.REFUSED, text)
        return
    if intent.kind == Kind.REJECT and _has_come(intent):
        _withdraw_rejection(intent)
        return
    if intent.kind == Kind.REJECT and found.state == SubmissionState.APPROVED:
        follow_submission(intent.session, found)
        _note(intent, State.REFUSED, _("It was approved there before: it is approved here, too."))
        return
    if intent.kind == Kind.APPROVE and is_to_be_looked_at(intent.session):
        return  # it is among the doubts
    if _claim(intent, intent.basis):
        recruiter.decide(found.id, _verdict(intent, found))
        _decided(intent)


def _has_come(intent: Intent) -> bool:
    """Whether it was to be rejected for want of its work, all of which is here since."""
    return "category" in intent.basis and intent.session.outcome == Outcome.COMPLETED


@transaction.atomic
def _withdraw_rejection(intent: Intent) -> None:
    rows = Intent.objects.filter(pk=intent.pk, state=State.WRITTEN)
    if rows.delete()[0]:
        rejected = Session.objects.filter(pk=intent.session_id, state=Session.State.REJECTED)
        rejected.update(state=Session.State.FINISHED)


def _may_be_late(session: Session, found: Submission) -> bool:
    """Whether all of the work is here, and its code may still be entered after the time there."""
    is_late = found.state == SubmissionState.TIMED_OUT and session.outcome == Outcome.COMPLETED
    ended_at = session.ended_at or session.arrived_at
    return is_late and ended_at > clock.now() - LATE_CODE_WITHIN


def _is_left(session: Session, found: Submission) -> bool:
    """Whether the participant returned the participation, or ran out of time before the end."""
    is_late = found.state == SubmissionState.TIMED_OUT and session.outcome != Outcome.COMPLETED
    return is_late or found.state == SubmissionState.RETURNED


def _leave_unpaid(intent: Intent, found: Submission) -> None:
    """Nothing is owed there for a participation that was given back: the answers that were
    approved here count, and it stays as it is there."""
    text = _(
        "It is {state} there, so that it is neither approved nor rejected there and nothing is "
        "paid. If it is to be paid all the same, approve it there."
    )
    with transaction.atomic():
        leave_session(session=intent.session, state=SAME[found.state])
        _note(intent, State.REFUSED, text.format(state=found.state.value.replace("_", " ")))


def _decided(intent: Intent) -> None:
    """The verdict stands there, and so here, on all that the participant handed in: they are paid
    for it, or not, at once."""
    is_approved = intent.kind == Kind.APPROVE
    take_over(intent.session, Session.State.APPROVED if is_approved else Session.State.REJECTED)
    _note(intent, State.DONE)


def _verdict(intent: Intent, found: Submission) -> Verdict:
    if intent.kind == Kind.REJECT:
        by_default = intent.session.connection.settings.get("rejection_category", "OTHER")
        category = intent.basis.get("category", by_default)
        return Rejection(intent.text, RejectionCategory(category))
    return Reversal() if found.state == SubmissionState.REJECTED else Approval()


def _pay(intent: Intent, found: Submission, recruiter: Recruiter) -> None:
    assert intent.amount is not None
    others = Intent.objects.filter(session=intent.session, kind=Kind.BONUS)
    if others.filter(state__in=[State.SENT, State.UNCERTAIN]).exists():
        return  # which of two was paid could not be told
    if _shows(intent, found):
        _paid(intent)  # whoever said that it was not done has overlooked it
        return
    currency = intent.session.connection.settings.get("currency", "")
    if intent.currency != currency:
        _note(intent, State.REFUSED, _("The account there is in {one}.").format(one=currency))
        return
    study = intent.session.study.external_id
    try:
        prepared = recruiter.bonus_prepare(study, [Bonus(found.id, intent.amount)])
    except Uncertain as problem:  # nothing is paid by a set-up, which may be made again
        raise Unreachable(str(problem)) from problem
    basis = {
        "before": [str(one) for one in found.bonuses],
        "prepared": prepared.id,
        "total": str(prepared.total),
    }
    if not _claim(intent, basis):
        return
    recruiter.bonus_pay(prepared.id)
    _paid(intent)


def _shows(bonus: Intent, found: Submission) -> bool:
    """Whether it is there, of one that was asked for before."""
    if "prepared" not in bonus.basis:
        return False
    new = Counter(found.bonuses) - Counter(map(Decimal, bonus.basis["before"]))
    return bonus.amount in new


def _claim(intent: Intent, basis: Mapping[str, Any] | None = None) -> bool:
    """Whether this process is the one that calls; committed before the call."""
    intent.basis, intent.sent_at = dict(basis or {}), clock.now()
    rows = Intent.objects.filter(pk=intent.pk, state=State.WRITTEN)
    return bool(rows.update(state=State.SENT, sent_at=intent.sent_at, basis=intent.basis))


@transaction.atomic
def _paid(intent: Intent) -> None:
    """A bonus was paid: what it cost is written beside the ledger, once."""
    RecruiterCharge.objects.get_or_create(
        connection=intent.connection,
        kind=RecruiterCharge.Kind.BONUS,
        external_id=intent.basis["prepared"],
        defaults={
            "study": intent.session.study,
            "session": intent.session,
            "currency": intent.currency,
            "amount": Decimal(intent.basis["total"]),
            "created_at": clock.now(),
        },
    )
    _note(intent, State.DONE)


def _note(intent: Intent, state: str, problem: str = "") -> bool:
    """Write down what came of a call; whether that was not known already."""
    done_at = clock.now() if state in (State.DONE, State.REFUSED) else None
    # Of the call that this process knows: another may have been made since it looked.
    rows = Intent.objects.filter(pk=intent.pk, sent_at=intent.sent_at)
    rows = rows.exclude(state__in=[State.DONE, State.REFUSED])
    return bool(rows.update(state=state, problem=problem, done_at=done_at))
