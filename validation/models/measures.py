"""What is computed of a measure: correlations, comparisons, ceilings, sensitivity, sample sizes."""

from __future__ import annotations

from django.db import models

from validation.models.fields import code_field, number_field, reason_field
from validation.models.inputs import ScoreSet
from validation.models.versions import OfMeasure

MEASURE = ["version", "level", "coefficient", "scope", "question"]


class Correlation(OfMeasure):
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    value = number_field()
    reason = reason_field()
    ci_low = number_field()
    ci_high = number_field()
    ci_method = code_field()
    confidence = models.FloatField()
    n_resamples = models.PositiveIntegerField()
    n_resamples_undefined = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(null=True)
    n_units = models.PositiveIntegerField(null=True)
    ci_reason = reason_field()
    new_systems_low = number_field()
    new_systems_high = number_field()
    new_systems_reason = reason_field()
    n_groups = models.PositiveIntegerField()
    n_used = models.PositiveIntegerField()
    n_undefined = models.PositiveIntegerField()
    n_too_few = models.PositiveIntegerField()
    n_constant_human = models.PositiveIntegerField()
    n_constant_metric = models.PositiveIntegerField()
    undefined = code_field()
    n_zeroed = models.PositiveIntegerField()
    n_items = models.PositiveIntegerField(null=True)
    n_systems = models.PositiveIntegerField(null=True)
    n_rows = models.PositiveIntegerField()
    n_missing = models.PositiveIntegerField()
    threshold = number_field()
    n_candidates = models.PositiveIntegerField()
    n_scored = models.PositiveIntegerField()
    n_unscored = models.PositiveIntegerField()
    n_undefined_scores = models.PositiveIntegerField()
    n_unparsed = models.PositiveIntegerField()
    n_items_of_one_score = models.PositiveIntegerField()
    attainable = number_field()
    share_of_ceiling = number_field()
    share_low = number_field()
    share_high = number_field()
    leave_one_out = number_field()
    rank = number_field()
    cluster = models.PositiveSmallIntegerField(null=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=MEASURE, name="correlation_of_a_measure")]


class Comparison(OfMeasure):
    score_set_a = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    score_set_b = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    value_a = number_field()
    value_b = number_field()
    delta = number_field()
    ci_low = number_field()
    ci_high = number_field()
    estimand = code_field(default="these systems")
    test = code_field()
    p = number_field()
    p_holm = number_field()
    p_bh = number_field()
    n_draws = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(null=True)
    reason = reason_field()
    new_systems_low = number_field()
    new_systems_high = number_field()
    new_systems_p = number_field()
    new_systems_p_holm = number_field()
    new_systems_reason = reason_field()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=MEASURE, name="comparison_of_a_measure")]


class Ceiling(OfMeasure):
    split_half = number_field()
    reliability = number_field()
    attainable = number_field()
    attainable_low = number_field()
    attainable_high = number_field()
    n_units = models.PositiveIntegerField(null=True)
    leave_one_out = number_field()
    icc_single = number_field()
    icc_mean = number_field()
    ratings_per_candidate = number_field()
    n_splits = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(null=True)
    reason = reason_field()
    warning = code_field(null=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=MEASURE, name="ceiling_of_a_measure")]


class Sensitivity(OfMeasure):
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    setting = code_field()
    choice = code_field()
    value = number_field()
    rank = number_field()
    base_choice = code_field()
    base_value = number_field()
    base_rank = number_field()
    n_used = models.PositiveIntegerField()
    n_zeroed = models.PositiveIntegerField()
    reason = reason_field()
    delta = number_field()
    moves_rank = models.BooleanField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=MEASURE, name="sensitivity_of_a_measure")]


class Plan(OfMeasure):
    score_set_a = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    score_set_b = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    n_items = models.PositiveIntegerField()
    n_annotators = number_field()
    delta = number_field()
    se = number_field()
    power = number_field()
    is_pilot = models.BooleanField()
    items_needed = models.PositiveIntegerField(null=True)
    power_wanted = models.FloatField()
    alpha = models.FloatField()
    n_studies = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["pk"]
