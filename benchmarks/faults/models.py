"""What the jobs did, without any constraint that would hide what is done twice."""

from django.db import models


class Effect(models.Model):
    job_id = models.BigIntegerField()
    step = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.job_id}/{self.step}"


class Run(models.Model):
    job_id = models.BigIntegerField()
    pid = models.PositiveIntegerField()
    ended = models.BooleanField(default=False)
    is_double = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.job_id} by {self.pid}"
