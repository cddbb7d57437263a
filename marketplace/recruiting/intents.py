"""What is written down of an intent: that it is claimed, done, refused, or uncertain.

An intent is claimed (written -> sent, committed) before the call, so that of two processes one
makes it, and one that is killed leaves it claimed: after a while that is as uncertain as a lost
answer.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.db import IntegrityError, transaction
from django.db.models import Case, Exists, OuterRef, When

from marketplace import clock
from marketplace.exceptions import (
    DuplicateRequest,
    InvalidAssignmentState,
    InvalidParameter,
    first_or_raise,
    require,
)
from marketplace.hits import review
from marketplace.hits.review import LARGEST_BONUS_USD, Bonus
from marketplace.models import (
    Assignment,
    Intent,
    Outcome,
    PaidBy,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    Requester,
    Session,
    SessionItem,
    WorkerAccount,
)
from marketplace.money.amounts import CENT
from marketplace.people.messages import send_message
from marketplace.recruiting.connections import require_turn

# A bonus that has not shown itself by then is a person's to decide.
SHOWN_WITHIN = timedelta(hours=1)
Kind, State = Intent.Kind, Intent.State
# The state of a session after each decision.
DECIDED = {Kind.APPROVE: Session.State.APPROVED, Kind.REJECT: Session.State.REJECTED}
DECISIONS = tuple(DECIDED)


def intents_of(connection: RecruiterConnection, *states: str) -> list[Intent]:
    rows = connection.intents.filter(state__in=states).order_by("pk")
    return list(rows.select_related("session__study", "session__connection__requester"))


def claim(intent: Intent, basis: Mapping[str, Any] | None = None) -> bool:
    """Whether this process makes the call; committed before the call."""
    require_turn()
    intent.basis, intent.sent_at = dict(basis or {}), clock.now()
    rows = Intent.objects.filter(pk=intent.pk, state=State.WRITTEN)
    return bool(rows.update(state=State.SENT, sent_at=intent.sent_at, basis=intent.basis))


def note(intent: Intent, state: str, problem: str = "") -> bool:
    """Record a call's result; return whether it was new."""
    done_at = clock.now() if state in (State.DONE, State.REFUSED) else None
    # Of the call that this process knows: another may have been made since it looked.
    return bool(
        Intent.objects.filter(pk=intent.pk, sent_at=intent.sent_at)
        .exclude(state__in=[State.DONE, State.REFUSED])
        .update(state=state, problem=problem, done_at=done_at)
    )


@transaction.atomic
def note_paid(intent: Intent) -> None:
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
    note(intent, State.DONE)


@transaction.atomic
def note_refused(intent: Intent, problem: str) -> None:
    """Record a refusal. A refused decision is no decision: its session is followed until somebody
    decides at the recruiter, or time does."""
    # Whoever decides holds the session first, too.
    Session.objects.locked().filter(pk=intent.session_id).first()
    if note(intent, State.REFUSED, problem) and intent.kind in DECISIONS:
        Session.objects.filter(pk=intent.session_id, state=DECIDED[Kind(intent.kind)]).update(
            state=Session.State.FINISHED
        )


def note_unsent(intent: Intent, before: tuple[dict[str, Any], datetime | None]) -> None:
    # The call never left, so it is still to be made. A bonus's new basis is forgotten, or the next
    # of the same amount would be taken for it.
    claimed_at = intent.sent_at
    intent.basis, intent.sent_at = before
    if claimed_at != intent.sent_at:
        Intent.objects.filter(pk=intent.pk, state=State.SENT, sent_at=claimed_at).update(
            state=State.WRITTEN, basis=intent.basis, sent_at=intent.sent_at, problem=""
        )


def may_still_show(bonus: Intent) -> bool:
    """Whether it is too early to say that an unanswered bonus was not paid."""
    return bonus.sent_at is not None and bonus.sent_at > clock.now() - SHOWN_WITHIN


