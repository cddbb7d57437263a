"""Audits of collections that were made anywhere: their files sent, and what is wrong with them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.roles import Permission
from console.access import may, person
from results.models import Result
from results.pages import choose_version, find_job
from results.shown import ShownResult
from retrieval.answers.audit import claims_table, list_files
from retrieval.audit.claims import read_claims
from retrieval.audit.records import Claims
from retrieval.exceptions import RetrievalError
from retrieval.models import Collection, CollectionFile, ResultType
from retrieval.pages.collection import collection_for, collection_page
from retrieval.pages.files import SeveralFilesField
from retrieval.result_kinds.audit import AUDIT, request_audit_of_uploads


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def audit(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse request."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.ANALYSE if is_post else Permission.VIEW)
    form = AuditForm(collection, *((request.POST, request.FILES) if is_post else ()))
    if is_post and form.is_valid() and _request(request, collection, form):
        messages.success(request, _("Auditing in the background; this page follows it."))
        return redirect("console:collection-audit", slug)
    versions = Result.objects.of(collection, ResultType.AUDIT)
    version = choose_version(request, versions)
    context = {
        "form": form if may(request, Permission.ANALYSE) else None,
        "view": ShownResult(version) if version else None,
        "files": list_files(version) if version else [],
        "claims": claims_table(version) if version else None,
        "versions": versions,
        "job": find_job(collection, AUDIT),
    }
    status = 422 if form.errors else 200
    return collection_page(request, collection, "audit", context, status=status)


def _request(request: HttpRequest, collection: Collection, form: AuditForm) -> bool:
    """Keep the files until they are audited; whether none was refused."""
    data = form.cleaned_data
    try:
        request_audit_of_uploads(
            collection=collection,
            uploads=data["uploads"],
            files=form.chosen_files,
            claims=data["claims"],
            actor=person(request),
        )
    except RetrievalError as refused:
        form.add_error("uploads", ValidationError(str(refused), code=refused.code))
        return False
    return True


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
