"""Versions of validations, the rows under them, and the files of their reports."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from annotation.models import Study
from metrics.exceptions import ValidationUnknown
from validation.models.fields import code_field, name_field
from work.contents.field import ContentField


class ValidationVersionQuerySet(models.QuerySet["ValidationVersion"]):
    def of(self, study: Study) -> ValidationVersionQuerySet:
        return self.filter(study=study)

    def newest_first(self) -> ValidationVersionQuerySet:
        return self.order_by("-number")

    def numbered(self, number: int) -> ValidationVersion:
        """The version of that number, or ValidationUnknown with those there are."""
        version = self.filter(number=number).first()
        if version is None:
            raise ValidationUnknown(number, list(self.values_list("number", flat=True)))
        return version


class ValidationVersion(models.Model):
    """A study's metrics against human ratings, as computed; never changed."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="validations")
    number = models.PositiveIntegerField(help_text="Counts from one in the study.")
    form = models.PositiveSmallIntegerField(help_text="Of the rows, as the code writes them.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of judgments and scores.")
    rules = models.JSONField(help_text="The settings it was made by.")
    settings_digest = models.CharField(max_length=64)
    seed = models.PositiveBigIntegerField(help_text="All random draws start from it.")
    n_judgments = models.PositiveIntegerField(help_text="Of the round.")
    n_rejected = models.PositiveIntegerField()
    n_counted = models.PositiveIntegerField()
    n_annotators = models.PositiveIntegerField()
    n_items = models.PositiveIntegerField()
    n_candidates = models.PositiveIntegerField()
    measures = models.JSONField(
        help_text="Of what there are correlations: question, scope, by, level, coefficient."
    )
    judgments_digest = models.CharField(max_length=64)
    n_study_judgments = models.PositiveIntegerField(help_text="Of all rounds.")
    last_judgment = models.PositiveBigIntegerField(help_text="The key of the last of them.")
    rejected = models.JSONField(default=list, help_text="The keys of rejected submissions.")
    since = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="followers",
        help_text="The version that its changes are told against; empty for a first.",
    )
    n_added = models.PositiveIntegerField(default=0, help_text="Judgments since then.")
    n_removed = models.IntegerField(default=0)
    n_newly_rejected = models.PositiveIntegerField(default=0)
    n_reinstated = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="validations",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ValidationVersionQuerySet.as_manager()

    class Meta:
        ordering = ["study", "number"]
        indexes = [
            models.Index(fields=["study", "settings_digest", "-number"], name="validation_by_rules")
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "number"], name="validation_number_once_a_study"
            )
        ]

    def __str__(self) -> str:
        return f"validation {self.number} of {self.study_id}"


class ReportFile(models.Model):
    """A file of a version's report, to take away."""

    version = models.ForeignKey(ValidationVersion, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=64)
    content = ContentField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["version", "name"], name="report_file_once_a_version")
        ]

    def __str__(self) -> str:
        return self.name


class OfVersion(models.Model):
    """A row under a version, in the order in which it was computed."""

    version = models.ForeignKey(ValidationVersion, on_delete=models.CASCADE, related_name="+")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk} of version {self.version_id}"


class OfPanel(OfVersion):
    question = name_field()
    scope = code_field()
    by = name_field(help_text="The condition; empty for all of them.")

    class Meta:
        abstract = True


class OfMeasure(OfPanel):
    level = code_field()
    coefficient = code_field()

    class Meta:
        abstract = True
