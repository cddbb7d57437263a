"""Changes to a batch that is out: more assignments, more time, an end.

What is intended is stored first (`Hit.max_assignments`, `Batch.expires_at`, `Batch.closed_at`).
`apply_changes` then asks the marketplace how each HIT stands and sends the difference only, so
that it may be stopped anywhere and run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from hits.budgets import require_within_budgets
from hits.costs import MANY_ASSIGNMENTS, Estimate, cost_of_assignment
from hits.endpoints import translated_errors
from hits.exceptions import ChangeUnfit, MarketplaceRefused
from hits.models import YEAR_SECONDS, Batch, Hit
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient
    from mypy_boto3_mturk.type_defs import HITTypeDef

    from accounts.models import User

# The marketplace rounds times to the second.
SAME_TIME = timedelta(seconds=2)
GONE = "Disposed"


@dataclass(frozen=True)
class Missing:
    """What a batch lacks of the judgments that were wanted of each item, and what it would cost
    to ask for them again."""

    hits: tuple[tuple[int, int, int], ...]
    """A HIT's key, how many assignments came in for it, and how many are missing."""
    cost: Estimate

    @property
    def n_assignments(self) -> int:
        return sum(n_missing for *_, n_missing in self.hits)


def price_of_more(batch: Batch, n_more: int) -> Estimate:
    """What so many more assignments of every published HIT may cost; ChangeUnfit if impossible."""
    if n_more < 1:
        raise ChangeUnfit(_("Ask for at least one more assignment of each HIT."))
    hits = list(Hit.objects.of(batch).published().select_related("batch"))
    if not hits:
        raise ChangeUnfit(_("None of the batch's HITs is published yet."))
    for hit in hits:
        _require_same_fee(hit, hit.n_assignments + n_more)
    return _price(batch, [(hit, n_more) for hit in hits])


@transaction.atomic
def add_assignments(
    *, batch: Batch, n_more: int, n_added: int, expected: Estimate, actor: User | None
) -> None:
    """Intend so many more assignments of every published HIT, at the cost that was displayed.

    `n_added` is how many had been added before, when it was: the same request sent twice is
    refused the second time.
    """
    locked = _locked(batch)
    if locked.n_added != n_added:
        raise ChangeUnfit(
            _("Assignments were added to batch {pk} since. Look at it again.").format(pk=batch.pk)
        )
    cost = price_of_more(locked, n_more)
    _require_unchanged(locked, expected, cost)
    require_within_budgets(study=locked.study, batch=locked, extra_usd=cost.total_usd)
    for hit in Hit.objects.of(locked).published().select_related("batch"):
        Hit.objects.filter(pk=hit.pk).update(
            max_assignments=hit.n_assignments + n_more, n_answers=None
        )
    Batch.objects.filter(pk=locked.pk).update(n_added=F("n_added") + n_more)
    _record("batch.add_assignments", locked, actor, n_more=n_more, cost_usd=cost.total_usd)


def missing_assignments(batch: Batch) -> Missing:
    """Assignments that rejected, unreadable and expired work has left missing."""
    is_over = expiry_of(batch) <= timezone.now()
    n_wanted = batch.max_assignments + batch.n_added
    hits = Hit.objects.of(batch).published().select_related("batch")
    hits = hits.lacking(n_wanted, can_still_come=not is_over)
    rows = []
    for hit in hits:
        wanted = batch.hit_sizes[hit.wave - 1] + batch.n_added
        still_possible = 0 if is_over else max(hit.n_assignments - hit.n_taken, 0)
        if (n := wanted - hit.n_usable - still_possible) > 0:
            rows.append((hit, n))
    return Missing(tuple((hit.pk, hit.n_taken, n) for hit, n in rows), _price(batch, rows))


