"""Metrics for Prometheus: what this machine's web processes counted, and figures of the site.

Requests are counted in memory, by each process; where gunicorn starts several they add up in a
folder (config.gunicorn), and each machine is scraped for itself. Everything else is computed from
the database, which is the same for all machines: take its maximum, not its sum.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.core.exceptions import MiddlewareNotUsed
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector
from redis.exceptions import RedisError

from marketplace.hits.settlement import count_by_status
from marketplace.models import Assignment, Hit, LedgerAudit
from marketplace.money.reconciliation import totals
from marketplace.notifications.delivery import deliveries
from work.periodic import backlogs, is_late

# Several servers may ask at once; the site is asked no more often than this.
KEPT_SECONDS = 30
# Not the name that held other values before an upgrade.
CACHE_KEY = "metric-families"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

requests_total = Counter(
    "assay_requests", "Requests that were answered.", ["method", "view", "status"]
)
request_seconds = Histogram(
    "assay_request_duration_seconds",
    "Seconds until an answer began.",
    ["view"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30),
)


class RequestCounts:
    """Middleware: counts requests by view, so that no address that anybody invents is a label."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if not settings.METRICS_TOKEN:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        response = self.get_response(request)
        view = request.resolver_match.view_name if request.resolver_match else ""
        requests_total.labels(
            request.method if request.method in METHODS else "other", view, response.status_code
        ).inc()
        request_seconds.labels(view).observe(time.perf_counter() - started)
        return response


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Everything that is measured, in Prometheus's text format.

    Access: who sends METRICS_TOKEN; nobody where there is none.
    """
    if not settings.METRICS_TOKEN:
        raise Http404
    if not constant_time_compare(
        request.headers.get("Authorization", ""), f"Bearer {settings.METRICS_TOKEN}"
    ):
        answer = HttpResponse("Send the site's METRICS_TOKEN as a bearer token.\n", status=401)
        answer.headers["WWW-Authenticate"] = "Bearer"
    else:
        answer = HttpResponse(generate_latest(_Figures()) + generate_latest(_counts()))
    answer.headers["Content-Type"] = CONTENT_TYPE_PLAIN_0_0_4
    return answer


def _counts() -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


class _Figures(CollectorRegistry):
    def collect(self) -> Iterator[Metric]:
        # A Redis that is away is what they are to tell of: then they are computed each time.
        figures: list[Metric] | None = None
        with suppress(RedisError):
            figures = cache.get(CACHE_KEY)
        if figures is None:
            now = timezone.now()
            figures = [*_work(now), *_hits(), *_money(), *_audit(now), _undelivered(now)]
            with suppress(RedisError):
                cache.set(CACHE_KEY, figures, KEPT_SECONDS)
        yield from figures


def _figure(
    name: str,
    text: str,
    values: Mapping[Any, float],  # by the values of the labels
    labels: tuple[str, ...] = (),
    *,
    is_counter: bool = False,  # whether it only ever grows
) -> Metric:
    make = CounterMetricFamily if is_counter else GaugeMetricFamily
    family: Any = make(name, text, labels=labels)
    for each, value in values.items():
        family.add_metric(each, float(value))
    return cast(Metric, family)


def _work(now: datetime) -> Iterator[Metric]:
    queues = backlogs(now)
    states = {
        (each["queue"], state): each[f"n_{state}"]
        for each in queues
        for state in ("waiting", "retrying", "running")
    }
    yield _figure("assay_jobs", "Unfinished jobs.", states, ("queue", "state"))
    yield _figure(
        "assay_job_oldest_seconds",
        "The longest that a job waits which could begin.",
        {(each["queue"],): each["oldest_seconds"] for each in queues},
        ("queue",),
    )
    yield _figure(
        "assay_jobs_failed",
        "Jobs that failed within a day.",
        {(each["queue"],): each["n_failed"] for each in queues},
        ("queue",),
    )
    yield _figure(
        "assay_background_work_late",
        "1 where what happens by time is five minutes late.",
        {(): is_late(now)},
    )


def _hits() -> Iterator[Metric]:
    for name, text, counts in (
        ("assay_hits", "HITs on this site's marketplace.", count_by_status(Hit)),
        ("assay_assignments", "Assignments of these HITs.", count_by_status(Assignment)),
    ):
        yield _figure(name, text, {(status,): n for status, n in counts.items()}, ("status",))


def _money() -> Iterator[Metric]:
    by_kind, earned_usd, paid_out_usd = totals()
    balances = {(kind,): float(amount) for kind, amount in by_kind.items()}
    yield _figure("assay_balance_usd", "What accounts of a kind hold.", balances, ("account",))
    for name, text, amount in (
        ("assay_earned_usd", "Rewards and bonuses that workers were paid.", earned_usd),
        ("assay_paid_out_usd", "Earnings that left the marketplace.", paid_out_usd),
    ):
        yield _figure(name, text, {(): float(amount)}, is_counter=True)


def _audit(now: datetime) -> Iterator[Metric]:
    # Nothing where there was no audit yet, rather than a balance that nobody looked at.
    if latest := LedgerAudit.objects.order_by("pk").last():
        text = "What the latest audit found wrong in the ledger."
        yield _figure("assay_ledger_problems", text, {(): latest.n_problems})
        age_seconds = (now - latest.created_at).total_seconds()
        yield _figure("assay_ledger_audit_age_seconds", "Since that audit.", {(): age_seconds})


def _undelivered(now: datetime) -> Metric:
    return _figure(
        "assay_undelivered",
        "Notifications and mail that were not delivered; given up within a week.",
        {
            (each.name, state): n
            for each in deliveries(now)
            for state, n in (
                ("waiting", each.n_waiting),
                ("retrying", each.n_retrying),
                ("given up", each.n_given_up),
            )
        },
        ("transport", "state"),
    )
