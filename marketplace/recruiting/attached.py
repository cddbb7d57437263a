"""Studies of HIT types that a rule has attached: drafted once no more HITs come, published and
extended as far as the rule's amount goes, stopped when none of the HITs is open any more. HITs
that come after that have the next study."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, Max, OuterRef, Q, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from marketplace import clock
from marketplace.exceptions import InvalidParameter, MarketplaceError, RecruiterBusy
from marketplace.models import (
    AttachedHitType,
    Hit,
    Intent,
    Outcome,
    RecruitedStudy,
    RecruiterConnection,
    RecruitingRule,
    Session,
)
from marketplace.recruiting.charges import committed_to
from marketplace.recruiting.connections import required_recruiter
from marketplace.recruiting.drafts import (
    MOST_PLACES,
    Posting,
    discard_draft,
    send_draft,
    write_draft,
)
from marketplace.recruiting.needed_places import free_and_needed, places_for
from marketplace.recruiting.posting import (
    follow_study,
    price_places,
    publish_study,
    set_places,
    stop_study,
)
from marketplace.recruiting.problems import NotFound, RecruiterProblem, Uncertain
from marketplace.recruiting.turns import Patience

# A program creates its HITs one after the other: a study is of all of them.
SETTLED = timedelta(minutes=1)
State = RecruitedStudy.State
# Why nobody is asked for by a rule.
DRAFT_DELETED = gettext_lazy(
    "The draft was deleted at {recruiter}, so that nobody is asked for. Once none of these HITs is "
    "open, those that come later have a study of their own."
)
STOPPED_EARLY = gettext_lazy(
    "The study was stopped while places were free, so that nobody else is asked for."
)
DISCARDED = gettext_lazy("The draft was discarded, so that nobody is asked for.")


def follow_attached(connection: RecruiterConnection) -> None:
    """Do what is to be done about each HIT type that is attached. What can't be done stays beside
    it, for whoever looks."""
    now = clock.now()
    rows = AttachedHitType.objects.filter(rule__connection=connection)
    open_hits = Hit.objects.filter(hit_type=OuterRef("hit_type"), expiration__gt=now)
    is_to_follow = Q(ended_at=None) | Q(pending_cost__isnull=False) | Exists(open_hits)
    rows = rows.filter(is_to_follow).order_by("pk")
    with Patience() as patience:
        for attached in rows.select_related("rule__connection", "hit_type__requester"):
            patience.try_to(partial(_follow_one, attached, now), key=f"attached:{attached.pk}")


def _follow_one(attached: AttachedHitType, now: datetime) -> None:
    """Follow it, and write beside it what is in the way."""
    rows = AttachedHitType.objects.filter(pk=attached.pk)
    try:
        _follow(attached, now)
    # The turn went to another process, which does the rest; or our own database is away.
    except (RecruiterBusy, OperationalError, InterfaceError):
        raise
    except (MarketplaceError, RecruiterProblem) as refused:
        rows.update(problem=str(refused))
        if isinstance(refused, NotFound) or isinstance(refused.__cause__, NotFound):
            # It was deleted there: nothing is spent on it.
            _note_pending(attached, None)
            return
        if _is_certain(refused):
            _settle_pending(attached)
        problem = refused if isinstance(refused, RecruiterProblem) else refused.__cause__
        if isinstance(problem, RecruiterProblem):  # of the recruiter, which is asked less often
            raise problem from None
    except Exception as error:
        text = _("This failed ({error}): the site's log has the rest.")
        rows.update(problem=text.format(error=type(error).__name__))
        raise
    else:
        rows.update(problem="")


def _follow(attached: AttachedHitType, now: datetime) -> None:
    hits = Hit.objects.in_group(attached.hit_type).listed().filter(expiration__gt=now)
    # Whoever was cut off, or heard no price, has spent it or not: nothing more is before that is
    # known.
    _settle_pending(attached)
    study = attached.study
    if not hits.exists():
        _end(attached, study, now)
        return
    newest: datetime | None = hits.aggregate(at=Max("created_at"))["at"]
    if newest is None or newest > now - SETTLED or attached.rule.ended_at is not None:
        return
    _require_draft(study)
    if study is not None and study.state == State.DRAFT and study.places > _places_of(attached):
        too_large, study = study, _write(attached)  # some HITs are over since it was drafted
        discard_draft(study=too_large)
    if study is None or (study.state == State.STOPPED and attached.ended_at is not None):
        study = _write(attached)
    if study.state == State.DRAFT:
        cost = send_draft(study=study)
        _commit(attached, cost.total)
        publish_study(study=study, confirmed=cost.total)
        attached.ended_at = None
        attached.save(update_fields=["ended_at"])
        _note_pending(attached, None)
        return
    places = _places_in_all(study)
    if places <= study.places:
        return
    price = price_places(study=study, total=places)
    _commit(attached, price.total)
    set_places(study=study, total=places, confirmed=price.total)
    _note_pending(attached, None)


def _settle_pending(attached: AttachedHitType) -> None:
    """Look whether what was to be spent is: it is charged then, or free for other HITs."""
    study = attached.study
    if study is not None and attached.pending_cost is not None:
        with suppress(NotFound):  # one that was deleted there costs nothing
            follow_study(study, required_recruiter(study.connection))
        _note_pending(attached, None)


def _is_certain(refused: BaseException) -> bool:
    """Whether no request behind a refusal may be on its way to the recruiter still."""
    seen: BaseException | None = refused
    while seen is not None:
        if isinstance(seen, Uncertain):
            return False
        seen = seen.__cause__ or seen.__context__
    return True


def _require_draft(study: RecruitedStudy | None) -> None:
    """Whoever deletes a draft there wants nobody to come by it: no other takes its place as long as
    one of its HITs is open."""
    if study is None or study.state != State.DRAFT or not study.external_id:
        return
    try:
        required_recruiter(study.connection).study(study.external_id)
    except NotFound as problem:
        text = DRAFT_DELETED.format(recruiter=study.connection.name)
        raise InvalidParameter(text, code="draft_deleted") from problem


def _end(attached: AttachedHitType, study: RecruitedStudy | None, now: datetime) -> None:
    """None of its HITs is open any more."""
    if study is not None and study.state in (State.ACTIVE, State.PAUSED):
        stop_study(study=study)
    if study is not None and study.state == State.DRAFT:
        discard_draft(study=study)
    if attached.ended_at is None:
        attached.ended_at = now
        attached.save(update_fields=["ended_at"])


def _places_in_all(study: RecruitedStudy) -> int:
    """With those for judgments that nobody gives and that no free place is for. Nor are any bought
    for what was held by those who may still give their place back, or whom nobody may pay."""
    free, needed = free_and_needed(study)
    if study.state == State.STOPPED and free and needed:
        why = STOPPED_EARLY if study.external_id else DISCARDED
        until = _(
            "Once none of these HITs is open, those that come later have a study of their own."
        )
        raise InvalidParameter(f"{why} {until}", code="stopped")
    doubts = Intent.objects.filter(session=OuterRef("pk"), kind=Intent.Kind.DOUBT)
    in_doubt = Exists(doubts.filter(state=Intent.State.UNCERTAIN))
    # Of whom somebody has said so, the place is paid for and comes back no more.
    is_left = Exists(doubts.filter(state=Intent.State.DONE, basis__was_said_done=True))
    asked_back = Q(state=Session.State.FINISHED) & ~Q(outcome__in=["", Outcome.COMPLETED])
    asked_back = asked_back & ~Q(is_left)
    n_perhaps_free = Session.objects.filter(in_doubt | asked_back, study=study).count()
    return min(MOST_PLACES, study.places + max(0, needed - free - n_perhaps_free))


def _places_of(attached: AttachedHitType) -> int:
    """As many as judgments need that nobody gives."""
    return min(MOST_PLACES, places_for(attached.hit_type, attached.rule.items_per_session))


@transaction.atomic
def _write(attached: AttachedHitType) -> RecruitedStudy:
    """A study with a place for each judgment that nobody gives."""
    rule = attached.rule
    reward = rule.reward
    if reward is None:
        reward = attached.hit_type.reward_usd * rule.items_per_session
    values = Posting(
        reward=reward,
        minutes=rule.minutes,
        items_per_session=rule.items_per_session,
        places=_places_of(attached),
    )
    study = write_draft(connection=rule.connection, hit_type=attached.hit_type, values=values)
    study.attached = attached
    study.save(update_fields=["attached"])
    attached.ended_at = None
    attached.save(update_fields=["ended_at"])
    return study


def _commit(attached: AttachedHitType, cost: Decimal) -> None:
    """Hold a cost against the rule's amount before it is spent."""
    _require_affordable(attached.rule, cost)
    _note_pending(attached, cost)


def _note_pending(attached: AttachedHitType, cost: Decimal | None) -> None:
    attached.pending_cost = cost
    attached.save(update_fields=["pending_cost"])


def _require_affordable(rule: RecruitingRule, cost: Decimal) -> None:
    studies = RecruitedStudy.objects.filter(attached__rule=rule)
    spent = sum(map(committed_to, studies), Decimal(0))
    pending = rule.attached.aggregate(n=Sum("pending_cost"))["n"]
    left = rule.most_cost - spent - (pending or Decimal(0))
    if cost > left:
        text = _("It costs {cost} {currency}, and {left} of the rule's {most} are left.")
        currency = rule.connection.settings.get("currency", "")
        facts = {"cost": cost, "currency": currency, "most": rule.most_cost}
        text = text.format(left=left.quantize(Decimal("0.01")), **facts)
        raise InvalidParameter(text, code="over_budget")