# What a requester decides about participants, through the protocol or on pages: written down as
# intents for their recruiter, in the transaction of the decision itself.
#
# All HITs of a session are one submission at its recruiter, which is approved or rejected once. The
# first decision on one of them is that of the submission; one that contradicts it is refused. A
# bonus is the recruiter's to pay: nothing moves in the ledger.

# Prolific's own rule; its API refuses what is shorter.
SHORTEST_PROLIFIC_REASON = 100
SessionState = Session.State


@transaction.atomic
def approve_assignment(
    *, requester: Requester, public_id: str, feedback: str, override_rejection: bool
) -> None:
    session = _session(requester, public_id)
    if session is not None and _is_decided(session, Kind.REJECT) and not override_rejection:
        raise InvalidAssignmentState(_contradiction(session, "rejected"))
    review.approve_assignment(
        requester=requester,
        public_id=public_id,
        feedback=feedback,
        override_rejection=override_rejection,
    )
    if session is not None:
        _decide(session, Kind.APPROVE, feedback, SessionState.APPROVED)


@transaction.atomic
def reject_assignment(*, requester: Requester, public_id: str, feedback: str) -> None:
    session = _session(requester, public_id)
    if session is not None:
        if _is_decided(session, Kind.APPROVE):
            raise InvalidAssignmentState(_contradiction(session, "approved"))
        is_prolific = session.connection.kind == RecruiterConnection.Kind.PROLIFIC
        require(
            not is_prolific or len(feedback) >= SHORTEST_PROLIFIC_REASON,
            InvalidParameter(
                f"Prolific asks for a reason of at least {SHORTEST_PROLIFIC_REASON} characters in "
                f"RequesterFeedback; yours has {len(feedback)}.",
                code="short_reason",
            ),
        )
    review.reject_assignment(requester=requester, public_id=public_id, feedback=feedback)
    if session is not None:
        _decide(session, Kind.REJECT, feedback, SessionState.REJECTED)


@transaction.atomic
def request_bonus(*, requester: Requester, bonus: Bonus) -> bool:
    """Record a participant's bonus, once per token. False if the worker is paid here."""
    session = _session(requester, bonus.assignment_id)
    if session is None or session.worker.paid_by == PaidBy.LEDGER:
        return False
    require(
        session.worker.worker_id == bonus.worker_id,
        InvalidParameter(
            f"The assignment {bonus.assignment_id} is not one of the worker {bonus.worker_id}."
        ),
    )
    require(
        CENT <= bonus.amount_usd <= LARGEST_BONUS_USD,
        InvalidParameter(f"BonusAmount must be from ${CENT} to ${LARGEST_BONUS_USD:,}."),
    )
    currency = session.connection.settings.get("currency", "USD")
    require(
        currency == "USD",
        InvalidParameter(
            f"{session.connection.name} pays in {currency}, and BonusAmount is in USD. Pay this "
            f"bonus at {session.connection.name}."
        ),
    )
    key = f"bonus:{bonus.token or uuid4().hex}"
    known = Intent.objects.filter(connection=session.connection, key=key).first()
    if known is None or known.state == Intent.State.REFUSED:
        _require_called(session.connection)
    if known is not None:
        _ask_again_if_refused(known, session, bonus)
        return True
    _write(session, Kind.BONUS, key, text=bonus.reason, amount=bonus.amount_usd, currency=currency)
    return True


def _require_called(connection: RecruiterConnection) -> None:
    # It would wait until the account is connected again, and may be paid by hand meanwhile.
    require(
        connection.kind != RecruiterConnection.Kind.PROLIFIC or connection.encrypted_token,
        InvalidParameter(
            f"{connection.name} is disconnected, and pays no bonus that is requested here: connect "
            f"it first, or pay the bonus there.",
            code="disconnected",
        ),
    )


