"""What studies of recorded dialogues say of simulated users, as rows under a version."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from simulation.models.dialogue_studies import ID_LENGTH, DialogueStudy

LONGEST_REASON = 300


class DialogueReport(models.Model):
    """A study of dialogues computed by some rules on its answers as they were; never changes."""

    dialogues = models.ForeignKey(DialogueStudy, on_delete=models.CASCADE, related_name="reports")
    number = models.PositiveIntegerField(help_text="Counts from one in the study.")
    form = models.PositiveSmallIntegerField(help_text="Of the rows, as the code writes them.")
    fingerprint = models.CharField(
        max_length=64, help_text="SHA-256 of the origin, the answers and the rules."
    )
    rules = models.JSONField(help_text="The settings it was made by.")
    judgments_version = models.PositiveBigIntegerField(
        help_text="The study's count of changes when the answers were read."
    )
    n_answers = models.PositiveIntegerField()
    n_annotators = models.PositiveIntegerField()
    n_targets = models.PositiveIntegerField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["dialogues", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["dialogues", "number"], name="report_number_once_a_study"
            ),
            models.UniqueConstraint(
                fields=["dialogues", "fingerprint"], name="report_once_an_input"
            ),
        ]

    def __str__(self) -> str:
        return f"report {self.number} of dialogues {self.dialogues_id}"


class DialogueEstimate(models.Model):
    """A number of a report with its interval; NULL with the reason where it is undefined.

    `part` and `name` say what it is, `user` and `recommender` of whom where it is of one.
    """

    report = models.ForeignKey(DialogueReport, on_delete=models.CASCADE, related_name="estimates")
    part = models.CharField(max_length=20)
    name = models.CharField(max_length=60)
    user = models.CharField(max_length=ID_LENGTH, blank=True)
    recommender = models.CharField(max_length=ID_LENGTH, blank=True)
    value = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    p = models.FloatField(null=True)
    p_adjusted = models.FloatField(null=True, help_text="After Holm.")
    is_equivalent = models.BooleanField(null=True)
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.part} {self.name}"
