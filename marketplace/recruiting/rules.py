"""Rules by which what programs create is done by a recruiter's participants, though the programs
know nothing of it.

A rule holds for HIT types that have no HIT yet: what workers of the marketplace were promised
stays as it was. From its first HIT on such a type is the recruiter's to pay, and a study of it is
drafted, published and extended as HITs come (marketplace.recruiting.attached). What can't be so
at a recruiter is refused when the HIT is created.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter
from marketplace.hits import creation
from marketplace.hits.creation import HitTypeValues, HitValues
from marketplace.hits.payers import let_recruiter_pay
from marketplace.models import (
    AttachedHitType,
    Hit,
    HitType,
    PaidBy,
    RecruiterConnection,
    RecruitingRule,
    Requester,
)
from marketplace.qualifications.requirements import stored_requirements
from marketplace.qualifications.system import find_system
from marketplace.recruiting.drafts import CENT, MOST_MINUTES, MOST_REWARD, most_minutes
from marketplace.recruiting.studies import MOST_ITEMS
from marketplace.users import User

MOST_RULES = 20


@dataclass(frozen=True)
class RuleValues:
    """What a requester decides once for all that matches."""

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
    """A rule for what the connection's requester creates from now on."""
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
    detail = {"words": rule.words, "most_cost": str(rule.most_cost)}
    note(
        "recruiting_rule.create",
        subject=connection.name,
        user=user,
        requester=connection.requester,
        detail=detail,
    )
    return rule


@transaction.atomic
def end_rule(*, rule: RecruitingRule, user: User | None = None) -> None:
    """Attach nothing more. Studies that are open go on and are not extended."""
    rows = RecruitingRule.objects.filter(pk=rule.pk, ended_at=None)
    if rows.update(ended_at=clock.now()):
        note(
            "recruiting_rule.end",
            subject=rule.connection.name,
            user=user,
            requester=rule.requester,
        )


def create_hit(*, requester: Requester, type_values: HitTypeValues, values: HitValues) -> Hit:
    """Publish a HIT, and its HIT type where it is new, attached where a rule says so."""
    if not _has_rules(requester):
        return creation.create_hit(requester=requester, type_values=type_values, values=values)
    with transaction.atomic():
        hit_type = creation.create_hit_type(requester=requester, values=type_values)
        return _create_attached(requester, hit_type, values)


def create_hit_with_hit_type(*, requester: Requester, hit_type: HitType, values: HitValues) -> Hit:
    """Publish a HIT of this type, attached where a rule says so."""
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
    """Refuse what nobody whom a recruiter sends could meet."""
    names = [
        system.name
        for each in stored_requirements(hit_type)
        if (system := find_system(each.type_id)) is not None
    ]
    if names:
        raise InvalidParameter(
            f"Nothing is known here of {', '.join(names)} of participants whom {recruiter} sends, "
            f"so that none could do these HITs. Leave the requirement out, and choose whom "
            f"{recruiter} invites there."
        )


def _attach(requester: Requester, hit_type: HitType) -> None:
    """Let the first rule that matches have a HIT type that has no HIT."""
    if hit_type.paid_by == PaidBy.RECRUITER:
        return
    rule = _rule_for(requester, hit_type)
    if rule is None or Hit.objects.in_group(hit_type).listed().exists():
        return
    if not rule.connection.encrypted_token:
        raise InvalidParameter(
            f"A rule has these HITs done by participants whom {rule.connection.name} sends, and it "
            f"is disconnected. Connect it again, or end the rule to have them done by the "
            f"marketplace's own workers."
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
    if not connection.encrypted_token:
        text = _("This connection has no token: connect it first.")
        raise InvalidParameter(text, code="disconnected")
    if not 1 <= values.items_per_session <= MOST_ITEMS:
        raise InvalidParameter(_("A participation has 1 to %(n)s HITs.") % {"n": MOST_ITEMS})
    if values.minutes < 1 or most_minutes(values.minutes) > MOST_MINUTES:
        raise InvalidParameter(_("A participation takes from a minute to less than a day."))
    amounts = [values.most_cost, *([] if values.reward is None else [values.reward])]
    if any(not 0 < one <= MOST_REWARD or one != one.quantize(CENT) for one in amounts):
        text = _("The reward is an amount of whole pence or cents above 0.")
        raise InvalidParameter(text, code="bad_amount")
    currency = connection.settings.get("currency", "")
    if values.reward is None and currency != "USD":
        text = _("The account is in {currency}, and HITs' rewards in dollars: say a reward.")
        raise InvalidParameter(text.format(currency=currency), code="reward_missing")
    open_rules = RecruitingRule.objects.filter(requester=connection.requester, ended_at=None)
    if open_rules.count() >= MOST_RULES:
        raise InvalidParameter(_("A requester has at most %(n)s rules.") % {"n": MOST_RULES})
