"""A machine's labels beside people's, as rows under a version."""

from __future__ import annotations

from django.db import models

from retrieval.models.comparisons import name_field, reason_field
from retrieval.models.versions import CollectionVersion, OfVersion


class MachineFacts(OfVersion):
    """What of the topics people and the machine judged."""

    version = models.OneToOneField(
        CollectionVersion, on_delete=models.CASCADE, related_name="machine_facts"
    )
    qrels = name_field()
    machine = name_field()
    sample = models.CharField(max_length=8, help_text="Of people: topics or labels.")
    n_topics_people = models.PositiveIntegerField()
    n_topics_machine = models.PositiveIntegerField()
    n_topics_both = models.PositiveIntegerField()


class MachineEstimate(OfVersion):
    """A run's mean under the machine, under people's sample, and people's estimated by both."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="machine_estimates"
    )
    run = name_field()
    measure = name_field()
    machine_mean = models.FloatField(null=True)
    machine_ci_low = models.FloatField(null=True)
    machine_ci_high = models.FloatField(null=True)
    people_mean = models.FloatField(null=True)
    people_ci_low = models.FloatField(null=True)
    people_ci_high = models.FloatField(null=True)
    people_n_topics = models.PositiveIntegerField()
    gap = models.FloatField(null=True)
    gap_ci_low = models.FloatField(null=True)
    gap_ci_high = models.FloatField(null=True)
    calibrated = models.FloatField(null=True)
    calibrated_ci_low = models.FloatField(null=True)
    calibrated_ci_high = models.FloatField(null=True)
    effective_n = models.FloatField(null=True, help_text="Topics by people that it is worth.")
    reason = reason_field()

    class Meta:
        ordering = ["pk"]


class ModelBias(OfVersion):
    """Whether the machine rates systems that share its model higher than it rates others."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="model_biases"
    )
    measure = name_field()
    gap_sharing = models.FloatField(null=True)
    gap_others = models.FloatField(null=True)
    difference = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    p = models.FloatField(null=True)
    n_topics = models.PositiveIntegerField()
    tau = models.FloatField(null=True)
    tau_without = models.FloatField(null=True)
    reason = reason_field()

    class Meta:
        ordering = ["pk"]
