from django.db import models

from accounts.models import CreatedRow, Team, TeamRowQuerySet
from work.contents import ContentField
from work.models import BaseRow

NAME_LENGTH = 128


class StoredCatalogue(CreatedRow):
    """Drawn items are stored as their number and seed only."""

    class Kind(models.TextChoices):
        DRAWN = "drawn"
        # Of ids whose own embeddings are not at hand.
        STAND_IN = "stand-in"
        FILES = "files"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="catalogues")
    name = models.CharField(max_length=NAME_LENGTH)
    kind = models.CharField(max_length=8, choices=Kind)
    n_items = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, help_text="Of all that decides what the items are.")

    objects = TeamRowQuerySet.as_manager()

    class Meta:
        ordering = ["team", "name", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["team", "sha256"], name="catalogue_once_a_team")
        ]


class CataloguePart(BaseRow):
    catalogue = models.ForeignKey(StoredCatalogue, on_delete=models.CASCADE, related_name="parts")
    position = models.PositiveIntegerField()
    content = ContentField()

    class Meta:
        ordering = ["catalogue", "position"]
        constraints = [
            models.UniqueConstraint(fields=["catalogue", "position"], name="part_once_a_catalogue")
        ]


class StoredRecommenderQuerySet(TeamRowQuerySet["StoredRecommender"]):
    team_field = "catalogue__team"


class StoredRecommender(CreatedRow):
    """The checkpoint is that of the last epoch."""

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

    objects = StoredRecommenderQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["catalogue", "name"], name="recommender_name_once_a_catalogue"
            )
        ]


class TrainingEpoch(BaseRow):
    """Loss, and nDCG@10 over turns on validation items. Validation uses SimBase, so that no
    recommender is chosen by the users it is evaluated with."""

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
