"""Computed results of every kind: what they were computed from, and what came out."""

import json
import zlib
from collections.abc import Mapping
from functools import cached_property
from math import isnan
from typing import Any, Self

from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.db import models

from accounts.models import CreatedRow
from work.contents import ContentField
from work.models import BaseRow


class ResultQuerySet(models.QuerySet["Result"]):
    def about(self, subject: models.Model) -> Self:
        subject_type = ContentType.objects.get_for_model(subject)
        return self.filter(subject_type=subject_type, subject_id=subject.pk)

    def of(self, subject: models.Model, kind: str) -> Self:
        return self.about(subject).filter(kind=kind).order_by("-number").defer("packed_record")


class Result(CreatedRow):
    """A computed result, which never changes: the same input and settings are computed once.

    One that is computed in several jobs is stored when it is requested, without a record."""

    subject_type = models.ForeignKey(ContentType, on_delete=models.CASCADE, related_name="+")
    subject_id = models.PositiveBigIntegerField()
    subject = GenericForeignKey("subject_type", "subject_id")
    kind = models.CharField(max_length=40)
    number = models.PositiveIntegerField(help_text="Counts from one per subject and kind.")
    form = models.PositiveSmallIntegerField(help_text="Version of the record's layout.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of the inputs and settings.")
    settings = models.JSONField(default=dict)
    seed = models.PositiveBigIntegerField(default=0, help_text="All random draws start from it.")
    facts = models.JSONField(default=dict, help_text="Counts that pages list, such as n_topics.")
    notes = models.JSONField(default=list, help_text="Warnings for readers: text and code.")
    packed_record = ContentField(null=True, help_text="The record as compressed JSON.")
    finished_at = models.DateTimeField(null=True, help_text="None while it is computed.")

    objects = ResultQuerySet.as_manager()

    class Meta:
        ordering = ["subject_type", "subject_id", "kind", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["subject_type", "subject_id", "kind", "number"],
                name="result_number_once",
            )
        ]

    @cached_property
    def record(self) -> dict[str, Any]:
        """Everything that was computed, under the keys of `--json`; empty if it is rows."""
        return {} if self.packed_record is None else unpack_record(self.packed_record)

    @property
    def level(self) -> str:
        return f"{100 * self.settings.get('confidence', 0.95):g} %"


class ResultPart(BaseRow):
    """A part of a result that is read by itself: a large table of it, or a file made of it."""

    result = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="parts")
    name = models.CharField(max_length=64)
    content = ContentField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["result", "name"], name="part_once_a_result")
        ]


def pack_record(record: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(plain_record(record), allow_nan=False).encode())


def unpack_record(packed: bytes) -> dict[str, Any]:
    unpacked: dict[str, Any] = json.loads(zlib.decompress(packed))
    return unpacked


def plain_record(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy's arrays and numbers, without importing it at start-up
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain_record(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_record(each) for each in value]
    return None if isinstance(value, float) and isnan(value) else value
