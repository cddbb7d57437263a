"""How far annotators agree, as rows under a version, for pages to read and never to compute.

An undefined number is NULL, with its reason.
"""

from __future__ import annotations

from typing import Self, TypeVar

from django.db import models

from annotation.models.studies import Candidate, Question, Study

Row = TypeVar("Row", bound=models.Model)
ALPHA = "krippendorff_alpha"
LONGEST_NAME = 64
# Those of an annotator; see `annotation.models.judgments`.
LONGEST_PSEUDONYM = 100


def _number() -> models.FloatField[float | None, float | None]:
    return models.FloatField(null=True)


def _optional_code() -> models.CharField[str | None, str | None]:
    return models.CharField(max_length=LONGEST_NAME, null=True)


class AgreementVersionQuerySet(models.QuerySet["AgreementVersion"]):
    def of(self, study: Study) -> AgreementVersionQuerySet:
        return self.filter(study=study)

    def newest(self) -> AgreementVersion | None:
        return self.order_by("-version").first()

    def fingerprinted(self, fingerprint: str) -> AgreementVersion | None:
        return self.filter(fingerprint=fingerprint).newest()


class AgreementVersion(models.Model):
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="agreement_versions")
    version = models.PositiveIntegerField(help_text="Counts from one in the study.")
    judgments_version = models.PositiveBigIntegerField(help_text="The study's, when computed.")
    fingerprint = models.CharField(
        max_length=64,
        default="",
        help_text="SHA-256 of its input and its form.",
    )
    first_round = models.PositiveSmallIntegerField(
        default=1, help_text="The first that was judged; pages begin with it."
    )
    n_disputed = models.PositiveIntegerField(
        default=0, help_text="Candidates in dispute, by the threshold that fits each question."
    )
    created_at = models.DateTimeField(auto_now_add=True)

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


class AgreementRowQuerySet(models.QuerySet[Row]):
    def of(self, version: AgreementVersion) -> Self:
        return self.filter(version=version)

    def judged(self, question: Question, round: int) -> Self:
        return self.filter(question=question, round=round)


class AgreementRow(models.Model):
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="+")
    round = models.PositiveSmallIntegerField()

    class Meta:
        abstract = True
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} of {self.question_id}, round {self.round}"


class Estimate(models.Model):
    value = _number()
    se = _number()
    ci_low = _number()
    ci_high = _number()
    observed = _number()
    expected = _number()
    reason = _optional_code()

    class Meta:
        abstract = True


class UnitAgreementQuerySet(AgreementRowQuerySet["UnitAgreement"]):
    def disputed(self, threshold: float) -> UnitAgreementQuerySet:
        return self.filter(spread__gt=threshold)


class UnitAgreement(AgreementRow):
    """The judgments of one candidate under one question in one round, of two annotators or more.

    `spread` is a share: of the scale, the distance of the lowest from the highest value; at the
    nominal level, of the judgments, those that are not of the most frequent category.
    """

    version = models.ForeignKey(AgreementVersion, on_delete=models.CASCADE, related_name="units")
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="+")
    n_judgments = models.PositiveIntegerField()
    mean = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    spread = models.FloatField()
    agreement = models.FloatField(null=True)

    objects = UnitAgreementQuerySet.as_manager()

    class Meta(AgreementRow.Meta):
        # An order that an index gives, so that a page reads no more rows than it shows.
        ordering = ["agreement", "pk"]
        indexes = [
            models.Index(
                fields=["version", "question", "round", "agreement", "id"], name="unit_by_agreement"
            ),
            models.Index(fields=["version", "question", "round", "spread"], name="unit_by_spread"),
        ]


class JudgedQuestion(AgreementRow):
    version = models.ForeignKey(
        AgreementVersion, on_delete=models.CASCADE, related_name="questions"
    )
    n_flagged = models.PositiveIntegerField(help_text="Submissions of the round.")
    n_cannot_judge = models.PositiveIntegerField(
        default=0, help_text="Answers that say that nothing can be judged; in no coefficient."
    )
    n_units = models.PositiveIntegerField(help_text="Candidates that several annotators judged.")
    n_disputed = models.PositiveIntegerField()
    n_annotators = models.PositiveIntegerField()
    n_in_matrix = models.PositiveIntegerField(help_text="Annotators who judged most.")
    pair_statistic = models.CharField(max_length=LONGEST_NAME, blank=True)
    annotator_statistic = models.CharField(max_length=LONGEST_NAME)

    class Meta(AgreementRow.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["version", "round", "question"], name="question_once_a_round_and_version"
            )
        ]


