"""Which version of a validation is of a study as it is; what pages and the API remember."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from annotation.models import Study
from validation.models import ValidationVersion


class ValidationOutcome(models.Model):
    """The version that a study's validation, or its report, came to; or why there is none.

    It is of the study while the fingerprint is.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="outcomes")
    name = models.CharField(max_length=64, help_text="validation or report.")
    fingerprint = models.CharField(max_length=64)
    version = models.ForeignKey(
        ValidationVersion, on_delete=models.CASCADE, null=True, related_name="+"
    )
    reason = models.TextField(blank=True, help_text="Why there is no version.")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "name"], name="one_outcome_of_a_name_a_study")
        ]

    def __str__(self) -> str:
        return f"{self.name} of study {self.study_id}"


class PagePreferences(models.Model):
    """How a person wants the pages to behave."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="page_preferences"
    )
    has_letter_keys = models.BooleanField(
        default=True, help_text="Whether single letters decide on the review page."
    )

    class Meta:
        verbose_name_plural = "page preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user}"


class StoredAnswer(models.Model):
    """What the API answered to a write under an idempotency key, for whoever sends it again."""

    holder = models.CharField(max_length=40, help_text="A token, or a person by session.")
    address = models.CharField(max_length=500, help_text="Method and path.")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="Of the parameters.")
    status = models.PositiveSmallIntegerField(default=0)
    headers = models.JSONField(default=dict)
    body = models.TextField(blank=True, help_text="JSON, as it was answered; encrypted.")
    access = models.JSONField(
        default=dict, help_text="What was asked for, and seen; checked before it is given again."
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["holder", "address", "key"], name="one_answer_under_a_key"
            )
        ]

    def __str__(self) -> str:
        return f"{self.address} under {self.key}"
