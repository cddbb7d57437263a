"""Workers whom a batch admits no more, by a qualification that they are granted silently."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from hits.models.assignments import Worker
from hits.models.batches import Batch
from hits.models.payments import Sending


class ExclusionQuerySet(models.QuerySet["Exclusion"]):
    def of(self, batch: Batch) -> ExclusionQuerySet:
        return self.filter(batch=batch)

    def unsent(self) -> ExclusionQuerySet:
        return self.filter(state=Sending.INTENDED)


class Exclusion(models.Model):
    """A worker whom no more HITs of a batch admit: they hold its qualification of exclusion."""

    class Reason(models.TextChoices):
        LISTED = "listed", _("on a list")
        EARLIER_ROUND = "round", _("worked in an earlier round")
        EARLIER_WAVE = "wave", _("worked in an earlier wave")
        LIMIT = "limit", _("did as many HITs as one worker may")

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="exclusions")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="exclusions")
    reason = models.CharField(max_length=8, choices=Reason)
    state = models.CharField(max_length=10, choices=Sending, default=Sending.INTENDED)
    problem = models.TextField(blank=True, help_text="Why the marketplace refused it.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ExclusionQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["batch", "worker"], name="one_exclusion_a_worker_and_batch"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.worker} from {self.batch}"