class CoefficientFields(Estimate):
    level = _optional_code()
    name = models.CharField(max_length=LONGEST_NAME)
    ci_method = models.CharField(max_length=LONGEST_NAME)
    confidence = models.FloatField()
    n_items = models.PositiveIntegerField()
    n_items_dropped = models.PositiveIntegerField()
    n_annotators = models.PositiveIntegerField()
    n_labels = models.PositiveIntegerField()
    n_pairable = models.PositiveIntegerField()
    prevalence = _number()
    n_resamples = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(null=True)
    warnings = models.JSONField(default=list, help_text="What a reader should know, in words.")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


class AgreementCoefficientQuerySet(AgreementRowQuerySet["AgreementCoefficient"]):
    def alphas(self, round: int | models.F) -> AgreementCoefficientQuerySet:
        return self.filter(round=round, name=ALPHA).select_related("question")


class AgreementCoefficient(AgreementRow, CoefficientFields):
    version = models.ForeignKey(
        AgreementVersion, on_delete=models.CASCADE, related_name="coefficients"
    )
    with_flagged = models.BooleanField(help_text="Whether flagged submissions count in it.")
    by = models.CharField(max_length=64, blank=True, help_text="The condition; empty for all.")

    objects = AgreementCoefficientQuerySet.as_manager()

    class Meta(AgreementRow.Meta):
        indexes = [
            models.Index(fields=["version", "question", "round"], name="coefficient_of_question"),
            models.Index(fields=["version", "round", "name"], name="coefficient_by_name"),
        ]


class RoundCoefficient(CoefficientFields):
    version = models.ForeignKey(
        AgreementVersion, on_delete=models.CASCADE, related_name="round_coefficients"
    )
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="+")
    earlier = models.PositiveSmallIntegerField()
    later = models.PositiveSmallIntegerField()
    by = models.CharField(max_length=32, help_text="Who judged again.")
    n_pairs = models.PositiveIntegerField(help_text="Of judgments of one candidate.")

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["version", "question"], name="rounds_of_question")]


class ProtocolCoefficient(AgreementRow, CoefficientFields):
    version = models.ForeignKey(
        AgreementVersion, on_delete=models.CASCADE, related_name="protocol_coefficients"
    )
    protocol = models.PositiveSmallIntegerField(help_text="Number of the protocol's version.")

    class Meta(AgreementRow.Meta):
        indexes = [models.Index(fields=["version", "question"], name="protocols_of_question")]


class PairAgreement(AgreementRow, Estimate):
    """How well two annotators agree on one question in one round.

    At the nominal and ordinal levels every pair that shares candidates has Cohen's kappa; at the
    others those have Pearson's r who judged most.
    """

    version = models.ForeignKey(AgreementVersion, on_delete=models.CASCADE, related_name="pairs")
    annotator_a = models.CharField(max_length=LONGEST_PSEUDONYM)
    annotator_b = models.CharField(max_length=LONGEST_PSEUDONYM)
    is_kappa = models.BooleanField()
    in_matrix = models.BooleanField(help_text="Whether both are among those who judged most.")
    n_shared = models.PositiveIntegerField()

    class Meta(AgreementRow.Meta):
        indexes = [
            models.Index(
                fields=["version", "question", "round", "in_matrix"], name="pair_of_question"
            ),
            models.Index(fields=["version", "round", "is_kappa"], name="pair_of_round"),
        ]


class AnnotatorAgreement(AgreementRow):
    version = models.ForeignKey(
        AgreementVersion, on_delete=models.CASCADE, related_name="annotators"
    )
    annotator = models.CharField(max_length=LONGEST_PSEUDONYM)
    agreement = _number()
    reason = _optional_code()
    n_judgments = models.PositiveIntegerField()
    n_flagged = models.PositiveIntegerField(help_text="Submissions.")
    seconds = _number()
    alpha_without = _number()
    alpha_change = _number()

    class Meta(AgreementRow.Meta):
        indexes = [
            models.Index(fields=["version", "question", "round"], name="annotator_of_question")
        ]


class PositionEffect(AgreementRow):
    """What being shown first adds to an answer under a question, compared with being shown last:
    0 if positions do not matter. Of orders that were drawn at random."""

    version = models.ForeignKey(
        AgreementVersion, on_delete=models.CASCADE, related_name="position_effects"
    )
    annotator = models.CharField(
        max_length=LONGEST_PSEUDONYM, blank=True, help_text="Empty for all of them together."
    )
    n_pages = models.PositiveIntegerField()
    n_annotators = models.PositiveIntegerField()
    first = models.FloatField(help_text="Mean answer about the candidate that was shown first.")
    last = models.FloatField(help_text="Mean answer about the candidate that was shown last.")
    value = models.FloatField(help_text="The difference.")
    ci_low = _number()
    ci_high = _number()

    class Meta(AgreementRow.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["version", "round", "question", "annotator"],
                name="position_effect_once_an_annotator",
            )
        ]
