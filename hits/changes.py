"""Changes to a published batch: more assignments, more time, an end. What is intended is stored
(`Hit.max_assignments`, `Batch.expires_at`, `Batch.closed_at`) and then sent by `apply_changes`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from accounts.audit import record
from accounts.models import User
from annotation.models import Study
from hits.calls import match_published, sole_publisher
from hits.costs import (
    MANY_ASSIGNMENTS,
    Estimate,
    cost_of_assignment,
    cost_of_practice,
    require_within_budgets,
)
from hits.endpoints import HITTypeDef, MTurkClient, translated_errors
from hits.exceptions import ChangeUnfit, MarketplaceRefused, require
from hits.limits import earning, run_time
from hits.models import YEAR_SECONDS, Batch, Hit, PracticeHit
from presentation.progress import Progress, silently

NOTHING_MORE = Estimate(0, 0, Decimal("0.00"), Decimal("0.00"))


@dataclass(frozen=True)
class MissingAssignments:
    # A HIT's key, how many assignments came in for it, and how many are missing.
    hits: tuple[tuple[int, int, int], ...]
    # Of these, and of what else a later expiry puts on offer again.
    cost: Estimate

    @property
    def n_assignments(self) -> int:
        return sum(n_missing for *_, n_missing in self.hits)


def price_of_more(batch: Batch, n_more: int) -> Estimate:
    require(
        n_more >= 1,
        ChangeUnfit(_("Ask for at least one more assignment of each HIT."), code="none_added"),
    )
    hits = list(Hit.objects.of(batch).published().select_related("batch"))
    require(hits, ChangeUnfit(_("None of the batch's HITs is published yet."), code="unpublished"))
    for hit in hits:
        _require_same_fee(hit, hit.n_assignments + n_more)
    return _price(batch, [(hit, n_more) for hit in hits])


@transaction.atomic
def add_assignments(
    *, batch: Batch, n_more: int, n_added: int, expected: Estimate, actor: User | None
) -> None:
    """`n_added` is how many had been added when the cost was displayed: the same request sent
    twice is refused the second time."""
    current = _locked_batch(batch)
    require(
        current.n_added == n_added,
        ChangeUnfit(
            _("Assignments were added to batch {pk} since. Look at it again.").format(pk=batch.pk),
            code="changed_since",
        ),
    )
    cost = price_of_more(current, n_more)
    _require_unchanged(current, expected, cost)
    _require_within_budgets(current, cost)
    # What a HIT that is over can take is paid for by whoever opens it again (extend_batch).
    present = Coalesce(F("max_assignments"), Value(current.max_assignments))
    Hit.objects.of(current).published().update(max_assignments=present + n_more)
    Batch.objects.filter(pk=current.pk).update(n_added=F("n_added") + n_more)
    _record("batch.add_assignments", current, actor, n_more=n_more, cost_usd=cost.total_usd)


def missing_assignments(batch: Batch) -> MissingAssignments:
    is_over = batch.offered_until <= timezone.now()
    n_needed = batch.max_assignments + batch.n_added
    published = Hit.objects.of(batch).published()
    lacking = Q(n_usable__lt=n_needed)
    if not is_over:
        # More can still come on those of which all that came counts.
        lacking &= Q(n_taken__gt=F("n_usable"))
    counts = published.counts_of_answers(lacking)
    hits = published.filter(Q(pk__in=counts) | Q(n_answers__isnull=False)).select_related("batch")
    gaps, priced, others = [], [], []
    for hit in hits.order_by("pk"):
        n_taken, n_usable, _n_rejected = counts.get(hit.pk, (0, 0, 0))
        n = _n_missing(hit, n_taken, n_usable, is_over=is_over) if hit.pk in counts else 0
        if n > 0:
            gaps.append((hit.pk, n_taken, n))
            # Of a HIT that is over, all that it has left is on offer again.
            priced.append((hit, max(n, is_over * (hit.n_assignments - n_taken))))
        else:
            others.append(hit)
    # A later expiry opens the other HITs too.
    return MissingAssignments(
        tuple(gaps), _price(batch, priced + _reopened(others)) + _reopened_practice_usd(batch)
    )


def _n_missing(hit: Hit, n_taken: int, n_usable: int, *, is_over: bool) -> int:
    needed = hit.batch.wave_assignments(hit.wave) + hit.batch.n_added
    return needed - n_usable - (0 if is_over else max(hit.n_assignments - n_taken, 0))


def missing_after_rejections(study: Study) -> list[tuple[Batch, int]]:
    # Counts only rejected ones, not those that expired.
    counts = (
        Hit.objects.published()
        .filter(batch__study=study, batch__closed_at=None)
        .counts_of_answers(Q(n_rejected__gt=0))
    )
    missing: Counter[Batch] = Counter()
    for hit in Hit.objects.select_related("batch__study").filter(pk__in=counts).order_by("pk"):
        n_taken, n_usable, n_rejected = counts[hit.pk]
        is_over = hit.batch.offered_until <= timezone.now()
        n = min(_n_missing(hit, n_taken, n_usable, is_over=is_over), n_rejected)
        missing[hit.batch] += max(n, 0)
    return [(batch, n) for batch, n in missing.items() if n]


@transaction.atomic
def repost_missing(
    *, batch: Batch, expires_at: datetime, expected: Estimate, actor: User | None
) -> None:
    current = _locked_batch(batch)
    gap = missing_assignments(current)
    require(
        gap.hits,
        ChangeUnfit(
            _("Nothing is missing: every item has the judgments it was meant to."),
            code="nothing_missing",
        ),
    )
    _require_unchanged(current, expected, gap.cost)
    _require_future(current, expires_at)
    _require_within_budgets(current, gap.cost)
    hits = Hit.objects.select_related("batch").in_bulk([pk for pk, *_ in gap.hits])
    for pk, n_taken, n_missing in gap.hits:
        _require_same_fee(hits[pk], n_taken + n_missing)
        Hit.objects.filter(pk=pk).update(
            max_assignments=max(n_taken + n_missing, hits[pk].n_assignments), n_answers=None
        )
    Batch.objects.filter(pk=current.pk).update(expires_at=expires_at)
    Hit.objects.of(current).update(n_answers=None)
    PracticeHit.objects.of(current).update(n_answers=None, ended_at=None)
    _record(
        "batch.repost",
        current,
        actor,
        n_assignments=gap.n_assignments,
        cost_usd=gap.cost.total_usd,
    )


@transaction.atomic
def extend_batch(
    *, batch: Batch, expires_at: datetime, actor: User | None, expected: Estimate = NOTHING_MORE
) -> None:
    current = _locked_batch(batch)
    _require_future(current, expires_at)
    cost = price_of_extension(current)
    _require_unchanged(current, expected, cost)
    _require_within_budgets(current, cost)
    Batch.objects.filter(pk=batch.pk).update(expires_at=expires_at)
    Hit.objects.of(batch).update(n_answers=None)
    PracticeHit.objects.of(batch).update(n_answers=None, ended_at=None)
    _record(
        "batch.extend",
        current,
        actor,
        expires_at=expires_at.isoformat(),
        cost_usd=cost.total_usd,
    )


def price_of_extension(batch: Batch) -> Estimate:
    """The cost of assignments that are on offer again; what is still on offer is committed
    already."""
    hits = Hit.objects.of(batch).published().exclude(n_answers=None).select_related("batch")
    return _price(batch, _reopened(hits)) + _reopened_practice_usd(batch)


def _reopened_practice_usd(batch: Batch) -> Decimal:
    if not batch.practice_type_id:
        return Decimal(0)
    return sum(
        (
            (hit.max_assignments - (hit.n_answers or 0)) * cost_of_practice(batch, hit)
            for hit in PracticeHit.objects.of(batch).published().exclude(n_answers=None)
        ),
        Decimal(0),
    )


def _reopened(hits: Iterable[Hit]) -> list[tuple[Hit, int]]:
    over = [(hit, hit.n_assignments - hit.n_answers) for hit in hits if hit.n_answers is not None]
    return [(hit, n) for hit, n in over if n > 0]


@transaction.atomic
def end_batch(*, batch: Batch, actor: User | None, is_closed: bool = False) -> None:
    current, now = _locked_batch(batch), timezone.now()
    Batch.objects.filter(pk=batch.pk).update(
        **{"expires_at": now} | ({"closed_at": now} if is_closed else {})
    )
    _record("batch.close" if is_closed else "batch.expire", current, actor)


def _locked_batch(batch: Batch) -> Batch:
    batch = (
        Batch.objects.select_for_update(of=("self",))
        .select_related("study", "connection")
        .get(pk=batch.pk)
    )
    require(
        not batch.closed_at,
        ChangeUnfit(
            _("Batch {pk} is closed; launch another one.").format(pk=batch.pk), code="batch_closed"
        ),
    )
    require(
        not batch.study.archived_at,
        ChangeUnfit(
            _("The study is in the archive. Take it out to change its batches."), code="archived"
        ),
    )
    return batch


def _require_unchanged(batch: Batch, expected: Estimate, cost: Estimate) -> None:
    if (expected.n_assignments, expected.total_usd) != (cost.n_assignments, cost.total_usd):
        raise ChangeUnfit(
            ngettext(
                "Batch {pk} has changed since: it would be {n} assignment for ${cost}. Look at it "
                "again.",
                "Batch {pk} has changed since: it would be {n} assignments for ${cost}. Look at it "
                "again.",
                cost.n_assignments,
            ).format(pk=batch.pk, n=cost.n_assignments, cost=f"{cost.total_usd:.2f}"),
            code="changed_since",
        )


def _require_within_budgets(batch: Batch, cost: Estimate) -> None:
    require_within_budgets(study=batch.study, extra_usd_by_batch={batch.pk: cost.total_usd})


def _require_same_fee(hit: Hit, n_assignments: int) -> None:
    if hit.n_assignments < MANY_ASSIGNMENTS <= n_assignments:
        raise ChangeUnfit(
            _(
                "A HIT of fewer than ten assignments cannot be given ten or more. Launch another "
                "round for the items that need them."
            ),
            code="fee_step",
        )


def _price(batch: Batch, rows: list[tuple[Hit, int]]) -> Estimate:
    n_assignments = sum(n for _, n in rows)
    total = sum((n * cost_of_assignment(batch, hit.n_assignments) for hit, n in rows), Decimal(0))
    rewards = batch.reward_usd * n_assignments
    return Estimate(len(rows), n_assignments, rewards, total - rewards)


def _require_future(batch: Batch, expires_at: datetime) -> None:
    now = timezone.now()
    require(
        now < expires_at <= now + timedelta(seconds=YEAR_SECONDS),
        ChangeUnfit(_("The new end must lie in the future, within a year."), code="not_in_future"),
    )
    present = batch.offered_until
    require(
        present <= now or expires_at >= present,
        ChangeUnfit(
            _("A marketplace cannot make HITs expire earlier than on {at}, only now.").format(
                at=f"{present:%Y-%m-%d %H:%M} UTC"
            ),
            code="before_expiry",
        ),
    )


def _record(action: str, batch: Batch, actor: User | None, **details: object) -> None:
    record(
        team=batch.study.team,
        actor=actor,
        action=action,
        subject=f"{batch.study.slug}, batch {batch.pk}",
        details={name: str(value) for name, value in details.items()},
    )


# The marketplace rounds times to the second.
SAME_TIME = timedelta(seconds=2)
GONE = "Disposed"


@dataclass(frozen=True)
class ChangesResult:
    n_assignments_added: int = 0
    n_expiries_set: int = 0
    n_gone: int = 0

    def __add__(self, other: ChangesResult) -> ChangesResult:
        mine, theirs = asdict(self), asdict(other)
        return ChangesResult(**{name: mine[name] + theirs[name] for name in mine})

    def __str__(self) -> str:
        added, expiries, gone = self.n_assignments_added, self.n_expiries_set, self.n_gone
        parts = [
            ngettext("{n} assignment added", "{n} assignments added", added).format(n=added),
            ngettext("{n} expiry set", "{n} expiries set", expiries).format(n=expiries),
        ]
        if gone:
            parts.append(
                ngettext("{n} HIT is no longer there", "{n} HITs are no longer there", gone).format(
                    n=gone
                )
            )
        return f"{', '.join(parts)}."


@run_time()
def apply_changes(
    *, batch: Batch, client: MTurkClient, progress: Progress = silently
) -> ChangesResult:
    n_added = n_expiries = n_gone = 0
    for hit in _awaiting_change(batch, client, progress):
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
    n_expiries += _expire_practice(batch, client)
    return ChangesResult(n_added, n_expiries, n_gone)


def _expire_practice(batch: Batch, client: MTurkClient) -> int:
    n_expiries = 0
    for hit in PracticeHit.objects.of(batch).awaiting_expiry().select_related("batch"):
        with translated_errors():
            there = client.get_hit(HITId=hit.hit_id)["HIT"]
        if there["HITStatus"] != GONE:
            n_expiries += _set_expiry(client, hit, there)
        PracticeHit.objects.filter(pk=hit.pk).update(expiry_confirmed_at=hit.batch.expires_at)
    return n_expiries


def _awaiting_change(batch: Batch, client: MTurkClient, progress: Progress) -> Iterator[Hit]:
    while True:
        batch.refresh_from_db(fields=["closed_at"])
        if batch.closed_at:
            _find_unrecorded(batch, client)
        keys = list(Hit.objects.of(batch).awaiting_change().values_list("pk", flat=True))
        if not keys:
            return
        hits = (Hit.objects.select_related("batch").get(pk=key) for key in keys)
        yield from earning(progress)(hits, len(keys))


def _find_unrecorded(batch: Batch, client: MTurkClient) -> None:
    # Nobody publishes a closed batch any more, so HITs whose answers were lost would stay on offer
    # unknown. A publisher still at work notices that the batch is closed; wait for it.
    unpublished = (rows.of(batch).unpublished() for rows in (Hit.objects, PracticeHit.objects))
    if batch.publishing_started_at and any(rows.exists() for rows in unpublished):
        with sole_publisher(batch):
            match_published(batch=batch, client=client)


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


def _set_expiry(client: MTurkClient, hit: Hit | PracticeHit, there: HITTypeDef) -> int:
    expires_at, now = hit.batch.expires_at, timezone.now()
    if expires_at is None:
        return 0
    is_over = expires_at <= now
    if is_over and there["Expiration"] <= now:
        return 0
    # A marketplace never moves an expiry to an earlier time that is still to come.
    if not is_over and there["Expiration"] >= expires_at - SAME_TIME:
        return 0
    with translated_errors():
        client.update_expiration_for_hit(HITId=hit.hit_id, ExpireAt=expires_at)
    return 1
