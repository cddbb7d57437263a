"""Figures of the whole site, from the database, for monitors: work, HITs, money, failures."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from marketplace.hits.counts import assignments_by_status, hits_by_status
from marketplace.models import LedgerAudit
from marketplace.money.totals import totals
from marketplace.notifications.failures import deliveries
from work.backlog import backlogs, is_late

Values = dict[tuple[str, ...], float]


@dataclass(frozen=True)
class Figure:
    """One metric: its values by those of its labels."""

    name: str
    text: str
    labels: tuple[str, ...]
    values: Values
    # Whether it only ever grows.
    is_counter: bool = False


def site_figures(now: datetime) -> list[Figure]:
    """All of them, at one time."""
    return [*_work(now), *_hits(), *_money(), *_audit(now), _undelivered(now)]


def _work(now: datetime) -> Iterator[Figure]:
    queues = backlogs(now)
    states: Values = {
        (each.queue, state): float(n)
        for each in queues
        for state, n in (
            ("waiting", each.n_waiting),
            ("retrying", each.n_retrying),
            ("running", each.n_running),
        )
    }
    yield Figure("assay_jobs", "Unfinished jobs.", ("queue", "state"), states)
    oldest: Values = {(each.queue,): each.oldest_seconds for each in queues}
    text = "The longest that a job waits which could begin."
    yield Figure("assay_job_oldest_seconds", text, ("queue",), oldest)
    failed: Values = {(each.queue,): float(each.n_failed) for each in queues}
    yield Figure("assay_jobs_failed", "Jobs that failed within a day.", ("queue",), failed)
    text = "1 where what happens by time is five minutes late."
    yield _single("assay_background_work_late", text, float(is_late(now)))


def _hits() -> Iterator[Figure]:
    for name, text, counts in (
        ("assay_hits", "HITs on this site's marketplace.", hits_by_status()),
        ("assay_assignments", "Assignments of these HITs.", assignments_by_status()),
    ):
        values: Values = {(status,): float(n) for status, n in counts.items()}
        yield Figure(name, text, ("status",), values)


def _money() -> Iterator[Figure]:
    money = totals()
    balances: Values = {(kind,): float(amount) for kind, amount in money.balances_usd.items()}
    yield Figure("assay_balance_usd", "What accounts of a kind hold.", ("account",), balances)
    text = "Rewards and bonuses that workers were paid."
    yield _single("assay_earned_usd", text, float(money.earned_usd), is_counter=True)
    text = "Earnings that left the marketplace."
    yield _single("assay_paid_out_usd", text, float(money.paid_out_usd), is_counter=True)


def _audit(now: datetime) -> Iterator[Figure]:
    """Nothing where there was no audit yet, rather than a balance that nobody looked at."""
    if latest := LedgerAudit.objects.order_by("pk").last():
        text = "What the latest audit found wrong in the ledger."
        yield _single("assay_ledger_problems", text, float(latest.n_problems))
        age_seconds = (now - latest.created_at).total_seconds()
        yield _single("assay_ledger_audit_age_seconds", "Since that audit.", age_seconds)


def _undelivered(now: datetime) -> Figure:
    values: Values = {
        (each.name, state): float(n)
        for each in deliveries(now)
        for state, n in (
            ("waiting", each.n_waiting),
            ("retrying", each.n_retrying),
            ("given up", each.n_given_up),
        )
    }
    text = "Notifications and mail that were not delivered; given up within a week."
    return Figure("assay_undelivered", text, ("transport", "state"), values)


def _single(name: str, text: str, value: float, *, is_counter: bool = False) -> Figure:
    return Figure(name, text, (), {(): value}, is_counter)
