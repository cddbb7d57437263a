from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from annotation.models.studies import (
    Candidate,
    Item,
    Protocol,
    Question,
    Study,
    StudyRowQuerySet,
)
from work.models import BaseRow


class Annotator(models.Model):
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="annotators")
    pseudonym = models.CharField(max_length=100)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "pseudonym"], name="pseudonym_once_a_study")
        ]

    def __str__(self) -> str:
        return self.pseudonym


# Nobody opens a page, reads and answers it in less; a program does, as that of a replayed crowd.
LEAST_SECONDS_OF_A_PERSON = 2
# Marketplaces tell whole seconds: one that was accepted and submitted is off by up to so many.
ROUNDING_SECONDS = 2


PLAUSIBLY_TIMED = models.Q(is_simulated=False, seconds__gte=LEAST_SECONDS_OF_A_PERSON) & (
    models.Q(active_seconds=None)
    | models.Q(active_seconds__lte=models.F("seconds") + ROUNDING_SECONDS)
)


class SubmissionQuerySet(StudyRowQuerySet["Submission"]):
    study_field = "item__study"

    def accepted(self) -> SubmissionQuerySet:
        return self.exclude(status=Submission.Status.REJECTED)

    def flagged(self) -> SubmissionQuerySet:
        return self.exclude(flag_reason="")

    def timed(self) -> SubmissionQuerySet:
        return self.filter(seconds__gt=0)

    def plausibly_timed(self) -> SubmissionQuerySet:
        """Whose time may be a person's: not too short for one, nor shorter than the page says that
        it was worked on, which simulated annotators invent."""
        return self.filter(PLAUSIBLY_TIMED)


class Submission(BaseRow):
    class Status(models.TextChoices):
        SUBMITTED = "submitted", _("Submitted")
        APPROVED = "approved", _("Approved")
        REJECTED = "rejected", _("Rejected")

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="submissions")
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="submissions")
    round = models.PositiveSmallIntegerField(default=1)
    protocol = models.ForeignKey(
        Protocol,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="submissions",
        help_text="The version it was made under; empty where it was made elsewhere.",
    )
    consented_at = models.DateTimeField(
        null=True, blank=True, help_text="When its annotator agreed to the version's consent."
    )
    status = models.CharField(max_length=16, choices=Status, default=Status.SUBMITTED)
    raw = models.TextField(help_text="The answer, verbatim.")
    shown_order = models.JSONField(default=list, help_text="Candidate keys as they were shown.")
    justification = models.TextField(blank=True)
    comment = models.TextField(blank=True, help_text="What the annotator wrote to the requester.")
    accepted_at = models.DateTimeField(null=True, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    active_seconds = models.FloatField(
        null=True, blank=True, help_text="How long the page was in sight; empty if not measured."
    )
    pasted = models.BooleanField(
        null=True, blank=True, help_text="Whether the reason was pasted; empty if not noted."
    )
    is_simulated = models.BooleanField(
        default=False, help_text="Whether the answer says that no person gave it."
    )
    has_unproved_mark = models.BooleanField(
        default=False,
        help_text="Whether the answer says so, and does not come from this site's simulated crowd.",
    )
    events = models.JSONField(default=list, blank=True, help_text="What the work page recorded.")
    flag_reason = models.CharField(
        max_length=200,
        blank=True,
        help_text="Why its judgments are in doubt; empty if they are not.",
    )

    objects = SubmissionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["annotator", "item", "round"],
                name="one_submission_per_annotator_item_and_round",
            ),
            models.CheckConstraint(condition=models.Q(round__gte=1), name="rounds_count_from_one"),
        ]


class JudgmentQuerySet(StudyRowQuerySet["Judgment"]):
    study_field = "question__study"

    def accepted(self) -> JudgmentQuerySet:
        return self.exclude(submission__status=Submission.Status.REJECTED)

    def unflagged(self) -> JudgmentQuerySet:
        return self.filter(submission__flag_reason="")


class Judgment(BaseRow):
    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="judgments")
    candidate = models.ForeignKey(
        Candidate,
        on_delete=models.CASCADE,
        related_name="judgments",
        null=True,
        blank=True,
        help_text="Empty where the question is about the item as a whole.",
    )
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="judgments")
    value = models.FloatField()
    position = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Place among the candidates as shown, from 0."
    )
    seconds = models.FloatField(null=True, blank=True)

    objects = JudgmentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "candidate", "question"],
                name="one_judgment_per_submission_candidate_and_question",
            ),
            models.UniqueConstraint(
                fields=["submission", "question"],
                condition=models.Q(candidate=None),
                name="one_judgment_of_an_item_per_submission_and_question",
            ),
        ]


class WrittenAnswer(BaseRow):
    """What an annotator wrote: the answer to a question for words, or why a candidate was chosen.

    Words are no values and so no judgments; `question` is the question's name in the protocol.
    """

    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, related_name="written_answers"
    )
    question = models.CharField(max_length=64)
    candidate = models.ForeignKey(
        Candidate, on_delete=models.CASCADE, related_name="written_answers", null=True, blank=True
    )
    text = models.TextField()
    seconds = models.FloatField(null=True, blank=True)
    pasted = models.BooleanField(null=True, blank=True)

    class Meta:
        ordering = ["submission", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "question", "candidate"],
                name="written_once_about_a_candidate",
            ),
            models.UniqueConstraint(
                fields=["submission", "question"],
                condition=models.Q(candidate=None),
                name="written_once_about_an_item",
            ),
        ]


class MissingAnswer(BaseRow):
    """An answer that is no value, such as "I can't tell", with its reason. It is no judgment;
    `question` is the question's name in the protocol."""

    class Reason(models.TextChoices):
        CANNOT_TELL = "cannot_tell", _("I can’t tell")

    submission = models.ForeignKey(
        Submission, on_delete=models.CASCADE, related_name="missing_answers"
    )
    question = models.CharField(max_length=64)
    candidate = models.ForeignKey(
        Candidate, on_delete=models.CASCADE, related_name="missing_answers", null=True, blank=True
    )
    reason = models.CharField(max_length=16, choices=Reason)
    seconds = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["submission", "pk"]


class ItemSample(BaseRow):
    """One draw of items to be judged; estimates weigh what came of it by its items' chances.

    It is told apart from the batch of HITs that carries it: what validates judgments knows no
    marketplace.
    """

    class Method(models.TextChoices):
        ALL = "all"
        RANDOM = "random"
        UNSURE = "unsure"
        LISTED = "listed"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="item_samples")
    number = models.PositiveIntegerField(help_text="Counts the study's samples from one.")
    round = models.PositiveSmallIntegerField(default=1)
    method = models.CharField(max_length=8, choices=Method)
    seed = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="That items were drawn by; empty where none were."
    )
    judge = models.CharField(
        max_length=500, blank=True, help_text="Signature of the scores whose errors were expected."
    )
    question = models.ForeignKey(
        Question, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    n_available = models.PositiveIntegerField(help_text="Items it was drawn from.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = StudyRowQuerySet.as_manager()

    class Meta:
        ordering = ["study", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "number"], name="item_sample_number_once_a_study"
            )
        ]


class SampledItem(BaseRow):
    sample = models.ForeignKey(ItemSample, on_delete=models.CASCADE, related_name="items")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="samples")
    probability = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="With which it was drawn from the items that were left.",
    )

    class Meta:
        ordering = ["sample", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["sample", "item"], name="item_once_a_sample"),
            models.CheckConstraint(
                condition=models.Q(probability=None)
                | models.Q(probability__gt=0, probability__lte=1),
                name="probability_above_0_and_at_most_1",
            ),
        ]
