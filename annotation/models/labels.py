from __future__ import annotations

from django.conf import settings
from django.db import models

from annotation.exceptions import LabelSetUnknown
from annotation.models.studies import Candidate, Question, Study, StudyRowQuerySet
from work.models import BaseRow


class AdjudicationQuerySet(StudyRowQuerySet["Adjudication"]):
    study_field = "question__study"

    def standing(self) -> AdjudicationQuerySet:
        return self.filter(
            ~models.Exists(
                Adjudication.objects.filter(
                    candidate=models.OuterRef("candidate"),
                    question=models.OuterRef("question"),
                    round=models.OuterRef("round"),
                    pk__gt=models.OuterRef("pk"),
                )
            )
        )


class Adjudication(BaseRow):
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="adjudications")
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="adjudications")
    round = models.PositiveSmallIntegerField(default=1)
    value = models.FloatField()
    note = models.TextField(blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="adjudications"
    )
    decided_at = models.DateTimeField(auto_now_add=True)

    objects = AdjudicationQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["candidate", "question", "round"])]


class LabelSetQuerySet(StudyRowQuerySet["LabelSet"]):
    def numbered(self, version: int) -> LabelSet:
        label_set = self.filter(version=version).first()
        if label_set is None:
            raise LabelSetUnknown(version, list(self.values_list("version", flat=True)))
        return label_set


class LabelSet(models.Model):
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="label_sets")
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="label_sets")
    version = models.PositiveIntegerField(help_text="Counts from one in the study.")
    round = models.PositiveSmallIntegerField(default=1)
    method = models.CharField(max_length=32)
    parameters = models.JSONField(default=dict, blank=True)
    with_flagged = models.BooleanField(default=True)
    with_adjudications = models.BooleanField(default=True)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of what it was made of.")
    signature = models.CharField(max_length=500)
    converged = models.BooleanField(null=True, help_text="Empty where nothing is iterated.")
    iterations = models.PositiveIntegerField(null=True)
    warnings = models.JSONField(default=list, blank=True)
    n_labels = models.PositiveIntegerField(default=0)
    n_adjudicated = models.PositiveIntegerField(default=0, help_text="Labels that were decided.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="label_sets",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = LabelSetQuerySet.as_manager()

    class Meta:
        ordering = ["study", "version"]
        constraints = [
            models.UniqueConstraint(fields=["study", "version"], name="label_version_once_a_study"),
            models.UniqueConstraint(
                fields=["question", "signature"], name="label_signature_once_a_question"
            ),
        ]

    def __str__(self) -> str:
        return f"labels {self.version} of {self.question}, by {self.method}"


class Label(BaseRow):
    label_set = models.ForeignKey(LabelSet, on_delete=models.CASCADE, related_name="labels")
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="labels")
    value = models.FloatField()
    probability = models.FloatField(
        null=True, blank=True, help_text="Of a category, as the method tells it."
    )
    se = models.FloatField(null=True, blank=True, help_text="Standard error of a number.")
    n_judgments = models.PositiveIntegerField(default=0)
    is_tied = models.BooleanField(default=False)
    is_adjudicated = models.BooleanField(default=False)

    class Meta:
        ordering = ["candidate__item__position", "candidate__position", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["label_set", "candidate"], name="one_label_per_set_and_candidate"
            )
        ]


LONGEST_COMMENT = 2000


class DisputeCommentQuerySet(StudyRowQuerySet["DisputeComment"]):
    study_field = "question__study"

    def about(
        self, candidate: Candidate | int, question: Question, round: int
    ) -> DisputeCommentQuerySet:
        return self.filter(candidate=candidate, question=question, round=round)


class DisputeComment(BaseRow):
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="comments")
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="comments")
    round = models.PositiveSmallIntegerField(default=1)
    text = models.TextField(max_length=LONGEST_COMMENT)
    written_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="dispute_comments"
    )
    written_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True, blank=True)

    objects = DisputeCommentQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["candidate", "question", "round"], name="comments_of_a_dispute")
        ]
