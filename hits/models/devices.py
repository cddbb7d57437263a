"""Workers who shared a device, as a marketplace says."""

from django.db import models

from hits.models.assignments import Worker
from hits.models.batches import Batch


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
