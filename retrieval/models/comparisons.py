"""Runs ranked under several qrels, as rows under a version."""

from __future__ import annotations

from django.db import models

from retrieval.models.evaluations import LONGEST_NAME, LONGEST_REASON
from retrieval.models.versions import CollectionVersion, OfVersion


def name_field() -> models.CharField[str, str]:
    return models.CharField(max_length=LONGEST_NAME)


def reason_field() -> models.CharField[str, str]:
    return models.CharField(max_length=LONGEST_REASON, blank=True)


class ComparedQrels(OfVersion):
    """Grades of a file, or derived of several files'."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="compared_qrels"
    )
    name = name_field()
    kind = models.CharField(max_length=10, help_text="given, machine, assessor or derived.")
    rule = reason_field()
    judgments = models.CharField(
        max_length=LONGEST_NAME,
        blank=True,
        help_text="Which they were made of: qrels of the same, by two rules, are one assessor's.",
    )
    assessor = models.CharField(max_length=LONGEST_NAME, blank=True, help_text="Who judged.")
    n_topics = models.PositiveIntegerField()
    n_topics_left_out = models.PositiveIntegerField()
    n_judged = models.PositiveBigIntegerField()
    n_relevant = models.PositiveBigIntegerField()
    n_unjudged = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["pk"]


class RankedRun(OfVersion):
    """A run's place under qrels by a measure; runs of the same mean share the better one."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="ranked")
    qrels = name_field()
    measure = name_field()
    run = name_field()
    rank = models.PositiveIntegerField()
    mean = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    n_topics = models.PositiveIntegerField()

    class Meta:
        ordering = ["pk"]


class RankingPair(OfVersion):
    """The rankings by a measure under two qrels, and what becomes of pairs of runs."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="ranking_pairs"
    )
    first = name_field()
    second = name_field()
    measure = name_field()
    n_pairs = models.PositiveIntegerField()
    n_swapped = models.PositiveIntegerField()
    n_swapped_significantly = models.PositiveIntegerField()
    n_kept = models.PositiveIntegerField()
    n_lost = models.PositiveIntegerField()
    n_gained = models.PositiveIntegerField()
    n_reversed = models.PositiveIntegerField()
    n_neither = models.PositiveIntegerField()
    rbo_min = models.FloatField(null=True)
    rbo_residual = models.FloatField(null=True)

    class Meta:
        ordering = ["pk"]


class RankingCoefficient(models.Model):
    """How alike two rankings are, by one coefficient, with its interval for new topics."""

    pair = models.ForeignKey(RankingPair, on_delete=models.CASCADE, related_name="coefficients")
    use = models.CharField(max_length=8, help_text="tau_b, tau_ap, rbo, or top: of the best alone.")
    coefficient = models.CharField(max_length=20)
    value = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    ci_method = models.CharField(max_length=60, blank=True)
    n_systems = models.PositiveIntegerField()
    n_topics = models.PositiveIntegerField()
    reason = reason_field()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.coefficient} {self.value}"


class ChangedPair(models.Model):
    """Two runs that two qrels order differently, or of which one alone finds the difference
    significant."""

    pair = models.ForeignKey(RankingPair, on_delete=models.CASCADE, related_name="changed")
    a = name_field()
    b = name_field()
    delta_first = models.FloatField(null=True)
    delta_second = models.FloatField(null=True)
    p_first = models.FloatField(null=True)
    p_second = models.FloatField(null=True)
    change = models.CharField(max_length=10)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.a} and {self.b}: {self.change}"


class LabelPair(OfVersion):
    """How far the labels of two qrels agree, on the documents that both judged."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="label_pairs"
    )
    first = name_field()
    second = name_field()
    n_topics = models.PositiveIntegerField()
    n_documents = models.PositiveBigIntegerField()
    n_both_relevant = models.PositiveBigIntegerField()
    n_either_relevant = models.PositiveBigIntegerField()
    overlap = models.FloatField(null=True)
    overlap_low = models.FloatField(null=True)
    overlap_high = models.FloatField(null=True)
    overlap_reason = reason_field()
    kappa = models.FloatField(null=True)
    kappa_low = models.FloatField(null=True)
    kappa_high = models.FloatField(null=True)
    kappa_reason = reason_field()

    class Meta:
        ordering = ["pk"]


class AnyTwoAssessors(OfVersion):
    """How far any two assessors of a document agree, whoever they are."""

    version = models.OneToOneField(
        CollectionVersion, on_delete=models.CASCADE, related_name="any_two_assessors"
    )
    n_assessors = models.PositiveIntegerField()
    n_pairs_of_labels = models.PositiveBigIntegerField(
        help_text="Of any two assessors on a document that both judged."
    )
    n_documents = models.PositiveBigIntegerField()
    overlap = models.FloatField(null=True)
    overlap_low = models.FloatField(null=True)
    overlap_high = models.FloatField(null=True)
    overlap_method = models.CharField(max_length=60, blank=True)
    overlap_reason = reason_field()
    alpha = models.FloatField(null=True)
    alpha_low = models.FloatField(null=True)
    alpha_high = models.FloatField(null=True)
    alpha_method = models.CharField(max_length=60, blank=True)
    alpha_reason = reason_field()
    warnings = models.TextField(blank=True, help_text="One a line.")

    class Meta:
        ordering = ["pk"]


class AssessorDesign(OfVersion):
    """Rankings by one assessor a topic at random, against the merged ranking."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="designs")
    measure = name_field()
    merged = name_field()
    n_draws = models.PositiveIntegerField()
    n_undefined = models.PositiveIntegerField()
    n_topics_with_choice = models.PositiveIntegerField()
    mean = models.FloatField(null=True)
    sd = models.FloatField(null=True)
    min = models.FloatField(null=True)
    q05 = models.FloatField(null=True)
    median = models.FloatField(null=True)
    q95 = models.FloatField(null=True)
    max = models.FloatField(null=True)
    often_swapped = models.TextField(
        blank=True, help_text="The pairs of runs that most draws swap, with their shares."
    )

    class Meta:
        ordering = ["pk"]


class CrossedRunMean(OfVersion):
    """A run's mean over topics and assessors, both of which are samples."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="crossed")
    run = name_field()
    measure = name_field()
    mean = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    ci_method = models.CharField(max_length=60, blank=True)
    bootstrap_low = models.FloatField(null=True)
    bootstrap_high = models.FloatField(null=True)
    n_topics = models.PositiveIntegerField()
    n_assessors = models.PositiveIntegerField()
    n_assessments = models.PositiveBigIntegerField()
    reason = reason_field()

    class Meta:
        ordering = ["pk"]
