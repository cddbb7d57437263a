"""Intents are sent to their recruiter, each once.

Verdicts may be repeated, since a submission is approved or rejected once; a bonus is paid as often
as it is asked for, so it is never asked for again: what the submission had before, and what was to
be added, tell whether it was paid. A message is sent once at most.
"""

from collections import Counter
from datetime import UTC, timedelta
from decimal import Decimal
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _, gettext_lazy

from encryption import decrypt
from marketplace import clock
from marketplace.exceptions import InvalidParameter, require
from marketplace.models import Intent, Outcome, RecruiterConnection, Session
from marketplace.recruiting.connections import Patience
from marketplace.recruiting.intents import (
    DECIDED,
    DECISIONS,
    SHOWN_WITHIN,
    Kind,
    State,
    claim,
    intents_of,
    may_still_show,
    note,
    note_paid,
    note_refused,
    note_unsent,
)
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.records import (
    NotAuthorized,
    Refused,
    RejectionCategory,
    Submission,
    SubmissionState,
    Uncertain,
    Unreachable,
    paid_bonuses_of,
)
from marketplace.recruiting.sessions import leave_session
from marketplace.recruiting.submissions import (
    SAME,
    TIMED_OUT,
    follow_submission,
    is_done_by_others,
    is_to_be_looked_at,
    settle_doubt,
    take_over,
)

# Who handed in all of the work after the time there may enter the code later than that.
LATE_CODE_WITHIN = timedelta(days=1)
# Why a decision was refused.
WITHDREW = gettext_lazy(
    "The participant withdrew before this was approved there, and was told that nothing is paid. "
    "If it is to be paid all the same, approve it there."
)
REJECTED_BY_HAND = gettext_lazy(
    "It was rejected there by hand before this was sent, and stays so. If it is to be approved all "
    "the same, send it again."
)
APPROVED_BEFORE = gettext_lazy("It was approved there before: it is approved here, too.")
RAN_OUT = gettext_lazy(
    "Its time there ran out before it was rejected there, so that nothing is paid. If its code is "
    "entered there all the same, it is rejected there then; approve it here if it is to be paid."
)
LEFT = gettext_lazy(
    "It is {state} there, so that it is neither approved nor rejected there and nothing is paid. "
    "If it is to be paid all the same, approve it there."
)
SCREENED_OUT = gettext_lazy(
    "It was paid there as one who may not take part, and is neither approved nor rejected. If more "
    "is to be paid, pay a bonus."
)


def send_all(connection: RecruiterConnection, recruiter: Prolific) -> None:
    with Patience() as patience:
        waiting = intents_of(connection, State.WRITTEN)
        # What they are paid for first; of a kind that fails each time the others are sent.
        for intent in sorted(waiting, key=lambda one: one.kind not in DECISIONS):
            patience.try_to(
                partial(_send_one, intent, recruiter), key=f"{intent.kind}:{intent.session_id}"
            )


def _send_one(intent: Intent, recruiter: Prolific) -> None:
    before = intent.basis, intent.sent_at
    try:
        _send(intent, recruiter)
    except Uncertain as problem:
        note(intent, State.UNCERTAIN, str(problem))
    except (Unreachable, NotAuthorized):
        note_unsent(intent, before)
        raise
    except (Refused, ValueError) as problem:
        note_refused(intent, str(problem))


def _send(intent: Intent, recruiter: Prolific) -> None:
    # Since the round began the participant may have withdrawn, or handed in the rest.
    intent.session.refresh_from_db(fields=["state", "outcome", "ended_at"])
    if intent.kind == Kind.MESSAGE:
        participant = decrypt(intent.session.encrypted_participant_id)
        if claim(intent):
            recruiter.message(intent.session.study.external_id, participant, intent.text)
            note(intent, State.DONE)
        return
    found = recruiter.submission(intent.session.submission_id)
    if intent.kind == Kind.BONUS:
        _pay(intent, found, recruiter)
    else:
        _decide(intent, found, recruiter)


