"""What speaks against submissions, as rows under a version, and answers to quality checks.

Pages read the rows and never compute them. A measure that there was nothing to take of is NULL.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.functional import cached_property

from annotation.models.judgments import Annotator, Submission
from annotation.models.studies import Candidate, Item, Picture, Protocol
from annotation.protocols.records import QUESTION_CHECK
from results.models import Result
from work.models import BaseRow


def _measure() -> models.FloatField[float | None, float | None]:
    return models.FloatField(null=True)


class SubmissionEvidence(BaseRow):
    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="evidence")
    submission = models.OneToOneField(Submission, on_delete=models.CASCADE, related_name="evidence")
    seconds = _measure()
    same_share = _measure()
    distance = _measure()
    is_fast = models.BooleanField(default=False)
    is_same = models.BooleanField(default=False)
    is_far = models.BooleanField(default=False)
    is_pasted = models.BooleanField(default=False)
    is_contradictory = models.BooleanField(
        default=False, help_text="Whether the answer's times contradict the server's."
    )
    has_failed_check = models.BooleanField(default=False)
    is_flagged = models.BooleanField(
        default=False, help_text="Whether it is any of these, or its annotator has a flag."
    )
    is_held = models.BooleanField(
        default=False,
        help_text="Until a person has looked: by the protocol, or for contradictory times.",
    )

    @cached_property
    def measures(self) -> dict[str, Any]:
        times = {"contradictory": self.seconds, "fast": self.seconds}
        return times | {"same": self.same_share, "far": self.distance}


class AnnotatorFlag(BaseRow):
    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="annotator_flags")
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="quality_flags")
    name = models.CharField(max_length=20, help_text="One of `stats.quality.FLAGS`.")
    n = models.PositiveIntegerField(help_text="Opportunities, such as checks that were answered.")
    n_hits = models.PositiveIntegerField()
    expected = models.FloatField(
        null=True, help_text="Hits, or the value, by what other annotators do or by chance."
    )
    value = models.FloatField(
        null=True, help_text="A measure that is no count, such as a correlation."
    )
    p_value = models.FloatField()
    other = models.ForeignKey(
        Annotator, on_delete=models.CASCADE, null=True, related_name="+", help_text="The near one."
    )

    class Meta:
        ordering = ["annotator", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["version", "annotator", "name"], name="flag_once_an_annotator"
            )
        ]


class PlacedCheck(BaseRow):
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
        help_text="The candidate that it repeats, was made of or asks about.",
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

    @property
    def key(self) -> str:
        return f"check {self.number + 1}: {self.kind}"

    @property
    def is_question(self) -> bool:
        """Whether it is a question, and not a candidate that stands among the others."""
        return self.kind == QUESTION_CHECK


class CheckAnswer(BaseRow):
    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, related_name="check_answers"
    )
    placed = models.ForeignKey(PlacedCheck, on_delete=models.CASCADE, related_name="answers")
    value = models.FloatField()
    compared_value = models.FloatField(
        null=True, blank=True, help_text="Of what it repeats or was made of."
    )
    is_failed = models.BooleanField()
    position = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Place as shown, from 0; empty for a question of the page."
    )
    seconds = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["submission", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "placed"], name="check_answered_once_a_submission"
            )
        ]
