from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.exceptions import ProtocolFrozen
from annotation.models.studies import Study


class ProtocolQuerySet(models.QuerySet["Protocol"]):
    def of(self, study: Study) -> ProtocolQuerySet:
        return self.filter(study=study)

    def drafts(self) -> ProtocolQuerySet:
        return self.filter(frozen_at=None)

    def frozen(self) -> ProtocolQuerySet:
        return self.exclude(frozen_at=None)

    def update(self, **values: Any) -> int:
        frozen = self.frozen().order_by().first()
        if frozen is not None:
            raise ProtocolFrozen(frozen.study.slug, frozen.number)
        return super().update(**values)


class Protocol(models.Model):
    """One version. A study has one draft at most; what is frozen never changes."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="protocols")
    number = models.PositiveSmallIntegerField()
    document = models.JSONField(help_text="As `docs/protocol.schema.json` says.")
    fingerprint = models.CharField(
        max_length=64, blank=True, help_text="Of the document; empty while it is a draft."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    saved_at = models.DateTimeField(auto_now=True)
    writer = models.CharField(
        max_length=32, blank=True, help_text="The open page that saved it last, by a random name."
    )
    frozen_at = models.DateTimeField(null=True, blank=True)
    frozen_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    objects = ProtocolQuerySet.as_manager()

    class Meta:
        ordering = ["study", "number"]
        constraints = [
            models.UniqueConstraint(fields=["study", "number"], name="protocol_number_is_unique"),
            models.UniqueConstraint(
                fields=["study"], condition=Q(frozen_at=None), name="one_draft_of_a_protocol"
            ),
            models.CheckConstraint(condition=Q(number__gte=1), name="protocols_count_from_one"),
            models.CheckConstraint(
                condition=Q(frozen_at=None, fingerprint="")
                | Q(frozen_at__isnull=False) & ~Q(fingerprint=""),
                name="frozen_protocols_have_fingerprints",
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of {self.study}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """The one guard that cannot be elsewhere: a form, a shell or a later writer comes here."""
        if self.pk and Protocol.objects.frozen().filter(pk=self.pk).exists():
            raise ProtocolFrozen(self.study.slug, self.number)
        super().save(*args, **kwargs)
