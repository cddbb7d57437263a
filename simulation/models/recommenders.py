"""Recommenders that were trained here, epoch by epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from simulation.models.catalogues import NAME_LENGTH, StoredCatalogue
from work.contents.field import ContentField

if TYPE_CHECKING:
    from accounts.models import User


class StoredRecommenderQuerySet(models.QuerySet["StoredRecommender"]):
    def visible_to(self, user: User) -> StoredRecommenderQuerySet:
        """Those of the catalogues that a user sees."""
        if user.is_superuser:
            return self
        return self.filter(catalogue__in=StoredCatalogue.objects.visible_to(user))


class StoredRecommender(models.Model):
    """A recommender in training, or trained; its checkpoint is that of the last epoch."""

    catalogue = models.ForeignKey(
        StoredCatalogue, on_delete=models.CASCADE, related_name="recommenders"
    )
    name = models.CharField(max_length=NAME_LENGTH)
    kind = models.CharField(max_length=12, help_text="gru-sl, gru-rl, gru-rl-later or ege.")
    rules = models.JSONField(help_text="The settings it is trained by.")
    start_from = models.ForeignKey(
        "self", on_delete=models.RESTRICT, null=True, blank=True, related_name="successors"
    )
    n_epochs = models.PositiveIntegerField(help_text="To be trained.")
    checkpoint = ContentField(null=True, blank=True, editable=False)
    sha256 = models.CharField(max_length=64, blank=True, help_text="Of the checkpoint.")
    finished_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = StoredRecommenderQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["catalogue", "name"], name="recommender_name_once_a_catalogue"
            )
        ]

    def __str__(self) -> str:
        return self.name


class TrainingEpoch(models.Model):
    """What an epoch came to: its loss, and nDCG@10 over turns on items that are not for training.

    Validation is by SimBase, so that no recommender is chosen by the users it is evaluated with.
    """

    recommender = models.ForeignKey(
        StoredRecommender, on_delete=models.CASCADE, related_name="epochs"
    )
    epoch = models.PositiveIntegerField(help_text="From 1.")
    loss = models.FloatField()
    validation = models.FloatField()
    seconds = models.FloatField()

    class Meta:
        ordering = ["recommender", "epoch"]
        constraints = [
            models.UniqueConstraint(fields=["recommender", "epoch"], name="epoch_once_a_training")
        ]

    def __str__(self) -> str:
        return f"epoch {self.epoch} of recommender {self.recommender_id}"
