"""Fields that rows of validations share."""

from __future__ import annotations

from django.db import models

# Names that users give: a question's, a condition's, a system's, a candidate's.
LONGEST_NAME = 200
LONGEST_REASON = 200


def name_field(**options: object) -> models.CharField[str, str]:
    return models.CharField(max_length=LONGEST_NAME, blank=True, **options)  # type: ignore[arg-type]


def code_field(**options: object) -> models.CharField[str, str]:
    """A level, a coefficient, a setting: one of ours."""
    return models.CharField(max_length=32, **options)  # type: ignore[arg-type]


def number_field() -> models.FloatField[float | None, float | None]:
    return models.FloatField(null=True)


def reason_field() -> models.CharField[str | None, str | None]:
    return models.CharField(max_length=LONGEST_REASON, null=True)
