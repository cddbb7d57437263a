"""Clock shifts and injected faults: tables that are only read where MARKETPLACE_TESTING is on."""

from django.db import models


class ClockShift(models.Model):
    """How far the marketplace's clock is ahead of the machine's, in all its processes."""

    ahead = models.DurationField()

    def __str__(self) -> str:
        return str(self.ahead)


class Fault(models.Model):
    """A fault to happen to the next calls of an operation."""

    class Kind(models.TextChoices):
        THROTTLE = "throttle", "Answer ThrottlingException"
        DROP = "drop", "Commit, then drop the connection"
        DELAY = "delay", "Answer late"

    operation = models.CharField(max_length=64)
    kind = models.CharField(max_length=8, choices=Kind)
    remaining = models.PositiveIntegerField()
    delay_seconds = models.FloatField(default=0)

    def __str__(self) -> str:
        return f"{self.kind} {self.operation} {self.remaining} times"
