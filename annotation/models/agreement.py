from __future__ import annotations

from django.db import models

from annotation.models.studies import Candidate, Question
from results.models import Result
from work.models import BaseRow


class UnitAgreementQuerySet(models.QuerySet["UnitAgreement"]):
    def judged(self, question: Question, round: int) -> UnitAgreementQuerySet:
        return self.filter(question=question, round=round)

    def disputed(self, threshold: float) -> UnitAgreementQuerySet:
        return self.filter(spread__gt=threshold)


class UnitAgreement(BaseRow):
    """The judgments of one candidate under one question in one round, of two annotators or more.

    `spread` is a share: of the scale, the distance of the lowest from the highest value; at the
    nominal level, of the judgments, those that are not of the most frequent category.
    """

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="units")
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="+")
    round = models.PositiveSmallIntegerField()
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="+")
    n_judgments = models.PositiveIntegerField()
    mean = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    spread = models.FloatField()
    agreement = models.FloatField(null=True)

    objects = UnitAgreementQuerySet.as_manager()

    class Meta:
        # An order that an index gives, so that a page reads no more rows than it shows.
        ordering = ["agreement", "pk"]
        indexes = [
            models.Index(
                fields=["version", "question", "round", "agreement", "id"], name="unit_by_agreement"
            ),
            models.Index(fields=["version", "question", "round", "spread"], name="unit_by_spread"),
        ]
