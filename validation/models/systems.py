"""Systems as human ratings and metrics rank them, and where the two disagree."""

from __future__ import annotations

from django.db import models

from validation.models.fields import code_field, name_field, number_field
from validation.models.inputs import ScoreSet
from validation.models.ratings import PairRating, SystemRating
from validation.models.versions import OfPanel, OfVersion


class SystemRow(OfPanel):
    system = name_field()
    mean = number_field()
    ci_low = number_field()
    ci_high = number_field()
    confidence = models.FloatField()
    ci_method = code_field()
    n_resamples = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(null=True)
    n_candidates = models.PositiveIntegerField()
    rank = number_field()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["version", "scope", "question"], name="systems_of_a_place")]


class SystemScore(models.Model):
    """What a metric says of a system."""

    row = models.ForeignKey(SystemRow, on_delete=models.CASCADE, related_name="scores")
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    mean = number_field()
    n_scored = models.PositiveIntegerField()
    rank = number_field()
    rank_difference = number_field()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.score_set_id} of {self.row_id}: {self.mean}"


class RatedSystem(OfVersion, SystemRating):
    """A system of a validation; the highest first."""

    question = name_field()

    class Meta:
        ordering = ["pk"]


class RatedPair(OfVersion, PairRating):
    """Two systems of a validation."""

    question = name_field()

    class Meta:
        ordering = ["pk"]


class EstimatedMean(OfVersion):
    """A system's mean rating over all scored items, by the chances that the rated ones had."""

    question = name_field()
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    system = name_field()
    value = number_field()
    ci_low = number_field()
    ci_high = number_field()
    confidence = models.FloatField()
    look = models.PositiveSmallIntegerField()
    weight = number_field()
    n_labelled = models.PositiveIntegerField()
    n = models.PositiveIntegerField()
    effective_n = number_field()
    people = number_field()
    people_low = number_field()
    people_high = number_field()
    reason = code_field()

    class Meta:
        ordering = ["pk"]


class EstimatedDifference(OfVersion):
    """Two systems' mean ratings over all items scored of both."""

    question = name_field()
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    a = name_field()
    b = name_field()
    value = number_field()
    ci_low = number_field()
    ci_high = number_field()
    p = number_field()
    p_adjusted = number_field()
    confidence = models.FloatField()
    look = models.PositiveSmallIntegerField()
    n_labelled = models.PositiveIntegerField()
    n = models.PositiveIntegerField()
    reason = code_field()

    class Meta:
        ordering = ["pk"]


class Disagreement(OfPanel):
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    better = name_field()
    worse = name_field()
    human_delta = models.FloatField()
    metric_delta = models.FloatField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["version", "scope"], name="disagreements_of_a_scope")]


class WorstCandidate(OfVersion):
    question = name_field()
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    rank = models.PositiveIntegerField()
    item = name_field()
    candidate = name_field()
    system = name_field()
    condition = name_field()
    human = models.FloatField()
    score = models.FloatField()
    z_human = models.FloatField()
    z_score = models.FloatField()
    residual = models.FloatField()

    class Meta:
        ordering = ["pk"]