def _decide(intent: Intent, found: Submission, recruiter: Prolific) -> None:
    wanted = SubmissionState.APPROVED if intent.kind == Kind.APPROVE else SubmissionState.REJECTED
    if found.state in (
        SubmissionState.RESERVED,
        SubmissionState.ACTIVE,
        SubmissionState.PROCESSING,
    ) or _may_be_late(intent.session, found):
        return  # the participant has not come back yet: later
    if found.state == wanted:
        _decided(intent)
        return
    if _is_left(intent.session, found):
        _leave_unpaid(intent, found)
        return
    if why := _why_not_approved(intent, found):
        _refuse_approval(intent, found, why)
        return
    if found.state == SubmissionState.SCREENED_OUT:
        follow_submission(intent.session, found)
        note(intent, State.REFUSED, str(SCREENED_OUT))
        return
    if intent.kind == Kind.REJECT and (_has_come(intent) or _is_decided_again(intent)):
        _withdraw_rejection(intent)
        return
    if why := _why_not_rejected(intent, found):
        _refuse_rejection(intent, found, why)
        return
    if intent.kind == Kind.APPROVE and is_to_be_looked_at(intent.session):
        return  # it is among the doubts
    if claim(intent, intent.basis):
        _send_verdict(intent, found, recruiter)
        _decided(intent)


def _refuse_rejection(intent: Intent, found: Submission, why: str) -> None:
    follow_submission(intent.session, found)
    if found.state == SubmissionState.TIMED_OUT:
        Intent.objects.filter(pk=intent.pk).update(basis=intent.basis | {TIMED_OUT: True})
    note(intent, State.REFUSED, why)


def _refuse_approval(intent: Intent, found: Submission, why: str) -> None:
    if found.state == SubmissionState.REJECTED:
        # Whoever sends it again after this knows that it was rejected there.
        Intent.objects.filter(pk=intent.pk).update(basis=intent.basis | {"was_rejected": True})
    note_refused(intent, why)


def _is_decided_again(decision: Intent) -> bool:
    return Intent.objects.filter(
        session=decision.session_id, kind__in=DECISIONS, pk__gt=decision.pk
    ).exists()


def _has_come(intent: Intent) -> bool:
    has_come = intent.session.outcome == Outcome.COMPLETED
    return "category" in intent.basis and has_come and not is_done_by_others(intent.session)


@transaction.atomic
def _withdraw_rejection(intent: Intent) -> None:
    # Whoever decides holds the session first, too.
    Session.objects.locked().filter(pk=intent.session_id).first()
    if Intent.objects.filter(pk=intent.pk, state=State.WRITTEN).delete()[0]:
        Session.objects.filter(pk=intent.session_id, state=Session.State.REJECTED).update(
            state=Session.State.FINISHED
        )


def _why_not_approved(intent: Intent, found: Submission) -> str:
    if intent.kind != Kind.APPROVE:
        return ""
    if intent.session.outcome == Outcome.NO_CONSENT:
        return str(WITHDREW)
    if found.state == SubmissionState.REJECTED and not _is_taken_back(intent):
        return str(REJECTED_BY_HAND)
    return ""


def _why_not_rejected(intent: Intent, found: Submission) -> str:
    if intent.kind == Kind.REJECT and found.state == SubmissionState.APPROVED:
        return str(APPROVED_BEFORE)
    if intent.kind == Kind.REJECT and found.state == SubmissionState.TIMED_OUT:
        # It stays rejected here, so that its place is free as it is there.
        return str(RAN_OUT)
    return ""


def _is_taken_back(approval: Intent) -> bool:
    # Whoever approves knew of the rejection: it was made or recorded here.
    ours = Intent.objects.filter(session=approval.session_id, kind=Kind.REJECT, state=State.DONE)
    return bool(approval.basis.get("overrides")) or ours.exists()


def _may_be_late(session: Session, found: Submission) -> bool:
    is_late = found.state == SubmissionState.TIMED_OUT and session.outcome == Outcome.COMPLETED
    return is_late and (session.ended_at or session.arrived_at) > clock.now() - LATE_CODE_WITHIN


def _is_left(session: Session, found: Submission) -> bool:
    is_late = found.state == SubmissionState.TIMED_OUT and session.outcome != Outcome.COMPLETED
    return is_late or found.state == SubmissionState.RETURNED


def _leave_unpaid(intent: Intent, found: Submission) -> None:
    # Nothing is owed there for a returned participation. Answers approved here still count.
    with transaction.atomic():
        leave_session(session=intent.session, state=SAME[found.state])
        note(intent, State.REFUSED, LEFT.format(state=found.state.value.replace("_", " ")))


