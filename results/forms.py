"""The form of a kind of results, made of its inputs and settings."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.forms import BoundField

from error_codes import CodedError
from results.kinds import ResultKind
from results.models import Result
from results.settings import list_settings


class ResultForm(forms.Form):
    def __init__(
        self, kind: ResultKind[Any], subject: models.Model, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(data, label_suffix="")
        self.kind, self.subject = kind, subject
        self.offered = kind.offer_inputs(subject)
        self.declared = list_settings(kind.settings)
        self.advanced: list[str] = []
        for name, one in kind.inputs.items():
            if rows := self.offered.get(name, []):
                choices = [(str(row.pk), kind.name_input(row)) for row in rows]
                self.fields[name] = one.form_field(choices)
            elif one.is_required:
                self.fields[name] = one.form_field([])
        for name, (described, default) in self.declared.items():
            made = described.form_fields(name, default, subject)
            self.fields.update(made)
            self.advanced += made if described.is_advanced else ()

    def begin_with(self, arguments: Mapping[str, Any]) -> None:
        settings, keys = arguments.get("settings", {}), set(arguments.get("inputs", ()))
        for name, one in self.kind.inputs.items():
            rows = self.offered.get(name, [])
            if one.is_subset:
                names = settings.get(one.stored_as) or ()
                chosen = [str(row.pk) for row in rows if row.name in names]
            else:
                chosen = [str(row.pk) for row in rows if row.pk in keys]
            self.initial[name] = chosen if one.several else next(iter(chosen), "")
        for name, (described, _default) in self.declared.items():
            if name in settings:
                self.initial.update(described.begin(name, settings[name]))

    def begin_with_result(self, result: Result, keys: Sequence[int]) -> None:
        self.begin_with({"settings": result.settings, "inputs": keys})
        for name, one in self.kind.inputs.items():
            if one.several and not one.is_subset and name in self.initial:
                self.initial[name] += [
                    str(row.pk)
                    for row in self.offered.get(name, [])
                    if row.created_at > result.created_at
                ]

    def prefer(self, name: str, keys: Sequence[int | None]) -> None:
        rows = [row.pk for row in self.offered.get(name, []) if row.pk in keys]
        if rows and name in self.kind.inputs and not self.kind.inputs[name].several:
            self.initial[name] = str(rows[0])

    @property
    def problem_when_empty(self) -> str:
        """Why nothing can be computed yet; empty if something can."""
        return self.kind.explain_missing(self.offered)

    @property
    def basic_fields(self) -> list[BoundField]:
        return [field for field in self if field.name not in self.advanced]

    @property
    def advanced_fields(self) -> list[BoundField]:
        return [field for field in self if field.name in self.advanced]

    @property
    def has_advanced_errors(self) -> bool:
        return any(field.errors for field in self.advanced_fields)

    @property
    def chosen(self) -> dict[str, list[Any]]:
        chosen: dict[str, list[Any]] = {}
        for name in self.kind.inputs:
            value: str | list[str] = self.cleaned_data.get(name) or []
            keys = [value] if isinstance(value, str) else value
            rows = {str(row.pk): row for row in self.offered.get(name, [])}
            chosen[name] = [rows[key] for key in keys]
        return chosen

    @property
    def settings(self) -> dict[str, Any]:
        return {
            name: described.read(name, self.cleaned_data, default)
            for name, (described, default) in self.declared.items()
        }

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        try:
            self.kind.check_settings(self.settings)
        except CodedError as refused:
            self.add_error(self._find_field(refused), ValidationError(str(refused), refused.code))
        return data

    def _find_field(self, refused: CodedError) -> str | None:
        for name in self.kind.fields_of_errors.get(refused.code, ()):
            if name in self.fields and (name != "others" or self.cleaned_data.get("others")):
                return name
        return None
