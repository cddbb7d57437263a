"""Results that pages show."""

from __future__ import annotations

from django.db import models

from annotation.models import Study


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