def _decided(intent: Intent) -> None:
    # A verdict is on everything that the participant handed in.
    is_approved = intent.kind == Kind.APPROVE
    take_over(intent.session, Session.State.APPROVED if is_approved else Session.State.REJECTED)
    note(intent, State.DONE)


def _send_verdict(intent: Intent, found: Submission, recruiter: Prolific) -> None:
    if intent.kind == Kind.REJECT:
        by_default = intent.session.connection.settings.get("rejection_category", "OTHER")
        recruiter.reject(
            found.id, intent.text, RejectionCategory(intent.basis.get("category", by_default))
        )
    elif found.state == SubmissionState.REJECTED:
        recruiter.take_rejection_back(found.id)
    else:
        recruiter.approve(found.id)


def _pay(intent: Intent, found: Submission, recruiter: Prolific) -> None:
    assert intent.amount is not None
    others = Intent.objects.filter(session=intent.session, kind=Kind.BONUS)
    if others.filter(state__in=[State.SENT, State.UNCERTAIN]).exists():
        return  # which of two was paid could not be told
    tried = others.exclude(pk=intent.pk).filter(state=State.WRITTEN, basis__has_key="prepared")
    if "prepared" not in intent.basis and tried.exists():
        return  # one that was sent before goes first: it may show still
    if "prepared" in intent.basis and _is_overtaken(intent):
        return
    if _is_to_show(intent, found):
        return  # one that was paid before: it would be taken for this one
    if _shows(intent, found):
        note_paid(intent)  # whoever said that it was not done has overlooked it
        return
    currency = intent.session.connection.settings.get("currency", "")
    if intent.currency != currency:
        note(intent, State.REFUSED, _("The account there is in {one}.").format(one=currency))
        return
    study = intent.session.study.external_id
    try:
        prepared = recruiter.bonus_prepare(study, found.id, intent.amount)
    except Uncertain as problem:  # nothing is paid by a set-up, which may be made again
        raise Unreachable(str(problem)) from problem
    basis = {
        "before": [str(one) for one in paid_bonuses_of(found)],
        "prepared": prepared.id,
        "total": str(prepared.total),
    }
    if not claim(intent, basis):
        return
    recruiter.bonus_pay(prepared.id)
    note_paid(intent)


def _is_to_show(bonus: Intent, found: Submission) -> bool:
    # A paid bonus shows at the recruiter within the hour.
    others = Intent.objects.filter(session=bonus.session_id, kind=Kind.BONUS, state=State.DONE)
    paid = Counter(filter(None, others.values_list("amount", flat=True)))
    is_recent = others.filter(sent_at__gt=clock.now() - SHOWN_WITHIN).exists()
    return is_recent and bool(paid - Counter(paid_bonuses_of(found)))


def _is_overtaken(bonus: Intent) -> bool:
    others = Intent.objects.filter(session=bonus.session_id, kind=Kind.BONUS, state=State.DONE)
    since = max(filter(None, (bonus.sent_at, clock.now() - SHOWN_WITHIN)))
    return others.filter(sent_at__gt=since).exists()


def _shows(bonus: Intent, found: Submission) -> bool:
    # Others may have been paid since.
    if "prepared" not in bonus.basis or bonus.sent_at is None:
        return False
    since = Counter(
        amount
        for amount in Intent.objects.filter(
            session=bonus.session_id, kind=Kind.BONUS, state=State.DONE, sent_at__gt=bonus.sent_at
        ).values_list("amount", flat=True)
        if amount is not None
    )
    new = Counter(paid_bonuses_of(found)) - Counter(map(Decimal, bonus.basis["before"])) - since
    return bonus.amount in new


# Calls whose answer was lost are settled: by looking at the recruiter what became of them, or by
# a person who did.

# A claim of this age is of a process that was killed.
CLAIM_LASTS = timedelta(minutes=10)
PERHAPS_SENT = gettext_lazy("It may have been sent: no answer came.")
MAY_SHOW = gettext_lazy("No answer came. Whether it was paid shows in an hour.")
NOT_SHOWN = gettext_lazy("It was not paid within an hour, as far as can be seen.")


@transaction.atomic
def decide_uncertain(*, intent: Intent, was_done: bool) -> None:
    """Record what a person found at the recruiter: an unanswered call was done, or it was not and
    is sent again; a refused decision can be sent again, too. Repeating it changes nothing."""
    # Whoever decides holds the session first, too.
    Session.objects.locked().get(pk=intent.session_id)
    held = Intent.objects.select_for_update().get(pk=intent.pk)
    is_open = held.state in (State.UNCERTAIN, State.REFUSED)
    if not is_open and held.basis.get("was_said_done") == was_done:
        return
    _settle_as(held, was_done=was_done)
    held.refresh_from_db(fields=["basis"])
    Intent.objects.filter(pk=held.pk).update(basis=held.basis | {"was_said_done": was_done})