def _ask_again_if_refused(known: Intent, session: Session, bonus: Bonus) -> None:
    # Nothing was paid by a refused bonus, so its token may be used again, with another amount, too.
    again = Intent.objects.filter(pk=known.pk, state=Intent.State.REFUSED, session=session)
    facts: dict[str, Any] = {"problem": "", "done_at": None, "sent_at": None, "basis": {}}
    facts |= {"amount": bonus.amount_usd, "text": bonus.reason}
    require(
        again.update(state=Intent.State.WRITTEN, **facts),
        DuplicateRequest("bonus payment", str(known.pk)),
    )


@transaction.atomic
def request_bonus_in(
    currency: str, *, study: RecruitedStudy, worker_id: str, bonus: Decimal, reason: str, token: str
) -> Intent:
    """Record a bonus in the account's currency, once per token, for the session of
    `participation_of`."""
    there = study.connection.settings.get("currency", "")
    require(
        currency == there and currency,
        InvalidParameter(
            f"The account at {study.connection.name} is in {there}.", code="other_currency"
        ),
    )
    require_bonus_amount(bonus)
    name = f"bonus:{token}"
    known = Intent.objects.filter(connection=study.connection_id, key=name)
    if (asked := known.select_related("session__worker").first()) is not None:
        return _same_bonus(asked, worker_id, bonus)
    _require_called(study.connection)
    session = _locked(participation_of(study, worker_id).pk)
    # The same request, which is repeated where no answer came, may have been at work meanwhile.
    if (asked := known.select_related("session__worker").first()) is not None:
        return _same_bonus(asked, worker_id, bonus)
    return _write(session, Kind.BONUS, name, text=reason, amount=bonus, currency=currency)


def require_bonus_amount(bonus: Decimal) -> None:
    require(
        CENT <= bonus <= LARGEST_BONUS_USD and bonus == bonus.quantize(CENT),
        InvalidParameter(
            f"A bonus is from {CENT} to {LARGEST_BONUS_USD:,}, in whole cents.", code="bad_amount"
        ),
    )


def participation_of(study: RecruitedStudy, worker_id: str) -> Session:
    """The session that a bonus is paid for: the worker's latest in this study, else in another
    study of the same HITs at this recruiter."""
    return first_or_raise(
        Session.objects.filter(
            connection=study.connection_id,
            study__hit_type=study.hit_type_id,
            worker__worker_id=worker_id,
        )
        .select_related("study")
        .order_by(Case(When(study=study.pk, then=0), default=1), "-pk"),
        InvalidParameter(
            f"{worker_id} is no participant of this study, nor of another of its HITs at "
            f"{study.connection.name}, which pays nobody else a bonus.",
            code="unknown_participant",
        ),
    )


def _same_bonus(asked: Intent, worker_id: str, bonus: Decimal) -> Intent:
    require(
        (asked.session.worker.worker_id, asked.amount) == (worker_id, bonus),
        InvalidParameter(
            "This request_token was another bonus's: use one for each.", code="token_used"
        ),
    )
    return asked


@transaction.atomic
def request_messages(
    *, requester: Requester, subject: str, text: str, worker_ids: Sequence[str]
) -> list[str]:
    """Record a message to each of these workers who is the requester's participant; return the ids
    of the others. Those read messages here, or their recruiter is not called."""
    participants = WorkerAccount.objects.filter(
        paid_by=PaidBy.RECRUITER, worker_id__in=worker_ids, sessions__study__requester=requester
    ).exclude(sessions__connection__encrypted_token="")
    written = set()
    for worker in participants.distinct():
        rows = Session.objects.of(requester).filter(worker=worker).select_related("connection")
        _write(
            rows.latest("pk"), Kind.MESSAGE, f"message:{uuid4().hex}", text=f"{subject}\n\n{text}"
        )
        written.add(worker.worker_id)
    return [worker_id for worker_id in worker_ids if worker_id not in written]


