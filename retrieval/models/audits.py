"""Audits of files, as rows under a version."""

from __future__ import annotations

from django.db import models

from retrieval.models.comparisons import name_field
from retrieval.models.versions import CollectionVersion, OfVersion


class AuditedFile(OfVersion):
    """A file, and what it was recognised as."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="audited_files"
    )
    file_name = name_field()
    kind = models.CharField(max_length=20)
    n_lines = models.PositiveBigIntegerField()
    n_rows = models.PositiveBigIntegerField()
    related = models.CharField(
        max_length=200, blank=True, help_text="The file that it was compared with."
    )

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.file_name


class AuditFinding(models.Model):
    """Something that a reader must know of a file."""

    file = models.ForeignKey(AuditedFile, on_delete=models.CASCADE, related_name="findings")
    name = name_field()
    severity = models.CharField(max_length=8, help_text="refused, defect or note.")
    text = models.TextField()
    n = models.PositiveBigIntegerField()
    of = models.PositiveBigIntegerField(null=True)
    lines = models.TextField(blank=True, help_text="The first of them, with commas between.")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name


class AuditClaim(models.Model):
    """A published number beside what the file gives."""

    file = models.ForeignKey(AuditedFile, on_delete=models.CASCADE, related_name="claims")
    name = name_field()
    claimed = models.FloatField()
    counted = models.FloatField(null=True)
    explanation = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name


class AuditFact(models.Model):
    """A number, or a text, that was counted of a file: of a section, and of a row of it."""

    file = models.ForeignKey(AuditedFile, on_delete=models.CASCADE, related_name="facts")
    section = models.CharField(max_length=60, blank=True)
    row = models.PositiveIntegerField(null=True, help_text="Of a section that is a table.")
    name = name_field()
    number = models.FloatField(null=True)
    text = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.section} {self.name}"
