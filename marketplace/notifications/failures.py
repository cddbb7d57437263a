"""What could not be delivered: events of requesters by every transport, and workers' mail."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.utils.translation import gettext as _

from marketplace.models import Notification, Transport, WorkerMessage

FAILURES_SHOWN = 20
SHOWN_FOR = timedelta(days=7)
WORKER_MAIL = "worker mail"


@dataclass(frozen=True)
class Delivery:
    """One way by which messages leave: those that wait, those that failed before and wait for
    another attempt, and those that were given up within a week."""

    name: str
    n_waiting: int = 0
    n_retrying: int = 0
    n_given_up: int = 0

    @property
    def label(self) -> str:
        """What pages call it: transports have the API's names."""
        return _("E-mail to workers") if self.name == WORKER_MAIL else self.name


def deliveries(now: datetime) -> list[Delivery]:
    """Every transport, also one that nothing waits for, and workers' mail."""
    given_up = Q(created_at__gte=now - SHOWN_FOR)
    open_rows = Notification.objects.unsent() | Notification.objects.given_up().filter(given_up)
    is_waiting = Q(next_attempt_at__isnull=False)
    rows = (
        open_rows.order_by()
        .values(name=F("transport"))
        .annotate(
            n_waiting=Count("pk", is_waiting & Q(attempts=0)),
            n_retrying=Count("pk", is_waiting & Q(attempts__gt=0)),
            n_given_up=Count("pk", Q(next_attempt_at=None)),
        )
    )
    by_transport: dict[str, dict[str, Any]] = {row["name"]: dict(row) for row in rows}
    of_events = [
        Delivery(**by_transport.get(transport, {"name": str(transport)})) for transport in Transport
    ]
    return [*of_events, _worker_mail(now)]


def given_up_lately(now: datetime) -> QuerySet[Notification]:
    """The latest events that nobody could be told of, within a week."""
    rows = Notification.objects.given_up().filter(created_at__gte=now - SHOWN_FOR)
    return rows.select_related("requester").order_by("-created_at")[:FAILURES_SHOWN]


def _worker_mail(now: datetime) -> Delivery:
    waiting = WorkerMessage.objects.filter(next_mail_at__isnull=False)
    given_up = WorkerMessage.objects.filter(
        next_mail_at=None, mailed_at=None, mail_attempts__gt=0, created_at__gte=now - SHOWN_FOR
    )
    counts = waiting.aggregate(
        n_waiting=Count("pk", Q(mail_attempts=0)), n_retrying=Count("pk", Q(mail_attempts__gt=0))
    )
    return Delivery(WORKER_MAIL, n_given_up=given_up.count(), **counts)
