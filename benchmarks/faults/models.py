"""What the jobs did, without any constraint that would hide what is done twice."""

from django.db import models


class Effect(models.Model):
    """Something that is to happen once, in the transaction of a job that holds its lease."""

    job_id = models.BigIntegerField()
    step = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.job_id}/{self.step}"


class Run(models.Model):
    """A worker that began a job, and whether another was at it still."""

    job_id = models.BigIntegerField()
    pid = models.PositiveIntegerField()
    ended = models.BooleanField(default=False)
    is_double = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.job_id} by {self.pid}"
