"""Rules by which what programs create is done by a recruiter's participants, though the programs
know nothing of it.

A rule holds for HIT types that have no HIT yet: what workers of the marketplace were promised
stays as it was. From its first HIT on such a type is the recruiter's to pay, and a study of it is
drafted, published and extended as HITs come (marketplace.recruiting.rules). What can't be so
at a recruiter is refused when the HIT is created.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, Max, OuterRef, Q, Sum
from django.utils.translation import gettext as _, gettext_lazy

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter, MarketplaceError, RecruiterBusy, require
from marketplace.hits import creation
from marketplace.hits.assignments import let_recruiter_pay
from marketplace.hits.creation import HitTypeValues, HitValues
from marketplace.models import (
    AttachedHitType,
    Hit,
    HitType,
    Intent,
    Outcome,
    PaidBy,
    RecruitedStudy,
    RecruiterConnection,
    RecruitingRule,
    Requester,
    Session,
)
from marketplace.money.amounts import CENT
from marketplace.qualifications.definitions import stored_requirements
from marketplace.qualifications.system import find_system
from marketplace.recruiting.charges import MOST_REWARD, committed_to
from marketplace.recruiting.connections import Patience, required_recruiter
from marketplace.recruiting.drafts import (
    MOST_MINUTES,
    MOST_PLACES,
    Posting,
    discard_draft,
    most_minutes,
    send_draft,
    write_draft,
)
from marketplace.recruiting.places import free_and_needed, places_for
from marketplace.recruiting.posting import (
    follow_study,
    price_places,
    publish_study,
    set_places,
    stop_study,
)
from marketplace.recruiting.records import NotFound, RecruiterProblem, Uncertain
from marketplace.recruiting.studies import MOST_ITEMS
from marketplace.users import User

MOST_RULES = 20


@dataclass(frozen=True)
class RuleValues:
    most_cost: Decimal  # of all studies together, in the account's currency, fees included
    minutes: int
    items_per_session: int = 1
    # A participation's; None: the HITs' own rewards, of an account in dollars.
    reward: Decimal | None = None
    # That the title or the keywords have in them; "" matches every HIT type.
    words: str = ""


@transaction.atomic
def create_rule(
    *, connection: RecruiterConnection, values: RuleValues, user: User | None = None
) -> RecruitingRule:
    _check(connection, values)
    rule = RecruitingRule.objects.create(
        requester=connection.requester,
        connection=connection,
        words=values.words.strip(),
        reward=values.reward,
        minutes=values.minutes,
        items_per_session=values.items_per_session,
        most_cost=values.most_cost,
        created_at=clock.now(),
    )
    note(
        "recruiting_rule.create",
        subject=connection.name,
        user=user,
        requester=connection.requester,
        detail={"words": rule.words, "most_cost": str(rule.most_cost)},
    )
    return rule


@transaction.atomic
def end_rule(*, rule: RecruitingRule, user: User | None = None) -> None:
    if RecruitingRule.objects.filter(pk=rule.pk, ended_at=None).update(ended_at=clock.now()):
        note(
            "recruiting_rule.end",
            subject=rule.connection.name,
            user=user,
            requester=rule.requester,
        )


def create_hit(*, requester: Requester, type_values: HitTypeValues, values: HitValues) -> Hit:
    if not _has_rules(requester):
        return creation.create_hit(requester=requester, type_values=type_values, values=values)
    with transaction.atomic():
        return _create_attached(
            requester, creation.create_hit_type(requester=requester, values=type_values), values
        )


def create_hit_with_hit_type(*, requester: Requester, hit_type: HitType, values: HitValues) -> Hit:
    # Without rules it is one statement more than publishing alone, and no savepoint.
    if hit_type.paid_by != PaidBy.RECRUITER and not _has_rules(requester):
        return creation.create_hit_with_hit_type(
            requester=requester, hit_type=hit_type, values=values
        )
    with transaction.atomic():
        return _create_attached(requester, hit_type, values)


def _has_rules(requester: Requester) -> bool:
    return RecruitingRule.objects.filter(requester=requester, ended_at=None).exists()


def _create_attached(requester: Requester, hit_type: HitType, values: HitValues) -> Hit:
    _attach(requester, hit_type)
    if hit_type.paid_by == PaidBy.RECRUITER and values.review_policies:
        raise InvalidParameter(
            "Review policies approve and reject single HITs, and this HIT type is done by a "
            "recruiter's participants, of whom all HITs are decided at once. Leave them out.",
            code="review_policies",
        )
    return creation.create_hit_with_hit_type(requester=requester, hit_type=hit_type, values=values)


def require_possible(hit_type: HitType, recruiter: str) -> None:
    names = [
        system.name
        for each in stored_requirements(hit_type.public_id)
        if (system := find_system(each.type_id)) is not None
    ]
    require(
        not names,
        InvalidParameter(
            f"Nothing is known here of {', '.join(names)} of participants whom {recruiter} sends, "
            f"so that none could do these HITs. Leave the requirement out, and choose whom "
            f"{recruiter} invites there."
        ),
    )


def _attach(requester: Requester, hit_type: HitType) -> None:
    # The first matching rule gets a HIT type that has no HIT.
    if hit_type.paid_by == PaidBy.RECRUITER:
        return
    rule = _rule_for(requester, hit_type)
    if rule is None or Hit.objects.in_group(hit_type).listed().exists():
        return
    require(
        rule.connection.encrypted_token,
        InvalidParameter(
            f"A rule has these HITs done by participants whom {rule.connection.name} sends, and it "
            f"is disconnected. Connect it again, or end the rule to have them done by the "
            f"marketplace's own workers."
        ),
    )
    require_possible(hit_type, rule.connection.name)
    AttachedHitType.objects.get_or_create(hit_type=hit_type, defaults={"rule": rule})
    let_recruiter_pay(hit_type)
    note("recruiting_rule.attach", subject=hit_type.public_id, requester=requester)


def _rule_for(requester: Requester, hit_type: HitType) -> RecruitingRule | None:
    rules = RecruitingRule.objects.filter(requester=requester, ended_at=None)
    text = f"{hit_type.title}\n{hit_type.keywords}".lower()
    ordered = rules.select_related("connection").order_by("pk")
    matching = [rule for rule in ordered if rule.words.lower() in text]
    connected = (rule for rule in matching if rule.connection.encrypted_token)
    return next(connected, next(iter(matching), None))


def _check(connection: RecruiterConnection, values: RuleValues) -> None:
    require(
        connection.encrypted_token,
        InvalidParameter(_("This connection has no token: connect it first."), code="disconnected"),
    )
    require(
        1 <= values.items_per_session <= MOST_ITEMS,
        InvalidParameter(_("A participation has 1 to %(n)s HITs.") % {"n": MOST_ITEMS}),
    )
    require(
        values.minutes >= 1 and most_minutes(values.minutes) <= MOST_MINUTES,
        InvalidParameter(_("A participation takes from a minute to less than a day.")),
    )
    amounts = [values.most_cost, *([] if values.reward is None else [values.reward])]
    require(
        not any(not 0 < one <= MOST_REWARD or one != one.quantize(CENT) for one in amounts),
        InvalidParameter(
            _("The reward is an amount of whole pence or cents above 0."), code="bad_amount"
        ),
    )
    currency = connection.settings.get("currency", "")
    if values.reward is None and currency != "USD":
        raise InvalidParameter(
            _("The account is in {currency}, and HITs' rewards in dollars: say a reward.").format(
                currency=currency
            ),
            code="reward_missing",
        )
    require(
        RecruitingRule.objects.filter(requester=connection.requester, ended_at=None).count()
        < MOST_RULES,
        InvalidParameter(_("A requester has at most %(n)s rules.") % {"n": MOST_RULES}),
    )


# Studies of HIT types that a rule has attached: drafted once no more HITs come, published and
# extended as far as the rule's amount goes, stopped when none of the HITs is open any more. HITs
# that come after that have the next study.

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
    now = clock.now()
    rows = AttachedHitType.objects.filter(rule__connection=connection)
    rows = rows.filter(
        Q(ended_at=None)
        | Q(pending_cost__isnull=False)
        | Exists(Hit.objects.filter(hit_type=OuterRef("hit_type"), expiration__gt=now))
    ).order_by("pk")
    with Patience() as patience:
        for attached in rows.select_related("rule__connection", "hit_type__requester"):
            patience.try_to(partial(_follow_one, attached, now), key=f"attached:{attached.pk}")


def _follow_one(attached: AttachedHitType, now: datetime) -> None:
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
        attached.save_values(ended_at=None)
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
    """Find out whether a pending cost was spent: it is charged then, or free for other HITs."""
    study = attached.study
    if study is not None and attached.pending_cost is not None:
        with suppress(NotFound):  # one that was deleted there costs nothing
            follow_study(study, required_recruiter(study.connection))
        _note_pending(attached, None)


def _is_certain(refused: BaseException) -> bool:
    """Whether no request behind a refusal may still be on its way to the recruiter."""
    seen: BaseException | None = refused
    while seen is not None:
        if isinstance(seen, Uncertain):
            return False
        seen = seen.__cause__ or seen.__context__
    return True


def _require_draft(study: RecruitedStudy | None) -> None:
    # Whoever deletes a draft at the recruiter wants no participants from it: nothing replaces it
    # while one of its HITs is open.
    if study is None or study.state != State.DRAFT or not study.external_id:
        return
    try:
        required_recruiter(study.connection).study(study.external_id)
    except NotFound as problem:
        raise InvalidParameter(
            DRAFT_DELETED.format(recruiter=study.connection.name), code="draft_deleted"
        ) from problem


def _end(attached: AttachedHitType, study: RecruitedStudy | None, now: datetime) -> None:
    if study is not None and study.state in (State.ACTIVE, State.PAUSED):
        stop_study(study=study)
    if study is not None and study.state == State.DRAFT:
        discard_draft(study=study)
    if attached.ended_at is None:
        attached.save_values(ended_at=now)


def _places_in_all(study: RecruitedStudy) -> int:
    """The study's places and those for uncovered judgments. No places are bought for participants
    who may still give theirs back, or whom nobody may pay."""
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
    return min(MOST_PLACES, places_for(attached.hit_type, attached.rule.items_per_session))


@transaction.atomic
def _write(attached: AttachedHitType) -> RecruitedStudy:
    rule = attached.rule
    reward = rule.reward
    if reward is None:
        reward = attached.hit_type.reward_usd * rule.items_per_session
    study = write_draft(
        connection=rule.connection,
        hit_type=attached.hit_type,
        values=Posting(
            reward=reward,
            minutes=rule.minutes,
            items_per_session=rule.items_per_session,
            places=_places_of(attached),
        ),
    )
    study.save_values(attached=attached)
    attached.save_values(ended_at=None)
    return study


def _commit(attached: AttachedHitType, cost: Decimal) -> None:
    _require_affordable(attached.rule, cost)
    _note_pending(attached, cost)


def _note_pending(attached: AttachedHitType, cost: Decimal | None) -> None:
    attached.save_values(pending_cost=cost)


def _require_affordable(rule: RecruitingRule, cost: Decimal) -> None:
    spent = sum(map(committed_to, RecruitedStudy.objects.filter(attached__rule=rule)), Decimal(0))
    pending = rule.attached.aggregate(n=Sum("pending_cost"))["n"]
    left = rule.most_cost - spent - (pending or Decimal(0))
    if cost > left:
        raise InvalidParameter(
            _("It costs {cost} {currency}, and {left} of the rule's {most} are left.").format(
                left=left.quantize(CENT),
                cost=cost,
                currency=rule.connection.settings.get("currency", ""),
                most=rule.most_cost,
            ),
            code="over_budget",
        )
