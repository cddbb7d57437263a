"""How a requester's recruiting stands: accounts, studies, who came, and calls to be looked after.

Nothing of it says who a participant is at the recruiter, but of calls, for owners, the submission;
and no token is in it.
"""

from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    When,
    Window,
)
from django.db.models.functions import RowNumber
from django.urls import reverse

from marketplace.exceptions import InvalidParameter, require
from marketplace.models import (
    Assignment,
    Intent,
    Outcome,
    RecruitedStudy,
    RecruiterConnection,
    Requester,
    Session,
    SessionItem,
)
from marketplace.recruiting.charges import charged_to
from marketplace.recruiting.intents import DECISIONS, SHOWN_WITHIN
from marketplace.recruiting.places import free_and_needed_of

MOST_CALLS, MOST_WITHDRAWN, MOST_DECISIONS, MOST_PARTICIPATIONS = 200, 1000, 1000, 1000
SESSIONS_AT_ONCE = 500
# What is before the token of a bonus.
BONUS_KEY = "bonus:"
# Whose participant has no place at the recruiter any more.
GIVEN_UP = (Session.State.RETURNED, Session.State.TIMED_OUT)
LIVE = (RecruitedStudy.State.ACTIVE, RecruitedStudy.State.PAUSED)


def recruiters_of(requester: Requester) -> list[dict[str, Any]]:
    names = ("account", "currency", "available", "workspace", "project")
    return [
        {
            "recruiter": one.public_id,
            "kind": one.kind,
            "name": one.name,
            "is_connected": bool(one.encrypted_token),
            "is_being_tried": bool(one.encrypted_offer),
            "problem": one.problem,
            "called_at": one.called_at and one.called_at.isoformat(),
        }
        | {name: one.settings.get(name, "") for name in names}
        for one in RecruiterConnection.objects.filter(requester=requester).order_by("pk")
    ]


def studies_of(studies: QuerySet[RecruitedStudy]) -> list[dict[str, Any]]:
    listed = list(
        studies.select_related("connection", "hit_type").prefetch_related("excluded").order_by("pk")
    )
    keys = [study.pk for study in listed]
    charges = charged_to(keys)
    at_work = Session.objects.filter(study__in=keys, state=Session.State.STARTED).order_by()
    counts = at_work.exclude(reported="").values_list("study").annotate(n=Count("pk"))
    entered, unsent, (sessions, waiting) = dict(counts), _unsent(keys), _counted(keys)
    places = free_and_needed_of([study for study in listed if study.state in LIVE])
    return [
        _study(study, sessions[study.pk], waiting.get(study.pk, 0))
        | {
            "charges": {kind: f"{n:f}" for kind, n in charges.get(study.pk, {}).items()},
            "unsent": unsent.get(study.pk, {}),
            "n_entered": entered.get(study.pk, 0),
        }
        # Its places that nobody has, and those that judgments need which nobody gives at the
        # moment; said while it is open.
        | dict(zip(("free", "needed"), places.get(study.pk, (None, None)), strict=True))
        for study in listed
    ]


def calls_of(studies: QuerySet[RecruitedStudy], *, has_ids: bool) -> list[dict[str, Any]]:
    """Uncertain calls, then refused ones, at most MOST_CALLS per study and kind. Uncertain ones
    are oldest first, since they expire first. Of refused ones bonuses are first: they count as
    paid unless listed."""
    rows = Intent.objects.filter(
        session__study__in=studies, state__in=(Intent.State.UNCERTAIN, Intent.State.REFUSED)
    ).select_related("session__study", "session__worker")
    is_refused = Case(
        When(state=Intent.State.REFUSED, kind=Intent.Kind.BONUS, then=1),
        When(state=Intent.State.REFUSED, then=2),
        default=0,
    )
    age = Case(
        When(state=Intent.State.REFUSED, then=-1 * F("pk")),
        default=F("pk"),
        output_field=BigIntegerField(),
    )
    first = rows.annotate(
        place=Window(RowNumber(), partition_by=[F("session__study"), is_refused], order_by=[age])
    ).filter(place__lte=MOST_CALLS)
    return [_call(one, has_ids=has_ids) for one in first.order_by(is_refused, age)]


def refused_bonuses_of(studies: QuerySet[RecruitedStudy]) -> list[dict[str, str]]:
    """All refused bonuses, newest first: a bonus not listed here counts as paid."""
    return [
        {
            "study": study,
            "worker_id": worker_id,
            "request_token": key.removeprefix(BONUS_KEY),
            "problem": problem,
        }
        for study, worker_id, key, problem in Intent.objects.filter(
            session__study__in=studies, kind=Intent.Kind.BONUS, state=Intent.State.REFUSED
        )
        .order_by("-pk")
        .values_list("session__study__token", "session__worker__worker_id", "key", "problem")
    ]


