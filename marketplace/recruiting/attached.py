"""Studies of HIT types that a rule has attached: drafted once no more HITs come, published and
extended as far as the rule's amount goes, stopped when none of the HITs is open any more."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Max, Sum
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import InvalidParameter, MarketplaceError, RecruiterBusy
from marketplace.models import (
    AttachedHitType,
    Hit,
    HitQuerySet,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    RecruitingRule,
)
from marketplace.recruiting.connections import required_recruiter
from marketplace.recruiting.drafts import MOST_PLACES, Posting, send_draft, write_draft
from marketplace.recruiting.needed_places import places_needed
from marketplace.recruiting.posting import (
    follow_study,
    price_places,
    publish_study,
    set_places,
    stop_study,
)
from marketplace.recruiting.problems import NotFound, RecruiterProblem
from marketplace.recruiting.turns import keep_turn

# A program creates its HITs one after the other: a study is of all of them.
SETTLED = timedelta(minutes=1)
State = RecruitedStudy.State


def follow_attached(connection: RecruiterConnection) -> int:
    """Do what is to be done about each HIT type that is attached; return how many studies were
    published or extended. What can't be done stays beside it, for whoever looks."""
    n_changed, now = 0, clock.now()
    rows = AttachedHitType.objects.filter(rule__connection=connection)
    rows = rows.select_related("rule__connection", "hit_type__requester", "study__connection")
    for attached in rows.exclude(study__state=State.STOPPED, rule__ended_at__isnull=False):
        problem = ""
        keep_turn()
        try:
            n_changed += _follow(attached, now)
        except RecruiterBusy:  # the turn went to another process, which does the rest
            raise
        except (MarketplaceError, RecruiterProblem) as refused:
            problem = str(refused)
            if isinstance(refused, NotFound) or isinstance(refused.__cause__, NotFound):
                # It was deleted there: nothing is spent on it.
                _note_pending(attached, None)
        AttachedHitType.objects.filter(pk=attached.pk).update(problem=problem)
    return n_changed


def _follow(attached: AttachedHitType, now: datetime) -> bool:
    hits = Hit.objects.in_group(attached.hit_type).listed().filter(expiration__gt=now)
    study = attached.study
    if study is not None and attached.pending_cost is not None:
        # Whoever was cut off, or heard no price, has spent it or not: nothing more is before that
        # is known.
        with suppress(NotFound):  # one that was deleted there costs nothing
            follow_study(study, required_recruiter(study.connection))
        _note_pending(attached, None)
    if study is not None and not hits.exists():
        if study.state in (State.ACTIVE, State.PAUSED):
            stop_study(study=study)
        return False
    newest: datetime | None = hits.aggregate(at=Max("created_at"))["at"]
    if newest is None or newest > now - SETTLED or attached.rule.ended_at is not None:
        return False
    places = _places(hits, attached.rule)
    if study is None:
        study = _write(attached, places)
    if study.state == State.DRAFT:
        cost = send_draft(study=study)
        _commit(attached, cost.total)
        publish_study(study=study, confirmed=cost.total)
        _note_pending(attached, None)
        return True
    if places <= study.places:
        return False
    price = price_places(study=study, total=places)
    _commit(attached, price.total)
    set_places(study=study, total=places, confirmed=price.total)
    _note_pending(attached, None)
    return True


def _places(hits: HitQuerySet, rule: RecruitingRule) -> int:
    """So many in all: a total that is said twice is the same."""
    sizes = hits.aggregate(
        n=Sum("max_assignments", default=0), most=Max("max_assignments", default=0)
    )
    return min(MOST_PLACES, places_needed(sizes["n"], sizes["most"], rule.items_per_session))


@transaction.atomic
def _write(attached: AttachedHitType, places: int) -> RecruitedStudy:
    rule = attached.rule
    reward = rule.reward
    if reward is None:
        reward = attached.hit_type.reward_usd * rule.items_per_session
    values = Posting(
        reward=reward,
        minutes=rule.minutes,
        items_per_session=rule.items_per_session,
        places=places,
    )
    attached.study = write_draft(
        connection=rule.connection, hit_type=attached.hit_type, values=values
    )
    attached.save(update_fields=["study"])
    return attached.study


def _commit(attached: AttachedHitType, cost: Decimal) -> None:
    """Hold a cost against the rule's amount before it is spent."""
    _require_affordable(attached.rule, cost)
    _note_pending(attached, cost)


def _note_pending(attached: AttachedHitType, cost: Decimal | None) -> None:
    attached.pending_cost = cost
    attached.save(update_fields=["pending_cost"])


def _require_affordable(rule: RecruitingRule, cost: Decimal) -> None:
    charges = RecruiterCharge.objects.filter(study__attached__rule=rule)
    spent = charges.filter(kind=RecruiterCharge.Kind.STUDY).aggregate(n=Sum("amount"))["n"]
    pending = rule.attached.aggregate(n=Sum("pending_cost"))["n"]
    left = rule.most_cost - (spent or Decimal(0)) - (pending or Decimal(0))
    if cost > left:
        text = _("It costs {cost} {currency}, and {left} of the rule's {most} are left.")
        currency = rule.connection.settings.get("currency", "")
        facts = {"cost": cost, "currency": currency, "most": rule.most_cost}
        raise InvalidParameter(text.format(left=left.quantize(Decimal("0.01")), **facts))
