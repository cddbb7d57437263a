"""Versions of what was computed of a collection: from which files, by which settings."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from retrieval.models.collections import Collection
from retrieval.models.files import NAME_LENGTH, CollectionFile


class CollectionVersionQuerySet(models.QuerySet["CollectionVersion"]):
    def of(self, collection: Collection, kind: str) -> CollectionVersionQuerySet:
        """The newest first."""
        versions = self.filter(collection=collection, kind=kind).order_by("-number")
        if kind == CollectionVersion.Kind.COMPARISON:
            return versions.select_related("any_two_assessors")
        return versions


class CollectionVersion(models.Model):
    """A computed result of a collection; its rows refer to it and never change."""

    class Kind(models.TextChoices):
        EVALUATION = "evaluation"
        COMPARISON = "comparison"
        REUSE = "reuse"
        AUDIT = "audit"
        MACHINE = "machine"
        TARGETS = "targets"
        POOL = "pool"
        REPORT = "report"

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="versions")
    kind = models.CharField(max_length=12, choices=Kind)
    number = models.PositiveIntegerField(help_text="Counts from one in the collection and kind.")
    form = models.PositiveSmallIntegerField(help_text="Of the rows, as the code writes them.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of the files and settings.")
    rules = models.JSONField(help_text="The settings it was made by.")
    seed = models.PositiveBigIntegerField(default=0, help_text="All random draws start from it.")
    n_topics = models.PositiveIntegerField(default=0)
    n_without_relevant = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CollectionVersionQuerySet.as_manager()

    class Meta:
        ordering = ["collection", "kind", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "kind", "number"], name="number_once_a_collection_and_kind"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.number} of {self.collection_id}"


class OfVersion(models.Model):
    """A row under a version, in the order in which it was computed."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="+")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk} of version {self.version_id}"


class VersionFile(OfVersion):
    """A file that a version was computed from, as it was then."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="files")
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


class VersionNote(OfVersion):
    """What a reader must know beside the numbers."""

    version = models.ForeignKey(CollectionVersion, on_delete=models.CASCADE, related_name="notes")
    text = models.TextField()

    class Meta:
        ordering = ["pk"]
