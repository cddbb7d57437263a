"""Quality checks on pages: candidates with a known answer, and what annotators answered to them.

They are no candidates of the study: no judgment, and so no frame, coefficient, label or qrel, can
be of one.
"""

from __future__ import annotations

from django.db import models

from annotation.models.judgments import Submission
from annotation.models.protocols import Protocol
from annotation.models.studies import Candidate, Item, Picture


class PlacedCheck(models.Model):
    """One check on the page of one item, under one version of the protocol; it never changes."""

    protocol = models.ForeignKey(Protocol, on_delete=models.CASCADE, related_name="placed_checks")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="placed_checks")
    number = models.PositiveSmallIntegerField(help_text="Of the protocol's checks, from 0.")
    kind = models.CharField(max_length=20)
    question = models.CharField(max_length=64, help_text="The question's name in the protocol.")
    blind_key = models.CharField(max_length=12)
    text = models.TextField(blank=True)
    picture = models.ForeignKey(
        Picture, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    compared = models.ForeignKey(
        Candidate,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="The candidate that it repeats or was made of.",
    )
    expected = models.FloatField(null=True, blank=True, help_text="The right answer, if known.")
    tolerance = models.FloatField(default=0)
    seed = models.PositiveBigIntegerField(help_text="From which pages and cases were drawn.")

    class Meta:
        ordering = ["item", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["protocol", "item", "number"], name="check_once_a_page_and_version"
            ),
            models.UniqueConstraint(
                fields=["protocol", "item", "blind_key"], name="check_key_once_a_page"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.item_id}"

    @property
    def key(self) -> str:
        """What stands for it in the order that was shown."""
        return f"check {self.number + 1}: {self.kind}"


class CheckAnswer(models.Model):
    """What one annotator answered to a check, and whether that fails it."""

    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, related_name="check_answers"
    )
    placed = models.ForeignKey(PlacedCheck, on_delete=models.CASCADE, related_name="answers")
    value = models.FloatField()
    compared_value = models.FloatField(
        null=True, blank=True, help_text="Of what it repeats or was made of."
    )
    is_failed = models.BooleanField()
    position = models.PositiveSmallIntegerField(help_text="Place as shown, from 0.")
    seconds = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["submission", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "placed"], name="check_answered_once_a_submission"
            )
        ]

    def __str__(self) -> str:
        return f"{self.value:g} to {self.placed_id}"