@transaction.atomic
def repost_missing(
    *, batch: Batch, expires_at: datetime, expected: Estimate, actor: User | None
) -> None:
    """Intend the missing assignments, and time in which to do them."""
    locked = _locked(batch)
    missing = missing_assignments(locked)
    if not missing.hits:
        raise ChangeUnfit(_("Nothing is missing: every item has the judgments it was meant to."))
    _require_unchanged(locked, expected, missing.cost)
    _require_future(locked, expires_at)
    require_within_budgets(study=locked.study, batch=locked, extra_usd=missing.cost.total_usd)
    hits = Hit.objects.select_related("batch").in_bulk([pk for pk, *_ in missing.hits])
    for pk, n_taken, n_missing in missing.hits:
        _require_same_fee(hits[pk], n_taken + n_missing)
        total = max(n_taken + n_missing, hits[pk].n_assignments)
        Hit.objects.filter(pk=pk).update(max_assignments=total, n_answers=None)
    Batch.objects.filter(pk=locked.pk).update(expires_at=expires_at)
    _record(
        "batch.repost",
        locked,
        actor,
        n_assignments=missing.n_assignments,
        cost_usd=missing.cost.total_usd,
    )


@transaction.atomic
def extend_batch(*, batch: Batch, expires_at: datetime, actor: User | None) -> None:
    """Intend a later expiry of every HIT; nothing more is wanted, so that it costs nothing."""
    locked = _locked(batch)
    _require_future(locked, expires_at)
    Batch.objects.filter(pk=batch.pk).update(expires_at=expires_at)
    Hit.objects.of(batch).update(n_answers=None)
    _record("batch.extend", locked, actor, expires_at=expires_at.isoformat())


@transaction.atomic
def expire_batch(*, batch: Batch, actor: User | None) -> None:
    """Intend that nobody can accept a HIT any more; who has accepted one can still submit."""
    locked = _locked(batch)
    Batch.objects.filter(pk=batch.pk).update(expires_at=timezone.now())
    _record("batch.expire", locked, actor)


@transaction.atomic
def close_batch(*, batch: Batch, actor: User | None) -> None:
    """Expire a batch for good: what is out comes in and is paid, nothing else is published."""
    locked = _locked(batch)
    now = timezone.now()
    Batch.objects.filter(pk=batch.pk).update(expires_at=now, closed_at=now)
    _record("batch.close", locked, actor)


@dataclass(frozen=True)
class Applied:
    """What one run brought about at the marketplace."""

    n_assignments_added: int = 0
    n_expiries_set: int = 0
    n_gone: int = 0

    def __str__(self) -> str:
        parts = [
            _("{n} assignments added").format(n=self.n_assignments_added),
            _("{n} expiries set").format(n=self.n_expiries_set),
        ]
        if self.n_gone:
            parts.append(_("{n} HITs are no longer there").format(n=self.n_gone))
        return f"{', '.join(parts)}."


def apply_changes(*, batch: Batch, client: MTurkClient, progress: Progress = silently) -> Applied:
    """Bring the marketplace's HITs to what is intended of them."""
    waiting = list(Hit.objects.of(batch).awaiting_change().values_list("pk", flat=True))
    n_added = n_expiries = n_gone = 0
    for hit in progress(_in_turn(waiting), len(waiting)):
        with translated_errors():
            there = client.get_hit(HITId=hit.hit_id)["HIT"]
        if there["HITStatus"] == GONE:
            n_gone += 1
        else:
            n_added += _add_assignments(client, hit, there)
            n_expiries += _set_expiry(client, hit, there)
        Hit.objects.filter(pk=hit.pk).update(
            confirmed_assignments=hit.n_assignments, expiry_confirmed_at=hit.batch.expires_at
        )
    return Applied(n_added, n_expiries, n_gone)


def _in_turn(keys: list[int]) -> Iterator[Hit]:
    for key in keys:
        yield Hit.objects.select_related("batch").get(pk=key)


