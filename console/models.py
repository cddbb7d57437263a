"""What pages wait for: work done in the background, and the results it leaves."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotation.models import Study

# Work that has shown no sign of life for so long is taken for lost with its process.
LOST_AFTER = timedelta(minutes=10)


class WorkQuerySet(models.QuerySet["Work"]):
    def of(self, study: Study) -> WorkQuerySet:
        return self.filter(study=study)

    def of_kind(self, kind: str) -> WorkQuerySet:
        return self.filter(kind=kind)

    def unfinished(self) -> WorkQuerySet:
        """Queued, or running as far as anyone can tell."""
        alive = Q(state=Work.State.RUNNING, seen_at__gte=timezone.now() - LOST_AFTER)
        return self.filter(Q(state=Work.State.QUEUED) | alive)

    def latest_of_each_kind(self) -> WorkQuerySet:
        """The newest of each kind that a page shows; results tell of themselves."""
        newest = self.exclude(kind=Work.Kind.RESULT).order_by().values("kind")
        return self.filter(pk__in=newest.annotate(last=models.Max("pk")).values("last"))


class Work(models.Model):
    """Something a page asked for, which the background worker does and tells about here."""

    class Kind(models.TextChoices):
        COLLECT = "collect", "Collecting answers"
        SCORE = "score", "Scoring"
        RESULT = "result", "Computing"
        LABEL = "label", "Labelling"

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        STOPPED = "stopped"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="works")
    kind = models.CharField(max_length=16, choices=Kind)
    names = models.JSONField(default=list, help_text="What it is about, in a word or two each.")
    arguments = models.JSONField(default=dict, blank=True)
    basis = models.CharField(
        max_length=64, blank=True, help_text="Fingerprint of what a result was asked for."
    )
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    doing = models.CharField(max_length=200, blank=True)
    n_done = models.PositiveIntegerField(default=0)
    n_total = models.PositiveIntegerField(null=True, blank=True)
    stop_asked = models.BooleanField(default=False)
    told = models.TextField(blank=True, help_text="What came of it, or why nothing did.")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    asked_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = WorkQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["study", "kind", "state"], name="work_of_a_study")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {', '.join(self.names)}".strip()

    @property
    def is_lost(self) -> bool:
        """Running by its own account, but silent for so long that its process must be gone."""
        silent_since = self.seen_at or self.asked_at
        return self.state == self.State.RUNNING and silent_since < timezone.now() - LOST_AFTER

    @property
    def is_unfinished(self) -> bool:
        return self.state in (self.State.QUEUED, self.State.RUNNING) and not self.is_lost

    @property
    def seconds_left(self) -> float | None:
        """By the pace so far; unknown at the start, and where nothing can be counted."""
        if not (self.n_total and self.n_done and self.started_at and self.seen_at):
            return None
        taken = (self.seen_at - self.started_at).total_seconds()
        return taken / self.n_done * (self.n_total - self.n_done)

    @property
    def per_second(self) -> float | None:
        """The pace so far."""
        if not (self.n_done and self.started_at and self.seen_at):
            return None
        taken = (self.seen_at - self.started_at).total_seconds()
        return self.n_done / taken if taken else None


class StoredResult(models.Model):
    """A result that took computing, kept with the fingerprint of what it was computed from."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="results")
    name = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64)
    content = models.JSONField()
    made_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "name"], name="one_result_of_a_name_a_study")
        ]

    def __str__(self) -> str:
        return f"{self.name} of study {self.study_id}"
