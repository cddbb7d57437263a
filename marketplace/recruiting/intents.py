"""What is written down of an intent: that it is claimed, done, refused, or uncertain.

An intent is claimed (written -> sent, committed) before the call, so that of two processes one
makes it, and one that is killed leaves it claimed: after a while that is as uncertain as a lost
answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction

from marketplace import clock
from marketplace.models import Intent, RecruiterCharge, RecruiterConnection, Session
from marketplace.recruiting.turns import require_turn

# A bonus that has not shown itself by then is a person's to decide.
SHOWN_WITHIN = timedelta(hours=1)
Kind, State = Intent.Kind, Intent.State
DECISIONS = (Kind.APPROVE, Kind.REJECT)


def intents_of(connection: RecruiterConnection, *states: str) -> list[Intent]:
    """Those of a connection that are in one of these states, the oldest first."""
    rows = connection.intents.filter(state__in=states).order_by("pk")
    return list(rows.select_related("session__study", "session__connection__requester"))


def claim(intent: Intent, basis: Mapping[str, Any] | None = None) -> bool:
    """Whether this process is the one that calls; committed before the call."""
    require_turn()
    intent.basis, intent.sent_at = dict(basis or {}), clock.now()
    rows = Intent.objects.filter(pk=intent.pk, state=State.WRITTEN)
    return bool(rows.update(state=State.SENT, sent_at=intent.sent_at, basis=intent.basis))


def note(intent: Intent, state: str, problem: str = "") -> bool:
    """Write down what came of a call; whether that was not known already."""
    done_at = clock.now() if state in (State.DONE, State.REFUSED) else None
    # Of the call that this process knows: another may have been made since it looked.
    rows = Intent.objects.filter(pk=intent.pk, sent_at=intent.sent_at)
    rows = rows.exclude(state__in=[State.DONE, State.REFUSED])
    return bool(rows.update(state=state, problem=problem, done_at=done_at))


@transaction.atomic
def note_paid(intent: Intent) -> None:
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
    note(intent, State.DONE)


@transaction.atomic
def note_refused(intent: Intent, problem: str) -> None:
    """A participation whose decision was refused there is not decided, nor is its place free: it is
    followed until somebody decides there, or time does."""
    # Whoever decides holds the session first, too.
    Session.objects.select_for_update(no_key=True).filter(pk=intent.session_id).first()
    if note(intent, State.REFUSED, problem) and intent.kind in DECISIONS:
        decided = {Kind.APPROVE: Session.State.APPROVED, Kind.REJECT: Session.State.REJECTED}
        mine = Session.objects.filter(pk=intent.session_id, state=decided[Kind(intent.kind)])
        mine.update(state=Session.State.FINISHED)


def note_unsent(intent: Intent, before: tuple[dict[str, Any], datetime | None]) -> None:
    """The call that was claimed did not leave, or was not let in: it is still to be made, and what
    is known of the calls before it stands again. Of a bonus what was there before this one is
    forgotten, or the next of the same amount would be taken for it."""
    claimed_at = intent.sent_at
    intent.basis, intent.sent_at = before
    if claimed_at != intent.sent_at:
        rows = Intent.objects.filter(pk=intent.pk, state=State.SENT, sent_at=claimed_at)
        rows.update(state=State.WRITTEN, basis=intent.basis, sent_at=intent.sent_at, problem="")


def may_still_show(bonus: Intent) -> bool:
    """Whether it is too soon to say that a bonus without an answer was not paid."""
    return bonus.sent_at is not None and bonus.sent_at > clock.now() - SHOWN_WITHIN
