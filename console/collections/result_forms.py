"""What comparing qrels, estimating reuse and auditing ask for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.collections.forms import SeveralFilesField
from retrieval.audit.claims import read_claims
from retrieval.audit.records import Claims
from retrieval.models import Collection, CollectionFile


class AuditForm(forms.Form):
    """Files to audit: sent for it, and those that are here."""

    uploads = SeveralFilesField(
        label=gettext_lazy("Files"),
        required=False,
        help_text=format_lazy(
            gettext_lazy(
                "All files of a folder at once, up to {n}: Mechanical Turk batches, CSV files of "
                "alternatives and dialogue starts, qrels, runs. They are read, and not kept."
            ),
            n=settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        ),
        allow_empty_file=True,
    )
    stored = forms.MultipleChoiceField(
        label=gettext_lazy("Files of this collection"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    claims = forms.CharField(
        label=gettext_lazy("Published numbers (optional)"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "What a paper says of a file of judged pools, a line each, as "
            "batch.csv:mean_relevant=3.5, with its decimals as printed. Names: assessed (topics), "
            "with_relevant (topics with a relevant document), mean_relevant (relevant documents a "
            "topic), judged_per_topic, prevalence."
        ),
    )

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        rows = collection.files.usable().defer("faults").order_by("kind", "name")
        self.stored_files = {str(row.pk): row for row in rows}
        stored = self.fields["stored"]
        assert isinstance(stored, forms.ChoiceField)
        stored.choices = [(key, row.name) for key, row in self.stored_files.items()]

    def clean_claims(self) -> dict[str, Claims]:
        """By file; every line that is no claim is refused by its number."""
        claims: dict[str, dict[str, str]] = {}
        for number, line in enumerate(self.cleaned_data["claims"].splitlines(), 1):
            try:
                for file, numbers in read_claims([line] if line.strip() else []).items():
                    claims.setdefault(file, {}).update(numbers)
            except ValueError as error:
                text = _("Line {number}: {problem}.").format(number=number, problem=error)
                self.add_error("claims", ValidationError(text, code="not_a_claim"))
        return dict(claims)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        stored = (self.stored_files[key].file_name for key in data.get("stored", []))
        names = {*stored, *(file.name for file in data.get("uploads") or [])}
        if strangers := [name for name in data.get("claims") or {} if name not in names]:
            self.add_error(
                "claims",
                ValidationError(
                    _("{name} is none of the files to audit.").format(name=strangers[0]),
                    code="unknown_file",
                ),
            )
        return data

    @property
    def chosen_files(self) -> list[CollectionFile]:
        """The collection's own files that were chosen."""
        return [self.stored_files[key] for key in self.cleaned_data["stored"]]
