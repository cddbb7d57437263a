"""The one field of forms for money."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from presentation.amounts import read_usd


class UsdField(forms.DecimalField):
    """US dollars and cents in plain digits, never below nothing."""

    def __init__(self, **options: Any) -> None:
        usual: dict[str, Any] = {"min_value": Decimal(0), "max_digits": 8, "decimal_places": 2}
        super().__init__(**usual | options)

    def to_python(self, value: Any) -> Decimal | None:  # type: ignore[override]
        if value in self.empty_values:
            return None
        if isinstance(value, Decimal):
            return value
        try:
            return read_usd(str(value))
        except ValueError as error:
            raise ValidationError(str(error), code="invalid") from error