def withdrawn_of(studies: QuerySet[RecruitedStudy]) -> list[str]:
    """The newest assignments whose answers participants took back: requesters delete copies."""
    return list(
        Assignment.objects.filter(
            withdrawn_at__isnull=False, hit__hit_type__in=studies.values("hit_type")
        )
        .order_by("-withdrawn_at", "-pk")
        .values_list("public_id", flat=True)[:MOST_WITHDRAWN]
    )


def people_of(study: RecruitedStudy) -> dict[str, Any]:
    """An own lab's links, and who came by them: each invitation, then the newest who came by the
    shared link."""
    n_done = Count("items", filter=Q(items__assignment__status__in=Assignment.HANDED_IN_STATUSES))
    came = Session.objects.filter(study=study).annotate(n_hits=Count("items"), n_done=n_done)
    by_worker: dict[str, list[Any]] = {}
    for one in came.select_related("worker").order_by("pk"):
        by_worker.setdefault(one.worker.worker_id, []).append(one)
    people = []
    for invitation in study.invitations.select_related("worker").order_by("pk"):
        worker_id = invitation.worker.worker_id if invitation.worker else ""
        people.append(
            {
                "invitation": invitation.pk,
                "label": invitation.label,
                "link": _join_address(invitation.token),
                "is_revoked": invitation.revoked_at is not None,
            }
            | _work(worker_id, by_worker.pop(worker_id, []))
        )
    shared = list(by_worker.items())[-MOST_PARTICIPATIONS:]
    no_link = {"invitation": 0, "label": "", "link": "", "is_revoked": False}
    people += [no_link | _work(worker_id, sessions) for worker_id, sessions in shared]
    return {
        "study": study.token,
        "state": study.state,
        "items": study.items_per_session,
        "shared_link": _join_address(study.token) if study.is_shared else "",
        "people": people,
    }


def _join_address(token: str) -> str:
    return f"{settings.SITE_URL}{reverse('marketplace:arrive', args=[token])}"


def _work(worker_id: str, sessions: list[Any]) -> dict[str, Any]:
    return {
        "worker_id": worker_id,
        "state": sessions[-1].state if sessions else "",
        "outcome": sessions[-1].outcome if sessions else "",
        "n_hits": sum(one.n_hits for one in sessions),
        "n_done": sum(one.n_done for one in sessions),
        "arrived_at": sessions[0].arrived_at.isoformat() if sessions else None,
    }


def participations_of(studies: QuerySet[RecruitedStudy]) -> list[dict[str, str]]:
    """The newest with undecided work whose place was returned or timed out, or whose entered code
    is another outcome's."""
    undecided = SessionItem.objects.filter(
        session=OuterRef("pk"), assignment__status=Assignment.Status.SUBMITTED
    )
    is_other_code = ~Q(reported="") & ~Q(reported=F("outcome"))
    # Who ran out of time, and entered the code late, waits for a decision as anybody does.
    is_late = Q(
        state=Session.State.TIMED_OUT, reported=Outcome.COMPLETED, outcome=Outcome.COMPLETED
    )
    return [
        {
            "study": one.study.token,
            "worker_id": one.worker.worker_id,
            "state": one.state,
            "outcome": one.outcome,
            "reported": one.reported,
            "arrived_at": one.arrived_at.isoformat(),
        }
        for one in Session.objects.filter(
            (Q(state__in=GIVEN_UP) & ~is_late) | is_other_code, Exists(undecided), study__in=studies
        )
        .select_related("study", "worker")
        .order_by("-pk")[:MOST_PARTICIPATIONS]
    ]


def decisions_of(requester: Requester, *, after: str) -> tuple[list[dict[str, str]], str]:
    """The next decisions on participants' work, in order, and the value of `after` for the next
    call."""
    rows = Assignment.objects.filter(
        hit__hit_type__in=RecruitedStudy.objects.filter(requester=requester).values("hit_type"),
        status__in=Assignment.DECIDED_STATUSES,
        closed_at__isnull=False,
    )
    if after:
        at, _separator, key = after.partition(" ")
        try:
            moment, last = datetime.fromisoformat(at), int(key or 0)
        except ValueError as error:
            raise InvalidParameter("after must be a time, or what the last answer said.") from error
        if moment.tzinfo is None or not 0 <= last < 2**63:
            raise InvalidParameter("after must be a time with its zone.")
        require(
            1 < moment.year < 9999, InvalidParameter("after must be a time of these centuries.")
        )
        rows = rows.filter(Q(closed_at__gt=moment) | Q(closed_at=moment, pk__gt=last))
    found = list(
        rows.only("public_id", "status", "closed_at").order_by("closed_at", "pk")[:MOST_DECISIONS]
    )
    listed = [{"assignment_id": one.public_id, "status": one.status} for one in found]
    if found and (at_last := found[-1].closed_at) is not None:
        after = f"{at_last.isoformat()} {found[-1].pk}"
    return listed, after


