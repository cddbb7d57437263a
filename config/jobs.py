from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.db.models import Model, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy

from hits.models import RecruiterCall
from marketplace.models import LedgerAudit, Notification, WorkerMessage
from work.execution import RunningJob
from work.registry import MARKETPLACE, register


@register(
    "delete_expired",
    label=gettext_lazy("Deleting what is kept no longer"),
    queue=MARKETPLACE,
    every_seconds=24 * 3600,
)
def delete_what_expired(running: RunningJob) -> str:
    n = sum(n_deleted for _rule, n_deleted in delete_expired(timezone.now()))
    return f"{n} row{'' if n == 1 else 's'} deleted."


ROWS_AT_ONCE = 5000
ALL_ROWS = Q()


@dataclass(frozen=True)
class RetentionRule:
    name: str
    setting: str
    model: type[Model]
    # When a row's days begin.
    since: str
    condition: Q = ALL_ROWS

    @property
    def days(self) -> int:
        return int(getattr(settings, self.setting))

    def expired(self, now: datetime) -> QuerySet[Model]:
        rows = self.model._default_manager.filter(self.condition)
        if not self.days:
            return rows.none()
        return rows.filter(**{f"{self.since}__lt": now - timedelta(days=self.days)})


RULES = (
    RetentionRule(
        "notifications that were sent or given up",
        "NOTIFICATIONS_KEEP_DAYS",
        Notification,
        "created_at",
        Q(next_attempt_at=None),
    ),
    RetentionRule(
        "messages to workers that they read",
        "MESSAGES_KEEP_DAYS",
        WorkerMessage,
        "read_at",
        Q(read_at__isnull=False, next_mail_at=None),
    ),
    RetentionRule(
        "browsers in which somebody was signed in, with their IP addresses",
        "BROWSERS_KEEP_DAYS",
        UserSession,
        "last_seen_at",
    ),
    RetentionRule(
        "calls to recruiters of batches that are followed no more, with ids of participants",
        "WORK_KEEP_DAYS",
        RecruiterCall,
        "recruitment__fetched_at",
    ),
    RetentionRule("audits of the ledger", "AUDITS_KEEP_DAYS", LedgerAudit, "created_at"),
)


def expired_rows(now: datetime) -> Iterator[tuple[RetentionRule, int]]:
    for rule in RULES:
        yield rule, rule.expired(now).count()


def delete_expired(now: datetime) -> Iterator[tuple[RetentionRule, int]]:
    """Delete what each rule says, some thousand rows at a time, so that nobody waits for long."""
    for rule in RULES:
        n_deleted = 0
        expired = rule.expired(now).order_by("pk").values_list("pk", flat=True)
        while keys := list(expired.all()[:ROWS_AT_ONCE]):
            rule.model._default_manager.filter(pk__in=keys).delete()
            n_deleted += len(keys)
        yield rule, n_deleted
