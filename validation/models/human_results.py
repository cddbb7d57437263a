"""What people's judgments say by themselves, as rows under a version, for pages to read."""

from __future__ import annotations

from django.db import models

from annotation.models import Candidate, Study
from validation.models.fields import code_field, name_field
from validation.models.ratings import PairRating, SystemRating


class HumanResultsQuerySet(models.QuerySet["HumanResults"]):
    def of(self, study: Study) -> HumanResultsQuerySet:
        return self.filter(study=study)


class HumanResults(models.Model):
    """The results of a study as of one state of its judgments; a new version replaces it."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="human_results")
    number = models.PositiveIntegerField(help_text="Counts from one in the study.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of its input and its form.")
    round = models.PositiveSmallIntegerField(default=1)
    n_flagged = models.PositiveIntegerField(help_text="Submissions of the round.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = HumanResultsQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "human results"
        ordering = ["study", "number"]
        constraints = [
            models.UniqueConstraint(fields=["study", "number"], name="human_results_once_a_number")
        ]

    def __str__(self) -> str:
        return f"results {self.number} of {self.study_id}"


class OfHumanResults(models.Model):
    version = models.ForeignKey(HumanResults, on_delete=models.CASCADE, related_name="+")
    question = name_field()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk} of results {self.version_id}"


class HumanResultsQuestion(OfHumanResults):
    """A question that was judged, and what is said of it."""

    measure = code_field(help_text="mean, share, preferred or counts.")
    comparison = code_field(help_text="How two systems are compared: interval, ordinal, binary.")
    scale_low = models.FloatField()
    scale_high = models.FloatField()
    n_judgments = models.PositiveIntegerField()  # a preference is one, of all its candidates
    n_items = models.PositiveIntegerField()
    n_annotators = models.PositiveIntegerField()
    n_items_with = models.PositiveIntegerField(
        null=True, help_text="Items with a candidate that most annotators say yes to."
    )

    class Meta:
        ordering = ["pk"]


class OfPart(OfHumanResults):
    """Of all judgments, without flagged submissions, of a condition, or of a protocol's version."""

    scope = code_field()
    by = name_field()

    class Meta:
        abstract = True


class HumanResultsSystem(OfPart, SystemRating):
    """A system of a part; the best first. Without a name it is all candidates together."""

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["version", "question"], name="result_systems_of_question")]


class HumanResultsPair(OfPart, PairRating):
    """Two systems of a part."""

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["version", "question"], name="result_pairs_of_question")]


class HumanResultsBin(OfHumanResults):
    """How many judgments of a system lie in a part of the scale."""

    system = name_field()
    position = models.PositiveSmallIntegerField()
    label = name_field()
    n = models.PositiveIntegerField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["version", "question"], name="result_bins_of_question")]


class LowestRated(OfHumanResults):
    """One of the candidates of a system that people rate lowest."""

    system = name_field()
    rank = models.PositiveSmallIntegerField()
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="+")
    mean = models.FloatField()
    n = models.PositiveIntegerField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["version", "question"], name="result_lowest_of_question")]
