"""A HIT type's HITs as a study at a recruiter that has an API: drafted, published after its cost
was typed back, paused, extended, stopped.

Everything is written here first. Where an answer is lost it is looked for: a draft by our token,
which is its internal name; a transition by the study's state; places are said as a total.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q
from django.urls import reverse
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter
from marketplace.hits.payers import let_recruiter_pay
from marketplace.models import (
    Assignment,
    Hit,
    HitType,
    Outcome,
    PaidBy,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
)
from marketplace.recruiting.codes import create_codes
from marketplace.recruiting.connections import recruiter_of
from marketplace.recruiting.port import Recruiter
from marketplace.recruiting.problems import RecruiterProblem, Uncertain
from marketplace.recruiting.records import Code, Cost, PostedStudy, StudyDraft, StudyState
from marketplace.recruiting.studies import MOST_ITEMS, PROLIFIC
from marketplace.users import User

State = RecruitedStudy.State
PUBLISHED = (StudyState.ACTIVE, StudyState.PUBLISHING)
MOST_MINUTES = 1439
GONE = (Assignment.Status.RETURNED, Assignment.Status.ABANDONED, Assignment.Status.REJECTED)
# What participants read whose place is asked back, since there is nothing to pay for.
RETURN_REASONS = {
    Outcome.NO_CONSENT: "You did not agree to take part.",
    Outcome.INCOMPATIBLE_DEVICE: "The study does not work on this device.",
    Outcome.SCREENED_OUT: "The study is for others than you.",
    Outcome.NO_MORE_ITEMS: "Others have done all of the work meanwhile.",
}
STATES = {
    StudyState.ACTIVE: State.ACTIVE,
    StudyState.PUBLISHING: State.ACTIVE,
    StudyState.AWAITING_REVIEW: State.ACTIVE,
    StudyState.PAUSED: State.PAUSED,
    StudyState.STOPPED: State.STOPPED,
}


@dataclass(frozen=True)
class Posting:
    """What a requester decides about a study that is posted."""

    reward: Decimal
    minutes: int
    items_per_session: int = 1
    places: int = 0  # 0: as many as the judgments that are wanted need
    devices: tuple[str, ...] = ()


def places_for(hit_type: HitType, items_per_session: int) -> int:
    """Places for all judgments that are still wanted: those divided by a participant's HITs."""
    taken = Count("assignments", filter=~Q(assignments__status__in=GONE))
    hits = Hit.objects.in_group(hit_type).filter(expiration__gt=clock.now()).listed()
    wanted = sum(
        max(0, one["max_assignments"] - one["taken"])
        for one in hits.annotate(taken=taken).values("max_assignments", "taken")
    )
    return math.ceil(wanted / items_per_session)


def draft_study(
    *,
    connection: RecruiterConnection,
    hit_type: HitType,
    values: Posting,
    user: User | None = None,
) -> tuple[RecruitedStudy, Cost]:
    """A study of this HIT type as a draft at the recruiter, and what it will cost there."""
    recruiter = _recruiter(connection)
    places = values.places or places_for(hit_type, values.items_per_session)
    _check(connection, hit_type, values, places)
    study = _written(connection, hit_type, values, user)
    try:
        cost = recruiter.cost(values.reward, places)
        posted = _drafted(recruiter, study, values, places)
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem)) from problem
    RecruitedStudy.objects.filter(pk=study.pk).update(external_id=posted.id)
    study.external_id = posted.id
    return study, cost


def publish_study(
    *, study: RecruitedStudy, reward: Decimal, confirmed: Decimal, user: User | None = None
) -> Cost:
    """Publish a draft, once whoever pays has typed back what it costs. From then on the recruiter
    pays for the HIT type."""
    recruiter = _recruiter(study.connection)
    try:
        posted = recruiter.study(study.external_id)
        cost = recruiter.cost(reward, posted.places)
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem)) from problem
    if cost.total != confirmed:
        text = _("%(name)s asks %(total)s %(currency)s for it. Type this amount to publish.")
        facts = {"name": study.connection.name, "total": cost.total, "currency": cost.currency}
        raise InvalidParameter(text % facts)
    with transaction.atomic():
        if study.hit_type.paid_by == PaidBy.LEDGER:
            let_recruiter_pay(study.hit_type)
        note("study.publish", subject=study.name, user=user, requester=study.requester)
    if posted.state == StudyState.DRAFT:
        _done(study, recruiter, recruiter.publish, PUBLISHED)
    _charge(study, cost)
    _follow_state(study, recruiter)
    return cost


def pause_study(*, study: RecruitedStudy, user: User | None = None) -> None:
    """Let nobody in for a while, neither there nor here."""
    _move(study, "pause", StudyState.PAUSED, user)


def resume_study(*, study: RecruitedStudy, user: User | None = None) -> None:
    """Let participants in again."""
    _move(study, "resume", StudyState.ACTIVE, user)


def stop_study(*, study: RecruitedStudy, user: User | None = None) -> None:
    """Let nobody in any more; who is at work finishes."""
    _move(study, "stop", StudyState.STOPPED, user)


