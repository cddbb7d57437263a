"""Each minute, what changed at each recruiter is followed, and what waits for it is sent."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from django.utils.translation import gettext as _

from error_codes import CodedText
from marketplace import clock
from marketplace.exceptions import RecruiterBusy
from marketplace.models import Intent, RecruiterConnection
from marketplace.recruiting.attached import follow_attached
from marketplace.recruiting.charges import charge_rewards
from marketplace.recruiting.connections import recruiter_of
from marketplace.recruiting.dispatch import send_all
from marketplace.recruiting.events import follow_events
from marketplace.recruiting.groups import follow_blocks, follow_groups, require_named_groups
from marketplace.recruiting.outcomes_there import follow_submissions
from marketplace.recruiting.posting import follow_studies
from marketplace.recruiting.problems import RecruiterProblem
from marketplace.recruiting.prolific import Prolific
from marketplace.recruiting.requests import end_abandoned_actions
from marketplace.recruiting.settlements import settle_all
from marketplace.recruiting.subscriptions import keep_subscribed
from marketplace.recruiting.turns import Patience, turn_at

logger = logging.getLogger(__name__)
State = Intent.State


@dataclass
class Called:
    """What came of calling all recruiters."""

    n_done: int = 0
    n_refused: int = 0
    n_uncertain: int = 0
    n_waiting: int = 0
    n_followed: int = 0
    problems: tuple[CodedText, ...] = ()


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
    """What is done each minute, in this order; none of it needs what comes before."""

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
    """News only make it sooner: nothing waits for them."""
    with suppress(RecruiterProblem):
        keep_subscribed(connection, recruiter)
