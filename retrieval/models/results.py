from django.db import models

from annotation.models import Study
from results.models import Result
from retrieval.models.collections import NAME_LENGTH, CollectionFile
from work.models import BaseRow


class ResultType(models.TextChoices):
    EVALUATION = "evaluation"
    COMPARISON = "comparison"
    REUSE = "reuse"
    AUDIT = "audit"
    MACHINE = "machine"
    TARGETS = "targets"
    POOL = "pool"
    REPORT = "report"


class OrderedRow(BaseRow):
    class Meta:
        abstract = True
        ordering = ["pk"]


class ResultRow(OrderedRow):
    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="+")

    class Meta(OrderedRow.Meta):
        abstract = True


class ResultFile(ResultRow):
    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="files")
    file = models.ForeignKey(CollectionFile, on_delete=models.SET_NULL, null=True, related_name="+")
    kind = models.CharField(max_length=10, choices=CollectionFile.Kind)
    name = models.CharField(max_length=NAME_LENGTH)
    family = models.CharField(max_length=NAME_LENGTH, blank=True)
    made_by = models.CharField(max_length=9, choices=CollectionFile.MadeBy)
    sha256 = models.CharField(max_length=64)
    n_topics = models.PositiveIntegerField(default=0, help_text="That count.")
    n_missing = models.PositiveIntegerField(default=0, help_text="That a run lacks.")
    n_foreign = models.PositiveIntegerField(default=0, help_text="That the qrels do not know.")


LONGEST_NAME = 200
LONGEST_REASON = 300


class EvaluatedMeasure(ResultRow):
    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="measures")
    name = models.CharField(max_length=LONGEST_NAME)
    is_primary = models.BooleanField(help_text="Whether its tests are corrected together.")
    is_binary = models.BooleanField(help_text="Whether a topic's value is 0 or 1.")


class RunResult(ResultRow):
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


class TopicValue(OrderedRow):
    """A run's value of a measure in a topic; none where the run has no list of the topic."""

    result = models.ForeignKey(RunResult, on_delete=models.CASCADE, related_name="topic_values")
    topic = models.TextField()
    value = models.FloatField()


LONGEST_SOURCE = 100
LONGEST_QUOTA_REASON = 16


class SampledTarget(ResultRow):
    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="sampled_targets")
    topic = models.TextField()
    docno = models.TextField(blank=True, help_text="The document that the topic is about.")
    value = models.FloatField(null=True, help_text="By which the strata were made.")
    stratum = models.CharField(max_length=200, blank=True)
    inclusion = models.FloatField(default=1.0, help_text="The probability that it was drawn.")


class PooledTopic(ResultRow):
    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="pooled_topics")
    topic = models.TextField()
    docno = models.TextField(blank=True)


class PoolSlot(OrderedRow):
    topic = models.ForeignKey(PooledTopic, on_delete=models.CASCADE, related_name="slots")
    slot = models.PositiveIntegerField()
    position = models.PositiveIntegerField()
    docno = models.TextField()
    source = models.CharField(max_length=LONGEST_SOURCE)
    source_rank = models.PositiveIntegerField()
    quota = models.CharField(max_length=LONGEST_SOURCE, blank=True)
    inclusion = models.FloatField()
    also = models.TextField(blank=True, help_text="Sources and ranks, as in the pool's file.")


class PoolReplacement(OrderedRow):
    topic = models.ForeignKey(PooledTopic, on_delete=models.CASCADE, related_name="replacements")
    slot = models.PositiveIntegerField()
    source = models.CharField(max_length=LONGEST_SOURCE)
    source_rank = models.PositiveIntegerField()
    docno = models.TextField()
    reason = models.CharField(max_length=LONGEST_QUOTA_REASON)
    other = models.TextField(blank=True)


class DryPoolSource(OrderedRow):
    """A source whose list of a topic ended before its quota was filled."""

    topic = models.ForeignKey(PooledTopic, on_delete=models.CASCADE, related_name="dry")
    source = models.CharField(max_length=LONGEST_SOURCE)
    quota = models.PositiveIntegerField()
    n_listed = models.PositiveIntegerField()
    n_missing = models.PositiveIntegerField()
    filled_by = models.TextField(blank=True, help_text="Names of sources.")


class PoolFinding(ResultRow):
    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="pool_findings")
    name = models.CharField(max_length=LONGEST_QUOTA_REASON)
    problem = models.TextField()
    topic = models.TextField(blank=True)
    docno = models.TextField(blank=True)


class PoolStudy(ResultRow):
    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="pool_studies")
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="pools")
    allowed = models.CharField(max_length=200, blank=True, help_text="Names of faults.")
    created_at = models.DateTimeField(auto_now_add=True)
