"""What a HIT's assignments add up to, in one question to the database."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.db.models import Count, Max, Min, Q

from marketplace.models import Assignment, Hit, WorkerAccount

Status = Assignment.Status


@dataclass
class Tally:
    """How many assignments of each status and price there are, and the dates that matter."""

    counts: Counter[str] = field(default_factory=Counter)
    by_price: Counter[tuple[str, Decimal]] = field(default_factory=Counter)
    next_deadline: datetime | None = None
    next_auto_approval: datetime | None = None
    last_closed_at: datetime | None = None
    # Of one worker's, where it was asked for: the status of the one that isn't given up.
    own_status: str | None = None

    @property
    def accepted(self) -> int:
        """Those being worked on."""
        return self.counts[Status.ACCEPTED]

    @property
    def submitted(self) -> int:
        """Those without a decision."""
        return self.counts[Status.SUBMITTED]

    @property
    def taken(self) -> int:
        """Those that count towards `max_assignments`."""
        n_released = sum(self.counts[status] for status in Assignment.GIVEN_UP_STATUSES)
        return self.counts.total() - n_released

    def add_accepted(self, assignment: Assignment) -> None:
        """Count one more, just accepted."""
        self.counts[Status.ACCEPTED] += 1
        self.by_price[Status.ACCEPTED, assignment.price_usd] += 1
        self.next_deadline = _earliest((self.next_deadline, assignment.deadline))


def count_assignments(hit: Hit, *, worker: WorkerAccount | None = None) -> Tally:
    """The tally of a HIT, as it is once the HIT's lock is held."""
    rows = Assignment.objects.on(hit).values("status", "reward_usd", "fee_usd").order_by()
    rows = rows.annotate(
        count=Count("pk"),
        deadline=Min("deadline"),
        auto_approval=Min("auto_approval_at"),
        closed=Max("closed_at"),
    )
    if worker is not None:
        rows = rows.annotate(own=Count("pk", filter=Q(worker=worker)))
    tally = Tally()
    for row in rows:
        status, price_usd = row["status"], row["reward_usd"] + row["fee_usd"]
        tally.counts[status] += row["count"]
        tally.by_price[status, price_usd] += row["count"]
        if status == Status.ACCEPTED:
            tally.next_deadline = _earliest((tally.next_deadline, row["deadline"]))
        if status == Status.SUBMITTED:
            times = (tally.next_auto_approval, row["auto_approval"])
            tally.next_auto_approval = _earliest(times)
        closed = [at for at in (tally.last_closed_at, row["closed"]) if at]
        tally.last_closed_at = max(closed, default=None)
        if row.get("own") and status not in Assignment.GIVEN_UP_STATUSES:
            tally.own_status = status
    return tally


def _earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in times if at), default=None)
