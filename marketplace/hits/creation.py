import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from marketplace import clock
from marketplace.documents.questions import Question, parse_question
from marketplace.exceptions import (
    DuplicateRequest,
    HitAlreadyExists,
    HitDoesNotExist,
    HitLayoutDoesNotExist,
    HitTypeDoesNotExist,
    InvalidHitState,
    InvalidParameter,
    MarketplaceError,
    first_or_raise,
    require,
)
from marketplace.hits import lifecycle, settlement
from marketplace.hits.policy_scores import SCORE_MY_KNOWN_ANSWERS, SIMPLE_PLURALITY, read_parameters
from marketplace.hits.settlement import hold_for_new
from marketplace.models import Assignment, Hit, HitExtension, HitType, Requester, ReviewPolicy
from marketplace.money.amounts import fee_schedule
from marketplace.notifications.events import announce
from marketplace.qualifications.definitions import (
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
    title: str
    description: str
    keywords: str
    reward_usd: Decimal
    assignment_duration_seconds: int
    auto_approval_delay_seconds: int
    requirements: tuple[RequirementValues, ...] = ()

    def digest(self) -> str:
        values = asdict(self) | {"reward_usd": f"{self.reward_usd:.2f}"}
        if not self.requirements:
            del values["requirements"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class HitValues:
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
    refuse_repetition(Hit.objects.all(), requester, values.unique_request_token, HitAlreadyExists)
    return create_hit_with_hit_type(
        requester=requester,
        hit_type=create_hit_type(requester=requester, values=type_values),
        values=values,
    )


def find_hit_type(requester: Requester, public_id: str) -> HitType:
    own = HitType.objects.filter(requester=requester).select_related("notification_setting")
    return first_or_raise(own.filter(public_id=public_id), HitTypeDoesNotExist(public_id))


def create_hit_with_hit_type(*, requester: Requester, hit_type: HitType, values: HitValues) -> Hit:
    """Publish a HIT and hold its cost; without the money nothing is created. A database constraint
    makes a token unique, so an earlier HIT is looked for only after an error."""
    try:
        with transaction.atomic():
            return _create(requester, hit_type, values)
    except (MarketplaceError, IntegrityError):
        refuse_repetition(
            Hit.objects.all(), requester, values.unique_request_token, HitAlreadyExists
        )
        raise


def _create(requester: Requester, hit_type: HitType, values: HitValues) -> Hit:
    question = _checked_question(values)
    seconds = question.estimated_seconds
    if seconds and seconds != hit_type.estimated_seconds:
        hit_type.save_values(estimated_seconds=seconds)
    for level, policy in values.review_policies.items():
        require(
            policy["PolicyName"] == POLICY_OF_LEVEL[level],
            InvalidParameter(
                f"The {level.value}-level review policy must be {POLICY_OF_LEVEL[level]}."
            ),
        )
        read_parameters(policy["PolicyName"], policy["Parameters"] or [])
    check_types(stored_requirements(hit_type.public_id))
    now = clock.now()
    hit = Hit(
        requester=requester,
        hit_type=hit_type,
        question=values.question or "",
        max_assignments=values.max_assignments,
        fee_usd=fee_per_assignment(hit_type, values.max_assignments),
        requester_annotation=values.requester_annotation,
        unique_request_token=values.unique_request_token,
        created_at=now,
        expiration=now + timedelta(seconds=values.lifetime_seconds),
    )
    lifecycle.begin(hit, now=now)
    hit.save(force_insert=True)
    for level, policy in values.review_policies.items():
        ReviewPolicy.objects.create(
            hit=hit, level=level, name=policy["PolicyName"], parameters=policy["Parameters"] or []
        )
    hold_for_new(hit, now=now)
    announce("HITCreated", hit=hit, at=now)
    return hit


def fee_per_assignment(hit_type: HitType, max_assignments: int) -> Decimal:
    return fee_schedule().per_assignment(
        reward_usd=hit_type.reward_usd,
        max_assignments=max_assignments,
        for_masters=asks_for_masters(stored_requirements(hit_type.public_id)),
    )


def _checked_question(values: HitValues) -> Question:
    if values.layout_id is not None:
        raise HitLayoutDoesNotExist(values.layout_id)
    if values.question is None:
        raise InvalidParameter("A HIT needs a Question.")
    return parse_question(values.question, allow_http=not settings.HTTPS)


def refuse_repetition(
    rows: QuerySet[Any], requester: Requester, token: str | None, error: Callable[[str], Exception]
) -> None:
    """Raise the error of the row's id if the requester used the token before."""
    earlier = (
        None
        if token is None
        else rows.filter(requester=requester, unique_request_token=token).first()
    )
    if earlier is not None:
        raise error(earlier.public_id)


# Changing a HIT that exists: its end, its assignments, its type, its review status.

LONGEST_LIFETIME = timedelta(days=365)


@transaction.atomic
def update_expiration(*, requester: Requester, public_id: str, expire_at: datetime) -> None:
    """Expire a HIT now, or extend it and hold money for assignments that open again."""
    now = clock.now()
    hit = _lock_hit(requester, public_id, now=now)
    if expire_at > now and expire_at < hit.expiration:
        raise InvalidParameter(
            "A HIT's expiration can be put off or made now, not brought forward: ExpireAt "
            f"{expire_at.isoformat()} is before the present one, {hit.expiration.isoformat()}."
        )
    require(
        expire_at <= now + LONGEST_LIFETIME,
        InvalidParameter("ExpireAt must lie within 31536000 seconds from now."),
    )
    if expire_at <= now:
        hit.save_values(expiration=min(hit.expiration, now))
    elif expire_at > hit.expiration:
        settlement.put_off(hit, until=expire_at, now=now)
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def add_assignments(
    *, requester: Requester, public_id: str, additional: int, token: str | None
) -> None:
    now, extensions = clock.now(), HitExtension.objects.all()
    repeated = partial(DuplicateRequest, "HIT extension")
    refuse_repetition(extensions, requester, token, repeated)
    hit = _lock_hit(requester, public_id, now=now)
    try:
        with transaction.atomic():
            HitExtension.objects.create(
                requester=requester,
                hit=hit,
                additional_assignments=additional,
                unique_request_token=token,
                created_at=now,
            )
    except IntegrityError:
        # The same token came in on another connection at the same moment.
        refuse_repetition(extensions, requester, token, repeated)
        raise
    settlement.add_assignments(hit, additional=additional, now=now)
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def change_type(*, requester: Requester, public_id: str, hit_type: HitType) -> None:
    """Give a HIT another type. Accepted assignments keep their reward and time."""
    now = clock.now()
    hit = _lock_hit(requester, public_id, now=now)
    require(
        hit_type.paid_by == hit.hit_type.paid_by,
        InvalidParameter(
            "The one HIT type is paid by a recruiter, the other by this marketplace: "
            "a HIT can't go from one to the other."
        ),
    )
    hit.save_values(hit_type=hit_type, fee_usd=fee_per_assignment(hit_type, hit.max_assignments))
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def set_reviewing(*, requester: Requester, public_id: str, revert: bool) -> None:
    hit = _lock_hit(requester, public_id, now=clock.now(), is_changed=False)
    before, after = Hit.Status.REVIEWABLE, Hit.Status.REVIEWING
    if revert:
        before, after = after, before
    require(hit.status == before, InvalidHitState(_state_message(hit, before.value)))
    hit.save_values(status=after)


@transaction.atomic
def delete_hit(*, requester: Requester, public_id: str) -> None:
    now = clock.now()
    hit = _lock_hit(requester, public_id, now=now, is_changed=False)
    require(
        hit.status in (Hit.Status.REVIEWABLE, Hit.Status.REVIEWING),
        InvalidHitState(_state_message(hit, "Reviewing, Reviewable")),
    )
    require(
        not Assignment.objects.on(hit).filter(status=Assignment.Status.SUBMITTED).exists(),
        InvalidHitState(
            f"Hit {public_id} has submitted assignments that are neither approved nor rejected."
        ),
    )
    lifecycle.dispose(hit, now=now)


def _lock_hit(
    requester: Requester, public_id: str, *, now: datetime, is_changed: bool = True
) -> Hit:
    """The HIT, settled. One that is to be changed must not be disposed."""
    hit = first_or_raise(
        Hit.objects.of(requester).filter(public_id=public_id).locked(), HitDoesNotExist(public_id)
    )
    lifecycle.apply_time(hit, now=now)
    require(
        not is_changed or hit.status != Hit.Status.DISPOSED,
        InvalidHitState(_state_message(hit, "Assignable, Unassignable, Reviewable, Reviewing")),
    )
    return hit


def _state_message(hit: Hit, allowed: str) -> str:
    return (
        f"This HIT is currently in the state '{hit.status}'.  "
        f"This operation can be called with a status of: {allowed}"
    )