def set_places(*, study: RecruitedStudy, total: int, user: User | None = None) -> None:
    """Have so many places in all; said twice it is the same."""
    recruiter = _recruiter(study.connection)
    try:
        recruiter.set_places(study.external_id, total)
    except Uncertain:
        if recruiter.study(study.external_id).places != total:
            recruiter.set_places(study.external_id, total)
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem)) from problem
    detail = {"places": total}
    note("study.places", subject=study.name, user=user, requester=study.requester, detail=detail)
    _follow_state(study, recruiter)


def _recruiter(connection: RecruiterConnection) -> Recruiter:
    recruiter = recruiter_of(connection)
    if recruiter is None:
        raise InvalidParameter(_("This connection has no token: connect it first."))
    return recruiter


def _check(
    connection: RecruiterConnection, hit_type: HitType, values: Posting, places: int
) -> None:
    if connection.requester_id != hit_type.requester_id:
        raise InvalidParameter(_("A study is of a HIT type of the requester's own."))
    if not 1 <= values.items_per_session <= MOST_ITEMS:
        raise InvalidParameter(_("A participation has 1 to %(n)s HITs.") % {"n": MOST_ITEMS})
    if places < 1:
        raise InvalidParameter(_("Nothing is left to be judged: no place is needed."))
    if values.minutes < 1 or _most_minutes(values.minutes) > MOST_MINUTES:
        raise InvalidParameter(_("A participation takes from a minute to less than a day."))
    if values.reward <= 0 or values.reward != values.reward.quantize(Decimal("0.01")):
        raise InvalidParameter(_("The reward is an amount of whole pence or cents above 0."))


def _most_minutes(minutes: int) -> int:
    """The least that Prolific takes: 2 + 2t + 2 √t."""
    return math.ceil(2 + 2 * minutes + 2 * math.sqrt(minutes))


@transaction.atomic
def _written(
    connection: RecruiterConnection, hit_type: HitType, values: Posting, user: User | None
) -> RecruitedStudy:
    """The study as it is kept here before anybody is called."""
    columns = {name: value for name, value in PROLIFIC.items() if name.endswith("_parameter")}
    study = RecruitedStudy.objects.create(
        requester=hit_type.requester,
        connection=connection,
        hit_type=hit_type,
        name=hit_type.title[:100],
        state=State.DRAFT,
        items_per_session=values.items_per_session,
        maximum_seconds=60 * _most_minutes(values.minutes),
        created_at=clock.now(),
        **columns,
    )
    create_codes(study, redirect_url=PROLIFIC["redirect_url"])
    note("study.draft", subject=study.name, user=user, requester=study.requester)
    return study


def _drafted(
    recruiter: Recruiter, study: RecruitedStudy, values: Posting, places: int
) -> PostedStudy:
    """The draft there: made, or found by our token where the answer was lost."""
    project = study.connection.settings.get("project", "")
    draft = StudyDraft(
        token=study.token,
        title=study.hit_type.title,
        description=study.hit_type.description,
        url=f"{settings.SITE_URL}{reverse('marketplace:arrive', args=[study.token])}",
        reward=values.reward,
        places=places,
        minutes=values.minutes,
        maximum_minutes=_most_minutes(values.minutes),
        codes=tuple(
            Code(
                Outcome(one.outcome),
                one.code,
                request_return=RETURN_REASONS.get(Outcome(one.outcome), ""),
            )
            for one in study.codes.order_by("pk")
        ),
        project=project,
        devices=values.devices,
        labels=("annotation",),
    )
    try:
        return recruiter.draft(draft)
    except Uncertain:
        found = recruiter.find_studies(study.token, project)
        return found[0] if found else recruiter.draft(draft)


def _codes(study: RecruitedStudy) -> list[tuple[Outcome, str]]:
    rows = study.codes.order_by("pk").values_list("outcome", "code")
    return [(Outcome(outcome), code) for outcome, code in rows]


def _done(
    study: RecruitedStudy,
    recruiter: Recruiter,
    move: Callable[[str], None],
    wanted: tuple[StudyState, ...],
) -> None:
    """Make a transition; where no answer says so, the study's state does."""
    try:
        try:
            move(study.external_id)
        except Uncertain:
            if recruiter.study(study.external_id).state not in wanted:
                move(study.external_id)
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem)) from problem


def _move(study: RecruitedStudy, name: str, wanted: StudyState, user: User | None) -> None:
    recruiter = _recruiter(study.connection)
    if recruiter.study(study.external_id).state != wanted:
        _done(study, recruiter, getattr(recruiter, name), (wanted,))
    note(f"study.{name}", subject=study.name, user=user, requester=study.requester)
    _follow_state(study, recruiter)


def _follow_state(study: RecruitedStudy, recruiter: Recruiter) -> None:
    state = STATES.get(recruiter.study(study.external_id).state)
    if state is not None:
        study.state = state
        study.save(update_fields=["state"])


def _charge(study: RecruitedStudy, cost: Cost) -> None:
    """What publishing cost there, beside the ledger."""
    RecruiterCharge.objects.get_or_create(
        connection=study.connection,
        kind=RecruiterCharge.Kind.STUDY,
        external_id=study.external_id,
        defaults={
            "study": study,
            "currency": cost.currency,
            "amount": cost.total,
            "created_at": clock.now(),
        },
    )
