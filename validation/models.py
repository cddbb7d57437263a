from django.db import models

from annotation.models import Study
from results.models import Result


class ValidationOutcome(models.Model):
    """Result of a study's validation or report, or why there is none. Out of date when the study's
    fingerprint differs."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="outcomes")
    name = models.CharField(max_length=64, help_text="validation or report.")
    fingerprint = models.CharField(max_length=64)
    version = models.ForeignKey(Result, on_delete=models.CASCADE, null=True, related_name="+")
    reason = models.TextField(blank=True, help_text="Why there is no version.")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "name"], name="one_outcome_of_a_name_a_study")
        ]

    def __str__(self) -> str:
        return f"{self.name} of study {self.study_id}"