def _settle_as(held: Intent, *, was_done: bool) -> None:
    if held.state == State.REFUSED and held.kind in DECISIONS and not was_done:
        _send_again(held)
        return
    require(
        held.state == State.UNCERTAIN,
        InvalidParameter(
            _("This is not uncertain: it is {state}.").format(state=held.state),
            code="not_uncertain",
        ),
    )
    if held.kind == Kind.DOUBT:
        settle_doubt(doubt=held, is_left=was_done)
    elif not was_done:
        if held.kind == Kind.BONUS and may_still_show(held):
            shown_at = (held.sent_at or clock.now()) + SHOWN_WITHIN
            raise InvalidParameter(
                _("Whether it was paid shows within an hour: say so after {time} UTC.").format(
                    time=f"{shown_at.astimezone(UTC):%H:%M}"
                ),
                code="may_still_show",
            )
        note(held, State.WRITTEN)
    else:
        _note_done(held)


def _note_done(held: Intent) -> None:
    if held.kind == Kind.BONUS:
        note_paid(held)
        return
    if held.kind in DECISIONS and not _is_decided_again(held):
        take_over(held.session, DECIDED[Kind(held.kind)])
    note(held, State.DONE)


def _send_again(refused: Intent) -> None:
    require(
        not _is_decided_again(refused),
        InvalidParameter(_("It was decided again since."), code="decided_again"),
    )
    Session.objects.filter(pk=refused.session_id, state=Session.State.FINISHED).update(
        state=DECIDED[Kind(refused.kind)]
    )
    rows = Intent.objects.filter(pk=refused.pk, state=State.REFUSED)
    # Of an approval that was refused for another reason nobody has said what else was done there.
    basis = refused.basis | ({"overrides": True} if "was_rejected" in refused.basis else {})
    rows.update(state=State.WRITTEN, problem="", done_at=None, sent_at=None, basis=basis)


def settle_all(connection: RecruiterConnection, recruiter: Prolific) -> None:
    now = clock.now()
    with Patience() as patience:
        for intent in intents_of(connection, State.SENT, State.UNCERTAIN):
            if intent.kind == Kind.DOUBT:
                continue  # a person's to decide
            is_abandoned = intent.sent_at is None or intent.sent_at <= now - CLAIM_LASTS
            if intent.state == State.UNCERTAIN or is_abandoned:
                settle = partial(_settle_one, intent, recruiter)
                patience.try_to(settle, key=f"{intent.kind}:{intent.session_id}")


def _settle_one(intent: Intent, recruiter: Prolific) -> None:
    try:
        _settle(intent, recruiter)
    except NotAuthorized:
        raise
    except Refused as problem:  # it is not there any more
        note(intent, State.UNCERTAIN, str(problem))


def _settle(intent: Intent, recruiter: Prolific) -> None:
    if intent.kind == Kind.MESSAGE:
        note(intent, State.UNCERTAIN, str(PERHAPS_SENT))
        return
    found = recruiter.submission(intent.session.submission_id)
    if intent.kind == Kind.BONUS:
        _settle_bonus(intent, found)
    else:
        note(intent, State.WRITTEN)  # the state there is looked at before it is asked for again


def _settle_bonus(intent: Intent, found: Submission) -> None:
    if "prepared" not in intent.basis:  # killed before anything that pays was called
        note(intent, State.WRITTEN)
        return
    before = Counter(map(Decimal, intent.basis["before"]))
    there = Counter(paid_bonuses_of(found))
    if there == before + Counter([intent.amount]):
        note_paid(intent)
    elif there != before:
        note(
            intent,
            State.UNCERTAIN,
            _(
                "Bonuses that were paid there: {amounts}. Look there whether this is one of them."
            ).format(amounts=", ".join(f"{amount:.2f}" for amount in paid_bonuses_of(found))),
        )
    elif not may_still_show(intent):
        note(intent, State.UNCERTAIN, str(NOT_SHOWN))
    else:
        note(intent, State.UNCERTAIN, str(MAY_SHOW))
