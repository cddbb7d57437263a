"""Calls whose answer was lost are settled: by looking at the recruiter what became of them, or by
a person who did."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.models import Intent, RecruiterConnection, Session
from marketplace.recruiting.dispatch import _is_decided_again
from marketplace.recruiting.doubts import settle_doubt
from marketplace.recruiting.intents import (
    DECISIONS,
    SHOWN_WITHIN,
    Kind,
    State,
    intents_of,
    may_still_show,
    note,
    note_paid,
)
from marketplace.recruiting.outcomes_there import take_over
from marketplace.recruiting.problems import NotAuthorized, Refused
from marketplace.recruiting.prolific import Prolific
from marketplace.recruiting.records import Submission, paid_bonuses_of
from marketplace.recruiting.turns import Patience

# A claim of this age is of a process that was killed.
CLAIM_LASTS = timedelta(minutes=10)
PERHAPS_SENT = gettext_lazy("It may have been sent: no answer came.")
MAY_SHOW = gettext_lazy("No answer came. Whether it was paid shows in an hour.")
NOT_SHOWN = gettext_lazy("It was not paid within an hour, as far as can be seen.")
DECIDED = {Kind.APPROVE: Session.State.APPROVED, Kind.REJECT: Session.State.REJECTED}


@transaction.atomic
def decide_uncertain(*, intent: Intent, was_done: bool) -> None:
    """What a person found at the recruiter of a call that nobody answered: it was done, or it was
    not and is to be sent again; so is a decision that was refused. Said twice it is the same."""
    # Whoever decides holds the session first, too.
    Session.objects.select_for_update(no_key=True).get(pk=intent.session_id)
    held = Intent.objects.select_for_update().get(pk=intent.pk)
    is_open = held.state in (State.UNCERTAIN, State.REFUSED)
    if not is_open and held.basis.get("was_said_done") == was_done:
        return
    _settle_as(held, was_done=was_done)
    held.refresh_from_db(fields=["basis"])
    basis = held.basis | {"was_said_done": was_done}
    Intent.objects.filter(pk=held.pk).update(basis=basis)


def _settle_as(held: Intent, *, was_done: bool) -> None:
    if held.state == State.REFUSED and held.kind in DECISIONS and not was_done:
        _send_again(held)
        return
    if held.state != State.UNCERTAIN:
        text = _("This is not uncertain: it is {state}.")
        raise InvalidParameter(text.format(state=held.state), code="not_uncertain")
    if held.kind == Kind.DOUBT:
        settle_doubt(doubt=held, is_left=was_done)
    elif not was_done:
        if held.kind == Kind.BONUS and may_still_show(held):
            text = _("Whether it was paid shows within an hour: say so after {time} UTC.")
            shown_at = (held.sent_at or clock.now()) + SHOWN_WITHIN
            at = f"{shown_at.astimezone(UTC):%H:%M}"
            raise InvalidParameter(text.format(time=at), code="may_still_show")
        note(held, State.WRITTEN)
    else:
        _note_done(held)


def _note_done(held: Intent) -> None:
    """A verdict is one on all that the participant handed in, as where it was heard of."""
    if held.kind == Kind.BONUS:
        note_paid(held)
        return
    if held.kind in DECISIONS and not _is_decided_again(held):
        take_over(held.session, DECIDED[Kind(held.kind)])
    note(held, State.DONE)


def _send_again(refused: Intent) -> None:
    """Have a decision that was refused once, as for want of money, made once more."""
    if _is_decided_again(refused):
        raise InvalidParameter(_("It was decided again since."), code="decided_again")
    finished = Session.objects.filter(pk=refused.session_id, state=Session.State.FINISHED)
    finished.update(state=DECIDED[Kind(refused.kind)])
    rows = Intent.objects.filter(pk=refused.pk, state=State.REFUSED)
    # Of an approval that was refused for another reason nobody has said what else was done there.
    overrides = {"overrides": True} if "was_rejected" in refused.basis else {}
    basis = refused.basis | overrides
    rows.update(state=State.WRITTEN, problem="", done_at=None, sent_at=None, basis=basis)


def settle_all(connection: RecruiterConnection, recruiter: Prolific) -> None:
    now = clock.now()
    with Patience() as patience:
        for intent in intents_of(connection, State.SENT, State.UNCERTAIN):
            if intent.kind == Kind.DOUBT:
                continue  # a person's to decide
            if intent.state == State.UNCERTAIN or _is_abandoned(intent, now):
                settle = partial(_settle_one, intent, recruiter)
                patience.try_to(settle, key=f"{intent.kind}:{intent.session_id}")


def _settle_one(intent: Intent, recruiter: Prolific) -> None:
    try:
        _settle(intent, recruiter)
    except NotAuthorized:
        raise
    except Refused as problem:  # it is not there any more
        note(intent, State.UNCERTAIN, str(problem))


def _is_abandoned(intent: Intent, now: datetime) -> bool:
    return intent.sent_at is None or intent.sent_at <= now - CLAIM_LASTS


def _settle(intent: Intent, recruiter: Prolific) -> None:
    """Look what became of a call without an answer."""
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
        said = ", ".join(f"{amount:.2f}" for amount in paid_bonuses_of(found))
        text = _("Bonuses that were paid there: {amounts}. Look there whether this is one of them.")
        note(intent, State.UNCERTAIN, text.format(amounts=said))
    elif not may_still_show(intent):
        note(intent, State.UNCERTAIN, str(NOT_SHOWN))
    else:
        note(intent, State.UNCERTAIN, str(MAY_SHOW))
