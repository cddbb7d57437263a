"""What is requested to be done at a recruiter, written down for a background job to do.

Of a study one thing is under way at a time. A request that comes again while it is under way
changes nothing; what a job did not bring to its end, another does again, which is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _, gettext_lazy

from marketplace.exceptions import InvalidParameter, MarketplaceError, RecruiterBusy
from marketplace.models import HitType, RecruitedStudy, RecruiterConnection, Requester
from marketplace.recruiting.connections import offer_prolific, required_recruiter, try_offer
from marketplace.recruiting.drafts import Posting, discard_draft, send_draft, write_draft
from marketplace.recruiting.intents import participation_of, require_bonus_amount
from marketplace.recruiting.posting import (
    pause_study,
    price_places,
    publish_study,
    resume_study,
    set_places,
    stop_study,
)
from marketplace.recruiting.records import Bonus, Cost, RecruiterProblem
from marketplace.recruiting.turns import turn_at
from work.models import Job
from work.request import request_job

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
        prepared = recruiter.bonus_prepare(
            session.study.external_id, [Bonus(session.submission_id, bonus)]
        )
    except (RecruiterProblem, ValueError) as problem:
        text = _("What the bonus costs was not heard: {problem}")
        raise InvalidParameter(text.format(problem=problem), code="unknown_price") from problem
    study.quoted_bonus, study.quoted_bonus_cost = bonus, prepared.total
    study.save(update_fields=["quoted_bonus", "quoted_bonus_cost"])
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
    mine = RecruitedStudy.objects.filter(requester=hit_type.requester_id)
    known = mine.filter(request_token=request_token).first()
    if known is not None:
        is_undrafted = known.state == State.DRAFT and not known.external_id
        if is_undrafted and not known.action and known.problem:
            return request_action(study=known, action=Action.DRAFT)
        return known
    study = write_draft(
        connection=connection, hit_type=hit_type, values=values, request_token=request_token
    )
    return request_action(study=study, action=Action.DRAFT)


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
    held = _held(study.pk)
    if request_token and held.action_token == request_token and (held.action or not held.problem):
        return held
    wanted = (action, dict(values or {}))
    if held.action:
        if (held.action, held.action_values) == wanted:
            return held
        text = _("Something else is under way: {action}. Wait until it is done.")
        raise InvalidParameter(text.format(action=held.get_action_display()), code="under_way")
    _check(held, action)
    held.action, held.action_values = wanted
    held.action_number, held.problem = held.action_number + 1, ""
    held.action_token = request_token
    columns = ["action", "action_values", "action_number", "action_token", "problem"]
    held.save(update_fields=columns)
    request_job(kind=ACT, arguments={"study": held.pk, "number": held.action_number})
    return held


def perform_connection(connection_id: int) -> None:
    rows = RecruiterConnection.objects.select_related("requester")
    connection = rows.filter(pk=connection_id).first()
    if connection is not None:
        try_offer(connection=connection)


def perform_action(study_id: int, number: int, *, is_last_try: bool = True) -> None:
    """Do the action requested under this number, and store why if it was not done."""
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
        of_study = Job.objects.unfinished().filter(kind=ACT, arguments__study=study.pk)
        if not of_study.filter(arguments__number=study.action_number).exists():
            _end(study, CUT_OFF.format(action=study.get_action_display()))


def _held(study_id: int) -> RecruitedStudy:
    rows = RecruitedStudy.objects.select_for_update(no_key=True, of=("self",))
    return rows.select_related("connection").get(pk=study_id)


def _check(study: RecruitedStudy, action: str) -> None:
    if not study.connection.encrypted_token:
        text = _("This connection has no token: connect it first.")
        raise InvalidParameter(text, code="disconnected")
    if study.state not in POSSIBLE[Action(action)]:
        text = _("The study is not in a state for this: {state}.")
        raise InvalidParameter(text.format(state=study.get_state_display()), code="wrong_state")
    if action != Action.DRAFT and action != Action.DISCARD and not study.external_id:
        raise InvalidParameter(_("There is no draft of it at the recruiter."))


def _end(study: RecruitedStudy, problem: str) -> None:
    rows = RecruitedStudy.objects.filter(pk=study.pk, action_number=study.action_number)
    rows.update(action="", action_values={}, problem=problem)
