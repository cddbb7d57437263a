"""Results of a test collection: their kinds, and the files that they were computed from."""

from __future__ import annotations

from django.db import models

from results.models import Result
from retrieval.models.files import NAME_LENGTH, CollectionFile


class ResultType(models.TextChoices):
    """The kinds of results of a collection."""

    EVALUATION = "evaluation"
    COMPARISON = "comparison"
    REUSE = "reuse"
    AUDIT = "audit"
    MACHINE = "machine"
    TARGETS = "targets"
    POOL = "pool"
    REPORT = "report"


class ResultRow(models.Model):
    """A row of a result, in the order in which it was computed."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="+")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk} of result {self.version_id}"


class ResultFile(ResultRow):
    """A file that a result was computed from, as it was then."""

    version = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="files")
    file = models.ForeignKey(CollectionFile, on_delete=models.SET_NULL, null=True, related_name="+")
    kind = models.CharField(max_length=10, choices=CollectionFile.Kind)
    name = models.CharField(max_length=NAME_LENGTH)
    family = models.CharField(max_length=NAME_LENGTH, blank=True)
    made_by = models.CharField(max_length=9, choices=CollectionFile.MadeBy)
    sha256 = models.CharField(max_length=64)
    n_topics = models.PositiveIntegerField(default=0, help_text="That count.")
    n_missing = models.PositiveIntegerField(default=0, help_text="That a run lacks.")
    n_foreign = models.PositiveIntegerField(default=0, help_text="That the qrels do not know.")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name
