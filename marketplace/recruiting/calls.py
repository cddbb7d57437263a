"""What background jobs do at recruiters: requested actions, and each minute's round of calls.

One action per study is under way at a time. A request that comes again meanwhile changes nothing;
an action that a job did not finish is done by another job, which is the same.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from encryption import UndecryptableSecret
from error_codes import CodedText, require
from marketplace import clock
from marketplace.exceptions import InvalidParameter, MarketplaceError, RecruiterBusy
from marketplace.models import (
    HitType,
    Intent,
    RecruitedStudy,
    RecruiterConnection,
    RecruiterEvent,
    Requester,
    Session,
)
from marketplace.people.erasure import erased_among
from marketplace.recruiting.charges import charge_rewards
from marketplace.recruiting.connections import (
    Patience,
    keep_subscribed,
    offer_prolific,
    recruiter_of,
    required_recruiter,
    try_offer,
    turn_at,
)
from marketplace.recruiting.dispatch import send_all, settle_all
from marketplace.recruiting.drafts import Posting, discard_draft, send_draft, write_draft
from marketplace.recruiting.intents import participation_of, require_bonus_amount
from marketplace.recruiting.participants import follow_blocks, follow_groups, require_named_groups
from marketplace.recruiting.posting import (
    follow_studies,
    follow_study,
    pause_study,
    price_places,
    publish_study,
    resume_study,
    set_places,
    stop_study,
)
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.records import Cost, NotFound, NotVerified, RecruiterProblem
from marketplace.recruiting.rules import follow_attached
from marketplace.recruiting.submissions import follow_submission, follow_submissions, is_followed
from work.models import Job
from work.tasks import request_job

# What a bonus costs with the recruiter's fees, as it says itself, before anybody pays it.
#
# Set up and never paid, a bonus costs nothing there: whoever pays it later has another set up.


def price_bonus(*, study: RecruitedStudy, worker_id: str, bonus: Decimal) -> Cost:
    """What a bonus of this amount costs, fees included. It is set up at the recruiter and not
    paid, which is free."""
    recruiter = required_recruiter(study.connection)
    require_bonus_amount(bonus)
    session = participation_of(study, worker_id)
    try:
        prepared = recruiter.bonus_prepare(session.study.external_id, session.submission_id, bonus)
    except (RecruiterProblem, ValueError) as problem:
        raise InvalidParameter(
            _("What the bonus costs was not heard: {problem}").format(problem=problem),
            code="unknown_price",
        ) from problem
    study.save_values(quoted_bonus=bonus, quoted_bonus_cost=prepared.total)
    return Cost(prepared.total, prepared.currency)


CONNECT, ACT = "connect_recruiter", "act_on_recruited_study"
CUT_OFF = gettext_lazy("“{action}” was cut off. Look how the study stands, and do it again.")
Action, State = RecruitedStudy.Action, RecruitedStudy.State
# In which states of a study what can be done.
POSSIBLE = {
    Action.DRAFT: {State.DRAFT},
    Action.PRICE: {State.ACTIVE, State.PAUSED, State.STOPPED},
    Action.PUBLISH: {State.DRAFT},
    Action.PLACES: {State.ACTIVE, State.PAUSED, State.STOPPED},
    Action.PAUSE: {State.ACTIVE},
    Action.RESUME: {State.PAUSED},
    Action.STOP: {State.ACTIVE, State.PAUSED},
    Action.DISCARD: {State.DRAFT},
    Action.BONUS: {State.ACTIVE, State.PAUSED, State.STOPPED},
}
ACTS: dict[str, Callable[[RecruitedStudy, Mapping[str, Any]], object]] = {
    Action.DRAFT: lambda study, values: send_draft(study=study),
    Action.PRICE: lambda study, values: price_places(study=study, total=values["places"]),
    Action.PUBLISH: lambda study, values: publish_study(
        study=study, confirmed=Decimal(values["confirmed"])
    ),
    Action.PLACES: lambda study, values: set_places(
        study=study, total=values["places"], confirmed=Decimal(values["confirmed"])
    ),
    Action.PAUSE: lambda study, values: pause_study(study=study),
    Action.RESUME: lambda study, values: resume_study(study=study),
    Action.STOP: lambda study, values: stop_study(study=study),
    Action.DISCARD: lambda study, values: discard_draft(study=study),
    Action.BONUS: lambda study, values: price_bonus(
        study=study, worker_id=values["worker_id"], bonus=Decimal(values["amount"])
    ),
}


def request_connection(
    *, requester: Requester, name: str, token: str, workspace: str, project: str = ""
) -> RecruiterConnection:
    connection = offer_prolific(
        requester=requester, name=name, token=token, workspace=workspace, project=project
    )
    request_job(kind=CONNECT, arguments={"connection": connection.pk})
    return connection


@transaction.atomic
def request_draft(
    *,
    connection: RecruiterConnection,
    hit_type: HitType,
    values: Posting,
    request_token: str,
) -> RecruitedStudy:
    """Write a study and request its draft. The same token returns the same study, whose failed
    draft is requested again."""
    Requester.objects.select_for_update(no_key=True).get(pk=hit_type.requester_id)
    known = RecruitedStudy.objects.filter(
        requester=hit_type.requester_id, request_token=request_token
    ).first()
    if known is not None:
        is_undrafted = known.state == State.DRAFT and not known.external_id
        if is_undrafted and not known.action and known.problem:
            return request_action(study=known, action=Action.DRAFT)
        return known
    return request_action(
        study=write_draft(
            connection=connection, hit_type=hit_type, values=values, request_token=request_token
        ),
        action=Action.DRAFT,
    )


@transaction.atomic
def request_action(
    *,
    study: RecruitedStudy,
    action: str,
    values: Mapping[str, Any] | None = None,
    request_token: str = "",
) -> RecruitedStudy:
    """Request an action on the study at its recruiter, unless the same is under way or was done
    under this token."""
    held = (
        RecruitedStudy.objects.select_for_update(no_key=True, of=("self",))
        .select_related("connection")
        .get(pk=study.pk)
    )
    if request_token and held.action_token == request_token and (held.action or not held.problem):
        return held
    wanted = (action, dict(values or {}))
    if held.action:
        if (held.action, held.action_values) == wanted:
            return held
        raise InvalidParameter(
            _("Something else is under way: {action}. Wait until it is done.").format(
                action=held.get_action_display()
            ),
            code="under_way",
        )
    _check(held, action)
    held.action, held.action_values = wanted
    held.action_number, held.problem = held.action_number + 1, ""
    held.action_token = request_token
    held.save(update_fields=["action", "action_values", "action_number", "action_token", "problem"])
    request_job(kind=ACT, arguments={"study": held.pk, "number": held.action_number})
    return held


def perform_connection(connection_id: int) -> None:
    connection = (
        RecruiterConnection.objects.select_related("requester").filter(pk=connection_id).first()
    )
    if connection is not None:
        try_offer(connection=connection)


def perform_action(study_id: int, number: int, *, is_last_try: bool = True) -> None:
    rows = RecruitedStudy.objects.select_related("connection", "hit_type", "requester")
    study = rows.filter(pk=study_id, action_number=number).exclude(action="").first()
    if study is None:
        return
    try:
        with turn_at(study.connection):
            ACTS[study.action](study, study.action_values)
    except RecruiterBusy:
        raise
    except (MarketplaceError, RecruiterProblem) as refused:
        _end(study, str(refused))
    except Exception:
        if is_last_try:
            _end(study, _("Unexpected error: the operator's log has the rest."))
        raise
    else:
        _end(study, "")


def end_abandoned_actions(connection: RecruiterConnection) -> None:
    """End actions whose job was killed at each try: otherwise the study is blocked forever."""
    # In this order: a job is there before its action is seen.
    for study in list(connection.studies.exclude(action="")):
        if (
            not Job.objects.unfinished()
            .filter(kind=ACT, arguments__study=study.pk, arguments__number=study.action_number)
            .exists()
        ):
            _end(study, CUT_OFF.format(action=study.get_action_display()))


def _check(study: RecruitedStudy, action: str) -> None:
    require(
        study.connection.encrypted_token,
        InvalidParameter(_("This connection has no token: connect it first."), code="disconnected"),
    )
    require(
        study.state in POSSIBLE[Action(action)],
        InvalidParameter(
            _("The study is not in a state for this: {state}.").format(
                state=study.get_state_display()
            ),
            code="wrong_state",
        ),
    )
    require(
        action in (Action.DRAFT, Action.DISCARD) or study.external_id,
        InvalidParameter(_("There is no draft of it at the recruiter.")),
    )


def _end(study: RecruitedStudy, problem: str) -> None:
    RecruitedStudy.objects.filter(pk=study.pk, action_number=study.action_number).update(
        action="", action_values={}, problem=problem
    )


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
        RecruiterConnection.objects.filter(
            webhooks_checked_at__lt=clock.now() - ASKED_AGAIN_AFTER, pk=connection.pk
        ).update(webhooks_checked_at=None)
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
        event.save_values(followed_at=clock.now())

    with Patience() as patience:
        for event in connection.events.filter(followed_at=None).order_by("pk")[:MOST_AT_ONCE]:
            patience.try_to(partial(follow, event), key=f"event:{event.pk}")
    return changed.total()


def delete_old_events(now: datetime) -> int:
    return RecruiterEvent.objects.filter(received_at__lt=now - KEPT).delete()[0]


def _follow(event: RecruiterEvent, connection: RecruiterConnection, recruiter: Prolific) -> bool:
    if event.submission_id:
        session = Session.objects.filter(
            connection=connection, submission_id=event.submission_id
        ).first()
        if session is None or not is_followed(session, clock.now()):
            return False
        return follow_submission(session, recruiter.submission(event.submission_id))
    study = connection.studies.filter(external_id=event.external_study_id or None).first()
    return study is not None and follow_study(study, recruiter)


logger = logging.getLogger(__name__)


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
            text = _("{recruiter} cannot be called ({error}): the site's log has the rest.").format(
                recruiter=connection, error=type(error).__name__
            )
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
    called.n_done += counts[Intent.State.DONE]
    called.n_refused += counts[Intent.State.REFUSED]
    called.n_uncertain += counts[Intent.State.UNCERTAIN] + counts[Intent.State.SENT]
    called.n_waiting += counts[Intent.State.WRITTEN]


def _steps(
    connection: RecruiterConnection, recruiter: Prolific, called: Called
) -> tuple[Callable[[], object], ...]:
    # No step needs an earlier one.
    def follow() -> None:
        called.n_followed += follow_submissions(connection, recruiter)

    return (
        partial(end_abandoned_actions, connection),
        partial(keep_subscribed, connection, recruiter),
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
