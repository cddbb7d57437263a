"""How far a collection may be used for systems that were not pooled, as rows under a version."""

from __future__ import annotations

from django.db import models

from retrieval.models.comparisons import name_field, reason_field
from retrieval.models.versions import CollectionVersion, OfVersion


class JudgedPool(OfVersion):
    """The pool of a version, by its judgments."""

    version = models.OneToOneField(CollectionVersion, on_delete=models.CASCADE, related_name="pool")
    pool_depth = models.PositiveIntegerField()
    is_depth_inferred = models.BooleanField()
    has_provenance = models.BooleanField(
        default=False, help_text="Whether each run was taken as deep as a stored pool took it."
    )
    share_in_qrels = models.FloatField(
        null=True, help_text="Of what the pooled runs list to the pool's depth."
    )
    n_judged = models.PositiveBigIntegerField()
    n_relevant = models.PositiveBigIntegerField()
    last_share = models.FloatField(help_text="Of the relevant, that the last rank brought.")
    is_rising = models.BooleanField(help_text="Whether a deeper pool would hold more relevant.")


class PooledRun(OfVersion):
    """What a run has within the pool's depth, and what of it no other pooled run has."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="pooled_runs"
    )
    run = name_field()
    group = name_field()
    is_pooled = models.BooleanField()
    n_judged = models.PositiveIntegerField()
    n_relevant = models.PositiveIntegerField()
    n_judged_only = models.PositiveIntegerField()
    n_relevant_only = models.PositiveIntegerField()
    n_relevant_group_only = models.PositiveIntegerField()
    judged_at_10 = models.FloatField(null=True)

    class Meta:
        ordering = ["pk"]


class PoolRank(OfVersion):
    """What the pool holds down to a rank, and what this rank brought."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="ranks")
    depth = models.PositiveIntegerField()
    n_judged = models.PositiveBigIntegerField()
    n_relevant = models.PositiveBigIntegerField()
    n_new_judged = models.PositiveBigIntegerField()
    n_new_relevant = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["pk"]


class PoolSource(OfVersion):
    """The share of relevant documents among the judged ones of a source."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="sources")
    source = name_field()
    n_judged = models.PositiveBigIntegerField()
    n_relevant = models.PositiveBigIntegerField()
    prevalence = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    reason = reason_field()

    class Meta:
        ordering = ["pk"]


class LeftOutUnit(OfVersion):
    """All runs scored without the judgments that one system or group alone brought."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="left_out"
    )
    name = name_field()
    unit = models.CharField(max_length=8, help_text="system or group.")
    n_judged_lost = models.PositiveBigIntegerField()
    n_relevant_lost = models.PositiveBigIntegerField()
    n_topics_without_relevant = models.PositiveIntegerField()

    class Meta:
        ordering = ["pk"]


class LeftOutEffect(models.Model):
    """A run under a measure, with all judgments and without those of what is left out."""

    unit = models.ForeignKey(LeftOutUnit, on_delete=models.CASCADE, related_name="effects")
    run = name_field()
    measure = name_field()
    is_left_out = models.BooleanField()
    mean = models.FloatField(null=True)
    mean_without = models.FloatField(null=True)
    change = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    rank = models.PositiveIntegerField()
    rank_without = models.PositiveIntegerField()
    judged = models.FloatField(null=True)
    judged_without = models.FloatField(null=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.run} by {self.measure}: {self.change}"


class ReuseExpectation(OfVersion):
    """By how much a measure underestimates a system outside the pool."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="expectations"
    )
    measure = name_field()
    unit = models.CharField(max_length=8, help_text="system or group.")
    underestimate = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    n_left_out = models.PositiveIntegerField()
    reason = reason_field()
    sentence = models.TextField(help_text="As the command prints it.")

    class Meta:
        ordering = ["pk"]
