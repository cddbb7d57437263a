from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

# Clocks of machines that share the work agree this far. What waits for a time still later than it
# ever should was written before the clock was set back, and would wait until it comes round again.
CLOCK_SLACK = timedelta(minutes=1)
# No attempt is put off for longer.
MOST_DELAY_SECONDS = 600


def lapsed(now: datetime) -> models.Q:
    longest = timedelta(seconds=settings.WORK_LEASE_SECONDS) + CLOCK_SLACK
    return models.Q(leased_until__lt=now) | models.Q(leased_until__gt=now + longest)


class BaseRow(models.Model):
    """Base of models: a row is shown by its name or, if it has none, by its class and key."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(getattr(self, "name", "") or f"{type(self).__name__} {self.pk}")


class Leased(models.Model):
    lease_token = models.CharField(
        max_length=32, blank=True, help_text="Of who works at it; empty where nobody does."
    )
    leased_until = models.DateTimeField(
        null=True, blank=True, help_text="Renewed by a heartbeat beside the work."
    )

    class Meta:
        abstract = True


class JobQuerySet(models.QuerySet["Job"]):
    def about(self, subject: str) -> JobQuerySet:
        return self.filter(subject=subject)

    def of_kind(self, *kinds: str) -> JobQuerySet:
        return self.filter(kind__in=kinds)

    def queued(self) -> JobQuerySet:
        return self.filter(state=Job.State.QUEUED)

    def running(self) -> JobQuerySet:
        return self.filter(state=Job.State.RUNNING)

    def unfinished(self) -> JobQuerySet:
        return self.filter(state__in=Job.UNFINISHED)

    def finished(self) -> JobQuerySet:
        return self.exclude(state__in=Job.UNFINISHED)

    def joinable(self) -> JobQuerySet:
        """Unfinished, and nobody asked for its end: who wants the same waits for this one."""
        return self.unfinished().filter(stop_requested=False)

    def due(self, now: datetime) -> JobQuerySet:
        waits = models.Q(
            run_after__gt=now,
            run_after__lte=now + timedelta(seconds=MOST_DELAY_SECONDS) + CLOCK_SLACK,
        )
        return self.queued().filter(models.Q(run_after=None) | ~waits)

    def lapsed(self, now: datetime) -> JobQuerySet:
        return self.running().filter(lapsed(now))

    def latest_of_each_kind(self) -> JobQuerySet:
        return self.filter(
            pk__in=self.order_by().values("kind").annotate(last=models.Max("pk")).values("last")
        )


class Job(Leased):
    """Work to be done once in the background. The row is the truth; queues only pass its key."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        STOPPED = "stopped"

    UNFINISHED = (State.QUEUED, State.RUNNING)

    kind = models.CharField(max_length=40, help_text="A name in work.registry.")
    queue = models.CharField(max_length=20)
    subject = models.CharField(max_length=100, blank=True, help_text="Such as study:12.")
    title = models.CharField(max_length=250, help_text="What people call it.")
    arguments = models.JSONField(default=dict, blank=True)
    basis = models.CharField(
        max_length=64, blank=True, help_text="Fingerprint of what a result was requested for."
    )
    dedupe_key = models.CharField(
        max_length=64, help_text="The same for jobs that would do the same."
    )
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    stop_requested = models.BooleanField(default=False)
    attempts = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(default=1)
    run_after = models.DateTimeField(
        null=True, blank=True, help_text="When a failed attempt is repeated."
    )
    task_id = models.CharField(
        max_length=64, blank=True, help_text="Of the queue's message about it."
    )
    enqueued_at = models.DateTimeField(null=True, blank=True)
    phase = models.CharField(max_length=200, blank=True)
    n_done = models.PositiveIntegerField(default=0)
    n_total = models.PositiveIntegerField(null=True, blank=True)
    message = models.TextField(blank=True, help_text="What came of it, or why nothing did.")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="jobs",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    progress_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["subject", "kind", "state"], name="job_of_a_subject"),
            models.Index(
                fields=["queue", "enqueued_at"],
                condition=models.Q(state="queued"),
                name="job_queued",
            ),
            models.Index(
                fields=["leased_until"], condition=models.Q(state="running"), name="job_leased"
            ),
            models.Index(fields=["finished_at"], name="job_finished"),
            models.Index(fields=["queue", "started_at"], name="job_begun"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["dedupe_key"],
                condition=models.Q(state__in=["queued", "running"], stop_requested=False),
                name="same_job_once_unfinished",
            )
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_unfinished(self) -> bool:
        return self.state in self.UNFINISHED

    @property
    def is_retrying(self) -> bool:
        return self.state == self.State.QUEUED and self.attempts > 0

    @property
    def seconds_left(self) -> float | None:
        if not (self.n_total and self.per_second):
            return None
        return (self.n_total - self.n_done) / self.per_second

    @property
    def per_second(self) -> float | None:
        if not (self.n_done and self.started_at and self.progress_at):
            return None
        seconds = (self.progress_at - self.started_at).total_seconds()
        return self.n_done / seconds if seconds > 0 else None


class PeriodicRun(BaseRow):
    name = models.CharField(max_length=40, unique=True)
    next_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(null=True, blank=True)