def message_worker(requester: Requester, worker: WorkerAccount, subject: str, text: str) -> None:
    """Write to the worker, by the recruiter if it is a participant."""
    if worker.paid_by == PaidBy.RECRUITER:
        request_messages(
            requester=requester, subject=subject, text=text, worker_ids=[worker.worker_id]
        )
    else:
        send_message(requester=requester, worker=worker, subject=subject, text=text)


def approve_overdue() -> int:
    others = SessionItem.objects.filter(session=OuterRef("pk"))
    others = others.exclude(assignment__status=Assignment.Status.APPROVED)
    # One that was refused there stands among what somebody must look after.
    written = Intent.objects.filter(session=OuterRef("pk"), kind=Kind.APPROVE)
    # Who ran out of time there has all of the work here, and may enter the code late.
    keys = list(
        Session.objects.filter(
            state__in=(SessionState.FINISHED, SessionState.TIMED_OUT), outcome=Outcome.COMPLETED
        )
        .filter(~Exists(others), ~Exists(written))
        .values_list("pk", flat=True)
    )
    for key in keys:
        with transaction.atomic():
            _decide(_locked(key), Kind.APPROVE, "", SessionState.APPROVED)
    return len(keys)


def _session(requester: Requester, public_id: str) -> Session | None:
    """The assignment's session, locked. Sessions are always locked before HITs."""
    rows = Assignment.objects.of(requester).filter(public_id=public_id)
    key = rows.values_list("session_item__session", flat=True).first()
    return None if key is None else _locked(key)


def _locked(key: int) -> Session:
    return Session.objects.locked().select_related("connection", "worker").get(pk=key)


def _is_decided(session: Session, kind: str) -> bool:
    last = last_decision(session)
    return last is not None and last.kind == kind


def last_decision(session: Session) -> Intent | None:
    return Intent.objects.filter(session=session, kind__in=DECISIONS).order_by("-pk").first()


def _decide(session: Session, kind: str, feedback: str, state: str) -> None:
    last = last_decision(session)
    # One that its recruiter refused, as for want of money, is made again by the next.
    if last is not None and last.kind == kind and last.state != Intent.State.REFUSED:
        return
    is_unsent = False
    if kind == Kind.APPROVE:  # a rejection that was taken back before it was sent is none
        is_unsent = bool(
            Intent.objects.filter(
                session=session, kind=Kind.REJECT, state=Intent.State.WRITTEN
            ).delete()[0]
        )
        # Until it is sent, a study that is over is looked at again.
        RecruitedStudy.objects.filter(pk=session.study_id, n_payable_there__isnull=False).update(
            n_payable_there=None
        )
    n = Intent.objects.filter(session=session, kind=kind).count()
    # Whoever approves what stands as rejected here knows it, but of what never left here.
    is_override = kind == Kind.APPROVE and session.state == SessionState.REJECTED and not is_unsent
    basis = {"overrides": True} if is_override else {}
    _write(session, kind, f"{kind}:{session.pk}:{n}", text=feedback, basis=basis)
    if session.state == SessionState.STARTED:
        return  # the participant is still at work: it is decided when they have finished
    session.save_values(state=state)


def _write(
    session: Session,
    kind: str,
    key: str,
    *,
    text: str,
    amount: Decimal | None = None,
    currency: str = "",
    basis: dict[str, bool] | None = None,
) -> Intent:
    intent = Intent(
        connection=session.connection,
        session=session,
        kind=kind,
        key=key,
        text=text,
        amount=amount,
        currency=currency,
        basis=basis or {},
        created_at=clock.now(),
    )
    try:
        with transaction.atomic():
            intent.save(force_insert=True)
    except IntegrityError as error:  # the same token came in on another connection
        raise DuplicateRequest("request", key) from error
    return intent


def _contradiction(session: Session, decision: str) -> str:
    return (
        f"All HITs of this participant are one submission at {session.connection.name}, "
        f"which you have {decision}. It can't be decided otherwise for one of them."
    )
