"""Workers whom a batch admits no more, by a qualification that they are granted silently, and those
who shared a device."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from annotation.models import Study
from hits.models.batches import Batch, Worker
from hits.models.reviews import DeliveryState


class ExclusionQuerySet(models.QuerySet["Exclusion"]):
    def of(self, batch: Batch) -> ExclusionQuerySet:
        return self.filter(batch=batch)

    def unsent(self) -> ExclusionQuerySet:
        return self.filter(state=DeliveryState.INTENDED)


class Exclusion(models.Model):
    """A worker whom no more HITs of a batch admit: they hold its qualification of exclusion."""

    class Reason(models.TextChoices):
        LISTED = "listed", _("on a list")
        EARLIER_ROUND = "round", _("worked in an earlier round")
        EARLIER_WAVE = "wave", _("worked in an earlier wave")
        LIMIT = "limit", _("did as many HITs as one worker may")
        STUDY = "study", _("worked in a study that is excluded")
        HELD = "held", _("waits until someone has looked at the first HITs")

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="exclusions")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="exclusions")
    reason = models.CharField(max_length=8, choices=Reason)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.INTENDED)
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


class WorkerClearance(models.Model):
    """A person has looked at a worker's first HITs in a study, and lets them go on."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="worker_clearances")
    worker = models.ForeignKey(Worker, on_delete=models.PROTECT, related_name="clearances")
    cleared_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    cleared_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["study", "worker"], name="worker_cleared_once_a_study")
        ]

    def __str__(self) -> str:
        return f"{self.worker} in {self.study_id}"


class SharedDevice(models.Model):
    """A worker of a batch of whose submissions some came from a device of other workers'."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="shared_devices")
    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, related_name="shared_devices")
    n_shared = models.PositiveIntegerField()
    n = models.PositiveIntegerField(help_text="Submissions whose device is known.")
    n_others = models.PositiveIntegerField()
    others = models.JSONField(default=list, help_text="Pseudonyms of some of the other workers.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["batch", "worker"], name="shared_device_once_a_batch_and_worker"
            )
        ]

    def __str__(self) -> str:
        return f"{self.worker} in {self.batch_id}"