def _add_assignments(client: MTurkClient, hit: Hit, there: HITTypeDef) -> int:
    n_more = hit.n_assignments - there["MaxAssignments"]
    if n_more <= 0:
        return 0
    content = f"{hit.requester_annotation}:{hit.n_assignments}"
    try:
        with translated_errors():
            client.create_additional_assignments_for_hit(
                HITId=hit.hit_id,
                NumberOfAdditionalAssignments=n_more,
                UniqueRequestToken=hashlib.sha256(content.encode()).hexdigest(),
            )
    except MarketplaceRefused:
        # The same request may have got through whose answer was lost, or another process's.
        with translated_errors():
            now_there = client.get_hit(HITId=hit.hit_id)["HIT"]["MaxAssignments"]
        if now_there < hit.n_assignments:
            raise
    return n_more


def _set_expiry(client: MTurkClient, hit: Hit, there: HITTypeDef) -> int:
    intended, now = hit.batch.expires_at, timezone.now()
    if intended is None:
        return 0
    is_over = intended <= now
    if is_over and there["Expiration"] <= now:
        return 0
    # A marketplace never moves an expiry to an earlier time that is still to come.
    if not is_over and there["Expiration"] >= intended - SAME_TIME:
        return 0
    with translated_errors():
        client.update_expiration_for_hit(HITId=hit.hit_id, ExpireAt=intended)
    return 1


def _locked(batch: Batch) -> Batch:
    locked = Batch.objects.select_for_update(of=("self",)).select_related("study", "connection")
    batch = locked.get(pk=batch.pk)
    if batch.closed_at:
        raise ChangeUnfit(_("Batch {pk} is closed; launch another one.").format(pk=batch.pk))
    return batch


def _require_unchanged(batch: Batch, expected: Estimate, cost: Estimate) -> None:
    if (expected.n_assignments, expected.total_usd) != (cost.n_assignments, cost.total_usd):
        raise ChangeUnfit(
            _(
                "Batch {pk} has changed since: it would be {n} assignments for ${cost}. Look at it "
                "again."
            ).format(pk=batch.pk, n=cost.n_assignments, cost=f"{cost.total_usd:.2f}")
        )


def _require_same_fee(hit: Hit, n_assignments: int) -> None:
    """MTurk refuses to take a HIT from below ten assignments to ten or more."""
    if hit.n_assignments < MANY_ASSIGNMENTS <= n_assignments:
        raise ChangeUnfit(
            _(
                "A HIT of fewer than ten assignments cannot be given ten or more. Launch another "
                "round for the items that need them."
            )
        )


def _price(batch: Batch, rows: list[tuple[Hit, int]]) -> Estimate:
    """What so many more assignments of these HITs may cost, each at its own fee."""
    n_assignments = sum(n for _, n in rows)
    total = sum((n * cost_of_assignment(batch, hit.n_assignments) for hit, n in rows), Decimal(0))
    rewards = batch.reward_usd * n_assignments
    return Estimate(len(rows), n_assignments, rewards, total - rewards)


def _require_future(batch: Batch, expires_at: datetime) -> None:
    now = timezone.now()
    if not now < expires_at <= now + timedelta(seconds=YEAR_SECONDS):
        raise ChangeUnfit(_("The new end must lie in the future, within a year."))
    present = expiry_of(batch)
    if present > now and expires_at < present:
        raise ChangeUnfit(
            _("A marketplace cannot make HITs expire earlier than on {at}, only now.").format(
                at=f"{present:%Y-%m-%d %H:%M} UTC"
            )
        )


def expiry_of(batch: Batch) -> datetime:
    """When the last of the batch's HITs expire, as far as we know."""
    started = batch.publishing_started_at or timezone.now()
    return batch.expires_at or started + timedelta(seconds=batch.lifetime_seconds)


def _record(action: str, batch: Batch, actor: User | None, **details: object) -> None:
    record(
        team=batch.study.team,
        actor=actor,
        action=action,
        subject=f"{batch.study.slug}, batch {batch.pk}",
        details={name: str(value) for name, value in details.items()},
    )
