from __future__ import annotations

from django.db import models
from django.utils import timezone

from accounts.models import CreatedRow
from annotation.models import Study, StudyRowQuerySet


class PreviewLinkQuerySet(StudyRowQuerySet["PreviewLink"]):
    def active(self) -> PreviewLinkQuerySet:
        return self.filter(revoked_at=None, expires_at__gt=timezone.now())


class PreviewLink(CreatedRow):
    """A link that shows a study's pages for annotators without an account. Only the hash of its
    token is stored."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="preview_links")
    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = PreviewLinkQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
