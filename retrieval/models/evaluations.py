"""Runs evaluated, as rows under a version."""

from __future__ import annotations

from django.db import models

from results.models import Result
from retrieval.models.result_files import ResultFile, ResultRow

LONGEST_NAME = 200
LONGEST_REASON = 300


class EvaluatedMeasure(ResultRow):
    """A measure of an evaluation."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="measures")
    name = models.CharField(max_length=LONGEST_NAME)
    is_primary = models.BooleanField(help_text="Whether its tests are corrected together.")
    is_binary = models.BooleanField(help_text="Whether a topic's value is 0 or 1.")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name


class RunResult(ResultRow):
    """A run's mean of a measure; where there is no interval, `reason` says why."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="results")
    measure = models.ForeignKey(EvaluatedMeasure, on_delete=models.CASCADE, related_name="results")
    run = models.ForeignKey(ResultFile, on_delete=models.CASCADE, related_name="results")
    mean = models.FloatField(null=True)
    mean_complete = models.FloatField(null=True, help_text="With 0 for topics the run lacks.")
    mean_other_ties = models.FloatField(null=True, help_text="If ties were broken the other way.")
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    ci_method = models.CharField(max_length=40, blank=True)
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)
    judged = models.FloatField(null=True, help_text="Share of judged documents it looks at.")
    n_topics = models.PositiveIntegerField()
    group = models.PositiveSmallIntegerField(
        null=True, help_text="From 1, the best; groups apart differ. Of primary measures."
    )

    class Meta:
        ordering = ["pk"]


class TopicValue(models.Model):
    """A run's value of a measure in a topic; none where the run has no list of the topic."""

    result = models.ForeignKey(RunResult, on_delete=models.CASCADE, related_name="topic_values")
    topic = models.TextField()
    value = models.FloatField()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.topic}: {self.value}"


class RunPair(ResultRow):
    """Two runs compared by a measure; `p_adjusted` is empty outside the corrected family."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="pairs")
    measure = models.ForeignKey(EvaluatedMeasure, on_delete=models.CASCADE, related_name="pairs")
    a = models.ForeignKey(ResultFile, on_delete=models.CASCADE, related_name="+")
    b = models.ForeignKey(ResultFile, on_delete=models.CASCADE, related_name="+")
    delta = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    test = models.CharField(max_length=40)
    p = models.FloatField(null=True)
    p_adjusted = models.FloatField(null=True)
    n_topics = models.PositiveIntegerField()
    n_better = models.PositiveIntegerField()
    n_worse = models.PositiveIntegerField()
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)

    class Meta:
        ordering = ["pk"]


class EvaluationWeights(ResultRow):
    """The sample whose probabilities the means over all its targets are weighed by."""

    version = models.OneToOneField(Result, on_delete=models.CASCADE, related_name="weights")
    sample = models.ForeignKey(Result, on_delete=models.SET_NULL, null=True, related_name="+")
    name = models.CharField(max_length=LONGEST_NAME)
    has_strata = models.BooleanField()
    effective_n = models.FloatField(help_text="Topics of equal weight that would say as much.")


class WeightedResult(ResultRow):
    """A run's mean over all targets of the sample, or the difference to another run's."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="weighted_results")
    measure = models.ForeignKey(EvaluatedMeasure, on_delete=models.CASCADE, related_name="+")
    run = models.ForeignKey(ResultFile, on_delete=models.CASCADE, related_name="+")
    other = models.ForeignKey(ResultFile, on_delete=models.CASCADE, null=True, related_name="+")
    value = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    ci_method = models.CharField(max_length=40, blank=True)
    n_topics = models.PositiveIntegerField()
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)

    class Meta:
        ordering = ["pk"]
