"""Samples of items that were sent to annotators, with the chance that each item had."""

from __future__ import annotations

from typing import Self

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from annotation.models.studies import Item, Question, Study


class ItemSampleQuerySet(models.QuerySet["ItemSample"]):
    def of(self, study: Study) -> Self:
        return self.filter(study=study)


class ItemSample(models.Model):
    """One draw of items to be judged; estimates weigh what came of it by its items' chances.

    It is told apart from the batch of HITs that carries it: what validates judgments knows no
    marketplace.
    """

    class Method(models.TextChoices):
        ALL = "all"
        RANDOM = "random"
        UNSURE = "unsure"
        LISTED = "listed"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="item_samples")
    number = models.PositiveIntegerField(help_text="Counts the study's samples from one.")
    round = models.PositiveSmallIntegerField(default=1)
    method = models.CharField(max_length=8, choices=Method)
    seed = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="That items were drawn by; empty where none were."
    )
    judge = models.CharField(
        max_length=500, blank=True, help_text="Signature of the scores whose errors were expected."
    )
    question = models.ForeignKey(
        Question, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    n_available = models.PositiveIntegerField(help_text="Items it was drawn from.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ItemSampleQuerySet.as_manager()

    class Meta:
        ordering = ["study", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "number"], name="item_sample_number_once_a_study"
            )
        ]

    def __str__(self) -> str:
        return f"sample {self.number} of {self.study_id}"


class SampledItem(models.Model):
    """An item of a sample; without a probability where it was picked by hand."""

    sample = models.ForeignKey(ItemSample, on_delete=models.CASCADE, related_name="items")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="samples")
    probability = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="With which it was drawn from the items that were left.",
    )

    class Meta:
        ordering = ["sample", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["sample", "item"], name="item_once_a_sample"),
            models.CheckConstraint(
                condition=Q(probability=None) | Q(probability__gt=0, probability__lte=1),
                name="probability_above_0_and_at_most_1",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} of sample {self.sample_id}"
