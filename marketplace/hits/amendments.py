"""Changing a HIT that exists: its end, its assignments, its type, its review status."""

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from marketplace import clock
from marketplace.exceptions import (
    DuplicateRequest,
    HitDoesNotExist,
    InvalidHitState,
    InvalidParameter,
)
from marketplace.hits import extensions, lifecycle
from marketplace.hits.creation import fee_per_assignment
from marketplace.models import Assignment, Hit, HitExtension, HitType, Requester
from marketplace.qualifications.requirements import stored_requirements

LONGEST_LIFETIME = timedelta(days=365)


@transaction.atomic
def update_expiration(*, requester: Requester, public_id: str, expire_at: datetime) -> None:
    """Expire a HIT now, or let it live longer; money for assignments that open again is held."""
    now = clock.now()
    hit = _lock_hit(requester, public_id, now=now)
    _require_existing(hit)
    if expire_at > now and expire_at < hit.expiration:
        raise InvalidParameter(
            "A HIT's expiration can be put off or made now, not brought forward: ExpireAt "
            f"{expire_at.isoformat()} is before the present one, {hit.expiration.isoformat()}."
        )
    if expire_at > now + LONGEST_LIFETIME:
        raise InvalidParameter("ExpireAt must lie within 31536000 seconds from now.")
    if expire_at <= now:
        hit.expiration = min(hit.expiration, now)
        hit.save(update_fields=["expiration"])
    elif expire_at > hit.expiration:
        extensions.put_off(hit, until=expire_at, now=now)
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def add_assignments(
    *, requester: Requester, public_id: str, additional: int, token: str | None
) -> None:
    """Ask more workers; money for them is held, or nothing changes."""
    now = clock.now()
    _refuse_repetition(requester, token)
    hit = _lock_hit(requester, public_id, now=now)
    _require_existing(hit)
    extension = HitExtension(
        requester=requester,
        hit=hit,
        additional_assignments=additional,
        unique_request_token=token,
        created_at=now,
    )
    _insert(extension)
    extensions.add_assignments(hit, additional=additional, now=now)
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def change_type(*, requester: Requester, public_id: str, hit_type: HitType) -> None:
    """Give a HIT another type. Who has accepted an assignment already is paid what was
    promised then, and keeps the time that was given."""
    now = clock.now()
    hit = _lock_hit(requester, public_id, now=now)
    _require_existing(hit)
    if hit_type.paid_by != hit.hit_type.paid_by:
        raise InvalidParameter(
            "The one HIT type is paid by a recruiter, the other by this marketplace: "
            "a HIT can't go from one to the other."
        )
    hit.hit_type = hit_type
    hit.fee_usd = fee_per_assignment(hit_type, stored_requirements(hit_type), hit.max_assignments)
    hit.save(update_fields=["hit_type", "fee_usd"])
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def set_reviewing(*, requester: Requester, public_id: str, revert: bool) -> None:
    """Take a HIT out of the reviewable ones, or, reverting, put it back."""
    now = clock.now()
    hit = _lock_hit(requester, public_id, now=now)
    before, after = Hit.Status.REVIEWABLE, Hit.Status.REVIEWING
    if revert:
        before, after = after, before
    if hit.status != before:
        raise InvalidHitState(_state_message(hit, before.value))
    hit.status = after
    hit.save(update_fields=["status"])


@transaction.atomic
def delete_hit(*, requester: Requester, public_id: str) -> None:
    """Dispose of a HIT on which everything is decided."""
    now = clock.now()
    hit = _lock_hit(requester, public_id, now=now)
    if hit.status not in (Hit.Status.REVIEWABLE, Hit.Status.REVIEWING):
        raise InvalidHitState(_state_message(hit, "Reviewing, Reviewable"))
    if Assignment.objects.on(hit).filter(status=Assignment.Status.SUBMITTED).exists():
        raise InvalidHitState(
            f"Hit {public_id} has submitted assignments that are neither approved nor rejected."
        )
    lifecycle.dispose(hit, now=now)


def _lock_hit(requester: Requester, public_id: str, *, now: datetime) -> Hit:
    hit = Hit.objects.of(requester).filter(public_id=public_id).locked().first()
    if hit is None:
        raise HitDoesNotExist(public_id)
    lifecycle.apply_time(hit, now=now)
    return hit


def _require_existing(hit: Hit) -> None:
    if hit.status == Hit.Status.DISPOSED:
        raise InvalidHitState(
            _state_message(hit, "Assignable, Unassignable, Reviewable, Reviewing")
        )


def _insert(extension: HitExtension) -> None:
    try:
        with transaction.atomic():
            extension.save(force_insert=True)
    except IntegrityError:
        # The same token came in on another connection at the same moment.
        _refuse_repetition(extension.requester, extension.unique_request_token)
        raise


def _refuse_repetition(requester: Requester, token: str | None) -> None:
    if token is None:
        return
    earlier = HitExtension.objects.filter(requester=requester, unique_request_token=token).first()
    if earlier is not None:
        raise DuplicateRequest("HIT extension", earlier.public_id)


def _state_message(hit: Hit, allowed: str) -> str:
    return (
        f"This HIT is currently in the state '{hit.status}'.  "
        f"This operation can be called with a status of: {allowed}"
    )
