"""Targets that were sampled and pools that were made, as rows under a version of a collection."""

from __future__ import annotations

from django.db import models

from annotation.models import Study
from results.models import Result
from retrieval.models.result_files import ResultRow

LONGEST_SOURCE = 100
LONGEST_REASON = 16


class SampledTarget(ResultRow):
    """A topic of a sample, with what it was stratified by."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="sampled_targets")
    topic = models.TextField()
    docno = models.TextField(blank=True, help_text="The document that the topic is about.")
    value = models.FloatField(null=True, help_text="By which the strata were made.")
    stratum = models.CharField(max_length=200, blank=True)
    inclusion = models.FloatField(default=1.0, help_text="The probability that it was drawn.")

    class Meta:
        ordering = ["pk"]


class PoolSummary(models.Model):
    """What a pool came to, in numbers."""

    version = models.OneToOneField(Result, on_delete=models.CASCADE, related_name="pool_summary")
    n_slots = models.PositiveIntegerField()
    n_documents = models.PositiveIntegerField()
    n_catalogue = models.PositiveIntegerField()
    n_planned = models.PositiveIntegerField(null=True, help_text="Candidates of each topic.")
    n_least = models.PositiveIntegerField()
    n_most = models.PositiveIntegerField()
    n_short = models.PositiveIntegerField(help_text="Topics with fewer than planned.")
    n_unmet = models.PositiveIntegerField(help_text="Topics of which a quota is not met.")
    n_replacements = models.PositiveIntegerField()
    n_hubs = models.PositiveIntegerField()
    hub_share = models.FloatField(help_text="Of the topics, from which on it is a hub.")
    hub_slots = models.FloatField(help_text="Share of all slots that hubs take.")
    anti_hubs = models.FloatField(help_text="Share of the catalogue that is in no pool.")
    skewness = models.FloatField(null=True, help_text="Of how many pools a document is in.")
    n_faults = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"pool {self.version_id}: {self.n_slots} slots"


class CandidateSource(ResultRow):
    """A run or vectors that a pool was made from, and what it gave."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="candidate_sources")
    name = models.CharField(max_length=LONGEST_SOURCE)
    kind = models.CharField(max_length=20)
    signature = models.TextField(blank=True)
    n_slots = models.PositiveIntegerField()
    n_documents = models.PositiveIntegerField()
    n_alone = models.PositiveIntegerField(help_text="Slots that no other source lists.")
    n_for_others = models.PositiveIntegerField(help_text="Slots of another source's quota.")
    deepest_rank = models.PositiveIntegerField()
    n_passed_over = models.PositiveIntegerField()
    n_dry_topics = models.PositiveIntegerField()

    class Meta:
        ordering = ["pk"]


class PooledTopic(ResultRow):
    """A target of a pool."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="pooled_topics")
    topic = models.TextField()
    docno = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]


class PoolSlot(models.Model):
    """A candidate of a topic, and where it comes from; fields as in `retrieval.pools.records`."""

    topic = models.ForeignKey(PooledTopic, on_delete=models.CASCADE, related_name="slots")
    slot = models.PositiveIntegerField()
    position = models.PositiveIntegerField()
    docno = models.TextField()
    source = models.CharField(max_length=LONGEST_SOURCE)
    source_rank = models.PositiveIntegerField()
    quota = models.CharField(max_length=LONGEST_SOURCE, blank=True)
    inclusion = models.FloatField()
    also = models.TextField(blank=True, help_text="Sources and ranks, as in the pool's file.")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.slot}: {self.docno}"


class PoolReplacement(models.Model):
    """A document that a source listed and a slot passed over."""

    topic = models.ForeignKey(PooledTopic, on_delete=models.CASCADE, related_name="replacements")
    slot = models.PositiveIntegerField()
    source = models.CharField(max_length=LONGEST_SOURCE)
    source_rank = models.PositiveIntegerField()
    docno = models.TextField()
    reason = models.CharField(max_length=LONGEST_REASON)
    other = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.docno} ({self.reason})"


class DryPoolSource(models.Model):
    """A source whose list of a topic ended before its quota was filled."""

    topic = models.ForeignKey(PooledTopic, on_delete=models.CASCADE, related_name="dry")
    source = models.CharField(max_length=LONGEST_SOURCE)
    quota = models.PositiveIntegerField()
    n_listed = models.PositiveIntegerField()
    n_missing = models.PositiveIntegerField()
    filled_by = models.TextField(blank=True, help_text="Names of sources.")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.source}: {self.n_missing} missing"


class PoolFinding(ResultRow):
    """What lint finds wrong with a pool; those of a name can be allowed together."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="pool_findings")
    name = models.CharField(max_length=LONGEST_REASON)
    problem = models.TextField()
    topic = models.TextField(blank=True)
    docno = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]


class PoolStudy(ResultRow):
    """The study that a pool became; the faults that were allowed when it did."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="pool_studies")
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="pools")
    allowed = models.CharField(max_length=200, blank=True, help_text="Names of faults.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
