"""Each minute, what changed at each recruiter is followed, and what waits for it is sent."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.utils import timezone
from django.utils.translation import gettext as _

from encryption import UndecryptableSecret
from error_codes import CodedText
from marketplace import clock
from marketplace.exceptions import RecruiterBusy
from marketplace.models import Intent, RecruiterConnection, RecruiterEvent, Session
from marketplace.people.erasure import erased_among
from marketplace.recruiting.charges import charge_rewards
from marketplace.recruiting.connections import keep_subscribed, recruiter_of
from marketplace.recruiting.dispatch import send_all, settle_all
from marketplace.recruiting.groups import follow_blocks, follow_groups, require_named_groups
from marketplace.recruiting.posting import follow_studies, follow_study
from marketplace.recruiting.prolific import Prolific
from marketplace.recruiting.records import NotFound, NotVerified, RecruiterProblem
from marketplace.recruiting.requests import end_abandoned_actions
from marketplace.recruiting.rules import follow_attached
from marketplace.recruiting.submissions import follow_submission, follow_submissions, is_followed
from marketplace.recruiting.turns import Patience, turn_at
from work.request import request_job

# A recruiter's news: received, verified and written down once, followed later by asking.
#
# That news are lost, doubled, late or in another order changes nothing: what they say is not read,
# only what they are about, and everything is asked for each minute anyway. They make it sooner.

MOST_AT_ONCE = 500
ASKED_AGAIN_AFTER = timedelta(minutes=5)
# Longer than anything is sent again.
KEPT = timedelta(days=7)


def receive_event(public_id: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Store the event and request a job that follows it; return whether it is new. Raises
    NotVerified if the recruiter did not send it."""
    connection = RecruiterConnection.objects.filter(public_id=public_id).first()
    recruiter = recruiter_of(connection) if connection else None
    if connection is None or recruiter is None:
        raise NotVerified("Nobody sends news to this address.")
    try:
        # The wire's time is the machine's, wherever the marketplace's clock stands.
        event = recruiter.verify_webhook(headers, body, now=timezone.now())
    except NotVerified:
        # The workspace may have a new secret: it is asked for at the next call, but not at each
        # for as long as somebody sends what is not signed.
        recently = clock.now() - ASKED_AGAIN_AFTER
        old = RecruiterConnection.objects.filter(webhooks_checked_at__lt=recently)
        old.filter(pk=connection.pk).update(webhooks_checked_at=None)
        raise
    if event.submission and erased_among(connection, [event.submission]):
        return False  # nothing of it is kept
    _row, is_new = RecruiterEvent.objects.get_or_create(
        connection=connection,
        event_id=event.id,
        defaults={
            "kind": event.kind,
            "submission_id": event.submission,
            "external_study_id": event.study,
            "received_at": clock.now(),
        },
    )
    if is_new:
        request_job(kind="follow_recruiter_events")
    return is_new


def follow_all_events() -> int:
    n_changed = 0
    waiting = RecruiterConnection.objects.filter(events__followed_at=None, events__isnull=False)
    for connection in waiting.distinct().order_by("pk"):
        # The call of each minute says what is in the way, and follows them.
        with suppress(RecruiterProblem, RecruiterBusy, UndecryptableSecret), turn_at(connection):
            recruiter = recruiter_of(connection)
            n_changed += follow_events(connection, recruiter) if recruiter else 0
    return n_changed


def follow_events(connection: RecruiterConnection, recruiter: Prolific) -> int:
    changed = Counter[int]()

    def follow(event: RecruiterEvent) -> None:
        with suppress(NotFound, ValueError):  # there is no such thing there any more
            changed[event.pk] += _follow(event, connection, recruiter)
        event.followed_at = clock.now()
        event.save(update_fields=["followed_at"])

    with Patience() as patience:
        for event in connection.events.filter(followed_at=None).order_by("pk")[:MOST_AT_ONCE]:
            patience.try_to(partial(follow, event), key=f"event:{event.pk}")
    return changed.total()


def delete_old_events(now: datetime) -> int:
    n, _by_model = RecruiterEvent.objects.filter(received_at__lt=now - KEPT).delete()
    return n


def _follow(event: RecruiterEvent, connection: RecruiterConnection, recruiter: Prolific) -> bool:
    if event.submission_id:
        sessions = Session.objects.filter(connection=connection)
        session = sessions.filter(submission_id=event.submission_id).first()
        if session is None or not is_followed(session, clock.now()):
            return False
        return follow_submission(session, recruiter.submission(event.submission_id))
    study = connection.studies.filter(external_id=event.external_study_id or None).first()
    return study is not None and follow_study(study, recruiter)


logger = logging.getLogger(__name__)
State = Intent.State


@dataclass
class Called:
    n_done: int = 0
    n_refused: int = 0
    n_uncertain: int = 0
    n_waiting: int = 0
    n_followed: int = 0
    problems: tuple[CodedText, ...] = ()


def call_recruiters() -> Called:
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
            text = text.format(recruiter=connection, error=name)
            called.problems += (CodedText(text, code="cannot_be_called"),)
    return called


def _call(connection: RecruiterConnection, recruiter: Prolific, called: Called) -> None:
    problem = ""
    try:
        with turn_at(connection) as turn, Patience() as patience:
            for step in _steps(connection, recruiter, called):
                turn.go_on()
                patience.try_to(step)
    except RecruiterBusy as busy:  # whoever calls it follows and sends the same
        called.problems += (CodedText(str(busy), code=busy.code),)
        return
    except RecruiterProblem as error:  # the rest, or what it was of, is tried again in a minute
        problem = str(error)
        called.problems += (CodedText(f"{connection}: {problem}", code=error.code),)
    RecruiterConnection.objects.filter(pk=connection.pk).update(
        problem=problem, called_at=clock.now()
    )
    counts = Counter(connection.intents.values_list("state", flat=True))
    called.n_done += counts[State.DONE]
    called.n_refused += counts[State.REFUSED]
    called.n_uncertain += counts[State.UNCERTAIN] + counts[State.SENT]
    called.n_waiting += counts[State.WRITTEN]


def _steps(
    connection: RecruiterConnection, recruiter: Prolific, called: Called
) -> tuple[Callable[[], object], ...]:
    # No step needs an earlier one.
    def follow() -> None:
        called.n_followed += follow_submissions(connection, recruiter)

    return (
        partial(end_abandoned_actions, connection),
        partial(_keep_subscribed, connection, recruiter),
        partial(follow_events, connection, recruiter),
        follow,
        partial(settle_all, connection, recruiter),
        partial(send_all, connection, recruiter),
        partial(follow_studies, connection, recruiter),
        partial(charge_rewards, connection, recruiter),
        partial(follow_attached, connection),
        partial(follow_groups, connection, recruiter),
        partial(follow_blocks, connection, recruiter),
        partial(require_named_groups, connection),
    )


def _keep_subscribed(connection: RecruiterConnection, recruiter: Prolific) -> None:
    # Events only speed things up: nothing waits for them.
    with suppress(RecruiterProblem):
        keep_subscribed(connection, recruiter)
