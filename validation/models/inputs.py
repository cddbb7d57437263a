"""The sets of scores and of labels that a version rests on."""

from __future__ import annotations

from django.db import models

from annotation.score_settings import LONGEST_SIGNATURE
from validation.models.fields import name_field
from validation.models.versions import OfVersion


class ScoreSet(OfVersion):
    """A set of scores that a version rests on; a variant enters no family of tests."""

    metric = models.CharField(max_length=64)
    signature = models.CharField(max_length=LONGEST_SIGNATURE)
    higher_is_better = models.BooleanField()
    is_primary = models.BooleanField()
    n_scores = models.PositiveIntegerField()
    n_undefined = models.PositiveIntegerField()
    n_unparsed = models.PositiveIntegerField()
    n_unscored = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["version", "metric", "signature"], name="score_set_once_a_version"
            )
        ]

    def __str__(self) -> str:
        return self.metric


class LabelSource(OfVersion):
    """A label set that the human values of a question are."""

    question = name_field()
    label_version = models.PositiveIntegerField()
    signature = models.CharField(max_length=500)
    n_labels = models.PositiveIntegerField()
    n_adjudicated = models.PositiveIntegerField()

    class Meta:
        ordering = ["pk"]
