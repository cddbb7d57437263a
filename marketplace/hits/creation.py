"""Making HIT types and HITs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from marketplace import clock
from marketplace.documents.questions import parse_question
from marketplace.exceptions import (
    HitAlreadyExists,
    HitLayoutDoesNotExist,
    HitTypeDoesNotExist,
    InvalidParameter,
    MarketplaceError,
)
from marketplace.hits import lifecycle
from marketplace.hits.holds import hold_for_new
from marketplace.hits.review_policies.parameters import (
    SCORE_MY_KNOWN_ANSWERS,
    SIMPLE_PLURALITY,
    read_parameters,
)
from marketplace.models import Hit, HitType, Requester, ReviewPolicy
from marketplace.money.fees import fee_schedule
from marketplace.notifications.events import announce
from marketplace.qualifications.requirements import (
    RequirementValues,
    asks_for_masters,
    check_types,
    stored_requirements,
    write_requirements,
)

POLICY_OF_LEVEL = {
    ReviewPolicy.Level.ASSIGNMENT: SCORE_MY_KNOWN_ANSWERS,
    ReviewPolicy.Level.HIT: SIMPLE_PLURALITY,
}


@dataclass(frozen=True)
class HitTypeValues:
    """What makes one HIT type different from another."""

    title: str
    description: str
    keywords: str
    reward_usd: Decimal
    assignment_duration_seconds: int
    auto_approval_delay_seconds: int
    requirements: tuple[RequirementValues, ...] = ()

    def digest(self) -> str:
        """One string for all the values, the same as ever where there are no requirements."""
        values = asdict(self) | {"reward_usd": f"{self.reward_usd:.2f}"}
        if not self.requirements:
            del values["requirements"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class HitValues:
    """What one HIT has of its own."""

    question: str | None
    max_assignments: int
    lifetime_seconds: int
    requester_annotation: str
    unique_request_token: str | None
    layout_id: str | None = None
    # By level, as the protocol sends them.
    review_policies: Mapping[ReviewPolicy.Level, Mapping[str, Any]] = field(default_factory=dict)


@transaction.atomic
def create_hit_type(*, requester: Requester, values: HitTypeValues) -> HitType:
    """The requester's HIT type with these values, the same one for the same values."""
    columns = asdict(values)
    del columns["requirements"]
    hit_type, is_new = HitType.objects.get_or_create(
        requester=requester,
        digest=values.digest(),
        defaults=columns | {"created_at": clock.now()},
    )
    if is_new:
        write_requirements(hit_type, values.requirements)
    return hit_type


@transaction.atomic
def create_hit(*, requester: Requester, type_values: HitTypeValues, values: HitValues) -> Hit:
    """Publish a HIT, and its HIT type where it is new."""
    _refuse_repetition(requester, values.unique_request_token)
    hit_type = create_hit_type(requester=requester, values=type_values)
    return create_hit_with_hit_type(requester=requester, hit_type=hit_type, values=values)


def find_hit_type(requester: Requester, public_id: str) -> HitType:
    """The requester's HIT type of this id."""
    own = HitType.objects.filter(requester=requester).select_related("notification_setting")
    hit_type = own.filter(public_id=public_id).first()
    if hit_type is None:
        raise HitTypeDoesNotExist(public_id)
    return hit_type


def create_hit_with_hit_type(*, requester: Requester, hit_type: HitType, values: HitValues) -> Hit:
    """Publish a HIT and hold what it will cost; without the money nothing is created.

    That a token makes one HIT rests on the database's constraint. Whatever is wrong with a request,
    its repetition is first of all that, so the earlier HIT is looked for then only.
    """
    try:
        with transaction.atomic():
            return _create(requester, hit_type, values)
    except (MarketplaceError, IntegrityError):
        _refuse_repetition(requester, values.unique_request_token)
        raise


def _create(requester: Requester, hit_type: HitType, values: HitValues) -> Hit:
    question = _checked_question(values)
    _check_policies(values.review_policies)
    requirements = stored_requirements(hit_type)
    check_types(requirements)
    now = clock.now()
    hit = Hit(
        requester=requester,
        hit_type=hit_type,
        question=question,
        max_assignments=values.max_assignments,
        fee_usd=fee_per_assignment(hit_type, requirements, values.max_assignments),
        requester_annotation=values.requester_annotation,
        unique_request_token=values.unique_request_token,
        created_at=now,
        expiration=now + timedelta(seconds=values.lifetime_seconds),
    )
    lifecycle.begin(hit, now=now)
    hit.save(force_insert=True)
    _write_policies(hit, values.review_policies)
    hold_for_new(hit, now=now)
    announce("HITCreated", hit=hit, at=now)
    return hit


def fee_per_assignment(
    hit_type: HitType, requirements: Sequence[RequirementValues], max_assignments: int
) -> Decimal:
    """What the marketplace takes for each approved assignment of such a HIT."""
    return fee_schedule().per_assignment(
        reward_usd=hit_type.reward_usd,
        max_assignments=max_assignments,
        for_masters=asks_for_masters(requirements),
    )


def _checked_question(values: HitValues) -> str:
    if values.layout_id is not None:
        raise HitLayoutDoesNotExist(values.layout_id)
    if values.question is None:
        raise InvalidParameter("A HIT needs a Question.")
    parse_question(values.question, allow_http=not settings.HTTPS)
    return values.question


def _check_policies(policies: Mapping[ReviewPolicy.Level, Mapping[str, Any]]) -> None:
    for level, policy in policies.items():
        if policy["PolicyName"] != POLICY_OF_LEVEL[level]:
            raise InvalidParameter(
                f"The {level.value}-level review policy must be {POLICY_OF_LEVEL[level]}."
            )
        read_parameters(policy["PolicyName"], policy["Parameters"] or [])


def _write_policies(hit: Hit, policies: Mapping[ReviewPolicy.Level, Mapping[str, Any]]) -> None:
    for level, policy in policies.items():
        ReviewPolicy.objects.create(
            hit=hit, level=level, name=policy["PolicyName"], parameters=policy["Parameters"] or []
        )


def _refuse_repetition(requester: Requester, token: str | None) -> None:
    if token is None:
        return
    earlier = Hit.objects.of(requester).filter(unique_request_token=token).first()
    if earlier is not None:
        raise HitAlreadyExists(earlier.public_id)