def sessions_of(study: RecruitedStudy, *, after: str = "") -> list[dict[str, Any]]:
    handed_in = Q(items__assignment__status__in=Assignment.HANDED_IN_STATUSES)
    mine = Session.objects.filter(study=study).select_related("worker").order_by("pk")
    rows: Any = mine.annotate(n_items=Count("items"), n_handed_in=Count("items", filter=handed_in))
    if after:
        rows = rows.filter(
            pk__gt=Session.objects.filter(study=study, public_id=after).values("pk")[:1]
        )
    return [
        {
            "session": one.public_id,
            "worker_id": one.worker.worker_id,
            "state": one.state,
            "outcome": one.outcome,
            "n_items": one.n_items,
            "n_handed_in": one.n_handed_in,
            "arrived_at": one.arrived_at.isoformat(),
            "ended_at": one.ended_at and one.ended_at.isoformat(),
        }
        for one in rows[:SESSIONS_AT_ONCE]
    ]


def _counted(keys: list[int]) -> tuple[dict[int, list[tuple[str, str, int]]], dict[int, int]]:
    sessions = Session.objects.filter(study__in=keys).order_by()
    groups = sessions.values_list("study", "state", "outcome").annotate(n=Count("pk"))
    by_study: dict[int, list[tuple[str, str, int]]] = {key: [] for key in keys}
    for key, state, outcome, n in groups:
        by_study[key].append((state, outcome, n))
    intents = Intent.objects.filter(
        session__study__in=keys, state__in=[Intent.State.WRITTEN, Intent.State.SENT]
    ).order_by()
    return by_study, dict(intents.values_list("session__study").annotate(n=Count("pk")))


def _unsent(keys: list[int]) -> dict[int, dict[str, int]]:
    decided = Session.objects.filter(
        study__in=keys, state__in=[Session.State.APPROVED, Session.State.REJECTED]
    )
    waiting = Intent.objects.filter(
        session=OuterRef("pk"), kind__in=DECISIONS, state__in=Intent.OPEN_STATES
    )
    rows = decided.filter(Exists(waiting)).order_by().values_list("study", "state")
    unsent: dict[int, dict[str, int]] = {}
    for study, state, n in rows.annotate(n=Count("pk")):
        unsent.setdefault(study, {})[state] = n
    return unsent


def _study(
    study: RecruitedStudy, sessions: list[tuple[str, str, int]], n_waiting: int
) -> dict[str, Any]:
    states: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    for state, outcome, n in sessions:
        states[state] += n
        outcomes[outcome] += n if outcome else 0
    return {
        "study": study.token,
        "request_token": study.request_token,
        "recruiter": study.connection.public_id,
        "name": study.name,
        "state": study.state,
        "external_id": study.external_id,
        "hit_type_id": study.hit_type.public_id,
        "annotation_prefix": study.annotation_prefix,
        "reward": _amount(study.reward),
        "reward_there": _amount(study.reward_there),
        "currency": study.connection.settings.get("currency", ""),
        "minutes": study.minutes,
        "items": study.items_per_session,
        "places": study.places,
        "devices": study.devices,
        "filters": study.filters,
        "labels": study.labels,
        "screen_out_reward": _amount(study.screen_out_reward),
        "screen_out_reward_there": _amount(study.screen_out_reward_there),
        "screen_out_places": study.screen_out_places,
        "excluded": [one.token for one in study.excluded.all()],
        "quoted_places": study.quoted_places,
        "quoted_cost": _amount(study.quoted_cost),
        "quoted_bonus": _amount(study.quoted_bonus),
        "quoted_bonus_cost": _amount(study.quoted_bonus_cost),
        "action": study.action,
        "problem": study.problem,
        "sessions": {state: states[state] for state in Session.State.values},
        "outcomes": {name: n for name, n in outcomes.items() if n},
        "n_waiting": n_waiting,
    }


def _amount(value: Decimal | None) -> str | None:
    if value is None:
        return None
    return f"{value:.2f}" if value == value.quantize(Decimal("0.01")) else f"{value.normalize():f}"


def _call(intent: Intent, *, has_ids: bool) -> dict[str, Any]:
    return {
        "call": intent.pk,
        "study": intent.session.study.token,
        "kind": intent.kind,
        "state": intent.state,
        "amount": _amount(intent.amount),
        "currency": intent.currency,
        # By which a bonus was requested.
        "request_token": intent.key.removeprefix(BONUS_KEY)
        if intent.kind == Intent.Kind.BONUS
        else "",
        "worker_id": intent.session.worker.worker_id,
        "submission_id": intent.session.submission_id if has_ids else "",
        "problem": intent.problem,
        "created_at": intent.created_at.isoformat(),
        "shows_by": _shows_by(intent),
    }


def _shows_by(bonus: Intent) -> str | None:
    is_open = bonus.kind == Intent.Kind.BONUS and bonus.state == Intent.State.UNCERTAIN
    if not is_open or bonus.sent_at is None:
        return None
    return (bonus.sent_at + SHOWN_WITHIN).isoformat()
