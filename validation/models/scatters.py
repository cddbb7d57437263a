"""Human values beside the scores of a metric, as points."""

from __future__ import annotations

from django.db import models

from validation.models.fields import name_field, number_field
from validation.models.inputs import ScoreSet
from validation.models.versions import OfVersion


class Scatter(OfVersion):
    """Human values beside a metric's scores; what all of them show, in words."""

    question = name_field()
    score_set = models.ForeignKey(ScoreSet, on_delete=models.CASCADE, related_name="+")
    words = models.TextField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["version", "question", "score_set"], name="scatter_once_a_version"
            )
        ]


class ScatterPoint(models.Model):
    """A candidate; or, where they are too many to draw, how many lie in a part of the plane."""

    scatter = models.ForeignKey(Scatter, on_delete=models.CASCADE, related_name="points")
    item = name_field()
    candidate = name_field()
    system = name_field()
    human = number_field()
    score = number_field()
    human_high = number_field()
    score_high = number_field()
    n = models.PositiveIntegerField(null=True, help_text="Of a part; empty for a candidate.")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"({self.human}, {self.score})"
