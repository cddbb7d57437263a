"""Studies whose items are turns of recorded dialogues: where each comes from, which workers do not
see."""

from __future__ import annotations

from django.db import models

from annotation.models import Item, Study

ID_LENGTH = 255


class DialogueStudy(models.Model):
    """The dialogues that a study's items were drawn from, and the seed that drew them."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="dialogues")
    log_name = models.CharField(max_length=ID_LENGTH)
    log_sha256 = models.CharField(max_length=64)
    catalogue = models.CharField(max_length=ID_LENGTH)
    seed = models.PositiveBigIntegerField()
    per_target = models.PositiveIntegerField()
    n_targets_left_out = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"turns of {self.log_name}"


class RecordedTurn(models.Model):
    """The turn of a dialogue that an item shows.

    `turn` is the critique's, from 1; `delta` how much nearer `shown` is to the target than
    `previous`; `nearest` the key of the alternative nearest to `shown`.
    """

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

    def __str__(self) -> str:
        return f"turn {self.turn} towards {self.target}"
