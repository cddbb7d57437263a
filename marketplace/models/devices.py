from django.db import models

from marketplace.models.hits import Assignment
from marketplace.models.people import Requester


class DevicePrint(models.Model):
    """From which device and network an assignment was submitted: a hash whose salt differs by
    requester, so that no two requesters' can be compared, and of which nothing can be read."""

    requester = models.ForeignKey(Requester, on_delete=models.CASCADE, related_name="+")
    assignment = models.OneToOneField(
        Assignment, on_delete=models.CASCADE, related_name="device_print"
    )
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        indexes = [models.Index(fields=["requester", "digest"], name="device_of_requester")]

    def __str__(self) -> str:
        return self.digest[:8]
