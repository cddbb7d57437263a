from django.db import models

from annotation.models import Item, Study
from results.models import Result
from simulation.models.experiments import StoredExperiment
from work.contents import ContentField
from work.models import BaseRow

ID_LENGTH = 255


class DialogueStudy(BaseRow):
    class Kind(models.TextChoices):
        SWITCHING = "switching"
        OUTCOMES = "outcomes"

    kind = models.CharField(max_length=9, choices=Kind, default=Kind.SWITCHING)
    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="dialogues")
    log_name = models.CharField(max_length=ID_LENGTH)
    log_sha256 = models.CharField(max_length=64)
    catalogue = models.CharField(max_length=ID_LENGTH)
    seed = models.PositiveBigIntegerField()
    per_target = models.PositiveIntegerField(default=0, help_text="Turns, of a switching study.")
    final_user = models.CharField(
        max_length=ID_LENGTH, blank=True, help_text="Whose final items an outcome study shows."
    )
    n_targets_left_out = models.PositiveIntegerField(default=0)
    experiment = models.ForeignKey(
        StoredExperiment,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="dialogue_studies",
        help_text="Whose catalogue and judgments the items are made with.",
    )
    version = models.ForeignKey(
        Result,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Whose dialogues they are; empty where a log was sent.",
    )
    most_targets = models.PositiveIntegerField(
        null=True, blank=True, help_text="To draw, of an outcome study; all where empty."
    )
    made_at = models.DateTimeField(null=True, help_text="When the study got its items.")


class DialogueLogPart(BaseRow):
    """A chunk of an uploaded log, kept until the study has its items."""

    dialogues = models.ForeignKey(DialogueStudy, on_delete=models.CASCADE, related_name="log_parts")
    position = models.PositiveIntegerField()
    content = ContentField()

    class Meta:
        ordering = ["dialogues", "position"]
        constraints = [
            models.UniqueConstraint(fields=["dialogues", "position"], name="part_once_a_log")
        ]


class RecordedTurn(BaseRow):
    """The turn of a dialogue that an item shows. `turn` is the critique's, from 1; `delta` is how
    much nearer `shown` is to the target than `previous`; `nearest` is the key of the alternative
    nearest to `shown`."""

    dialogues = models.ForeignKey(DialogueStudy, on_delete=models.CASCADE, related_name="turns")
    item = models.OneToOneField(Item, on_delete=models.CASCADE, related_name="recorded_turn")
    recommender = models.CharField(max_length=ID_LENGTH)
    user = models.CharField(max_length=ID_LENGTH)
    target = models.CharField(max_length=ID_LENGTH)
    turn = models.PositiveIntegerField()
    previous = models.CharField(max_length=ID_LENGTH)
    shown = models.CharField(max_length=ID_LENGTH)
    delta = models.FloatField()
    nearest = models.CharField(max_length=ID_LENGTH)

    class Meta:
        ordering = ["dialogues", "item"]


class FinalItem(BaseRow):
    """The last item of a recommender's dialogue, or a random item for comparison without a
    recommender. If it `is_target`, nobody is asked about it."""

    dialogues = models.ForeignKey(
        DialogueStudy, on_delete=models.CASCADE, related_name="final_items"
    )
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="final_items")
    recommender = models.CharField(max_length=ID_LENGTH, blank=True)
    shown = models.CharField(max_length=ID_LENGTH)
    turn = models.PositiveIntegerField()
    is_target = models.BooleanField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["item", "recommender"], name="final_item_once")
        ]


class SimulatedOutcome(BaseRow):
    """The share of a simulated user's dialogues about a target with an accepted last item, computed
    before people were asked."""

    dialogues = models.ForeignKey(
        DialogueStudy, on_delete=models.CASCADE, related_name="simulated_outcomes"
    )
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="simulated_outcomes")
    user = models.CharField(max_length=ID_LENGTH)
    recommender = models.CharField(max_length=ID_LENGTH)
    value = models.FloatField()

    class Meta:
        ordering = ["pk"]
