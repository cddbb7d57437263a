"""How far annotators agree, as rows under a version, for pages to read and never to compute."""

from __future__ import annotations

from django.db import models

from annotation.models.studies import Candidate, Question, Study


class AgreementVersionQuerySet(models.QuerySet["AgreementVersion"]):
    def of(self, study: Study) -> AgreementVersionQuerySet:
        return self.filter(study=study)

    def newest(self) -> AgreementVersion | None:
        """The last one computed, of whatever state of the judgments."""
        return self.order_by("-version").first()


class AgreementVersion(models.Model):
    """The agreement of a study's annotators as of one state of its judgments."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="agreement_versions")
    version = models.PositiveIntegerField(help_text="Counts from one in the study.")
    judgments_version = models.PositiveBigIntegerField(help_text="The study's, when computed.")
    n_disputed = models.PositiveIntegerField(
        default=0, help_text="Candidates in dispute, by the threshold that fits each question."
    )
    made_at = models.DateTimeField(auto_now_add=True)

    objects = AgreementVersionQuerySet.as_manager()

    class Meta:
        ordering = ["study", "version"]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "version"], name="agreement_version_once_a_study"
            )
        ]

    def __str__(self) -> str:
        return f"agreement {self.version} of {self.study_id}"


class UnitAgreementQuerySet(models.QuerySet["UnitAgreement"]):
    def of(self, version: AgreementVersion) -> UnitAgreementQuerySet:
        return self.filter(version=version)

    def judged(self, question: Question, round: int) -> UnitAgreementQuerySet:
        return self.filter(question=question, round=round)

    def disputed(self, threshold: float) -> UnitAgreementQuerySet:
        """Those whose judgments lie further apart than the threshold."""
        return self.filter(spread__gt=threshold)


class UnitAgreement(models.Model):
    """The judgments of one candidate under one question in one round, of two annotators or more.

    `spread` is a share: of the scale, the distance of the lowest from the highest value; at the
    nominal level, of the judgments, those that are not of the most frequent category.
    """

    version = models.ForeignKey(AgreementVersion, on_delete=models.CASCADE, related_name="units")
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="+")
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="+")
    round = models.PositiveSmallIntegerField()
    n_judgments = models.PositiveIntegerField()
    mean = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    spread = models.FloatField()
    agreement = models.FloatField(null=True)

    objects = UnitAgreementQuerySet.as_manager()

    class Meta:
        # An order that an index gives, so that a page reads no more rows than it shows.
        ordering = ["agreement", "pk"]
        indexes = [
            models.Index(
                fields=["version", "question", "round", "agreement", "id"], name="unit_by_agreement"
            ),
            models.Index(fields=["version", "question", "round", "spread"], name="unit_by_spread"),
        ]

    def __str__(self) -> str:
        return f"{self.question_id}({self.candidate_id}), round {self.round}: {self.agreement}"
