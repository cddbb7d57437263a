"""Reports on a collection: what was concluded of its results, sentence by sentence."""

from __future__ import annotations

from django.db import models

from retrieval.models.versions import CollectionVersion, OfVersion


class ReportSentence(OfVersion):
    """A sentence of a report; the first of a section is its finding."""

    version = models.ForeignKey(
        CollectionVersion, on_delete=models.CASCADE, related_name="report_sentences"
    )
    section = models.CharField(max_length=40)
    text = models.TextField()

    class Meta:
        ordering = ["pk"]
