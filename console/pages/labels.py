"""Versioned sets of labels: making one, listing them, taking one away."""

from collections.abc import Callable, Iterator

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.agreement import rounds_of
from annotation.exceptions import StudyUnfit
from annotation.exports import label_set_rows, labels_csv, labels_json
from annotation.models import LabelSet
from annotation.pages.forms import LabelSetForm
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.study_jobs import LABEL, jobs_of, request_study_job
from console.access import person
from console.pages.downloads import record_export
from console.tables import page_of
from presentation.row_files import JSON_LINES, PARQUET, row_jsonl, row_parquet
from retrieval.exports.qrels import has_qrels, stream_label_qrels

FORMS: dict[str, tuple[str, Callable[[LabelSet], Iterator[str] | Iterator[bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", labels_csv),
    "json": ("application/json", labels_json),
    "jsonl": (JSON_LINES, lambda labels: row_jsonl(label_set_rows(labels))),
    "parquet": (PARQUET, lambda labels: row_parquet(label_set_rows(labels))),
    "txt": ("text/plain; charset=utf-8", stream_label_qrels),
}


@require_safe
def labels(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study = study_for(request, slug)
    sets = LabelSet.objects.of(study).select_related("question", "created_by")
    context = {
        "page": page_of(request, sets.order_by("-version")),
        "form": LabelSetForm(study, rounds_of(study)) if study.n_judgments else None,
        "job": jobs_of(study).of_kind(LABEL).first(),
        "has_qrels": has_qrels(study),
    }
    return study_page(request, study, "labels", context)


@require_POST
def label(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may analyse."""
    study = study_for(request, slug, Permission.ANALYSE)
    form = LabelSetForm(study, rounds_of(study), request.POST)
    if form.is_valid():
        names = [form.arguments["question"], form.arguments["method"]]
        request_study_job(
            study=study,
            kind=LABEL,
            names=names,
            arguments={"rule": form.arguments},
            requested_by=person(request),
        )
    else:
        text = _("No labels were made: choose a question and a method it allows.")
        messages.error(request, text, extra_tags="no_labels")
    return redirect("console:labels", slug)


@require_safe
def label_set(request: HttpRequest, slug: str, version: int, form: str) -> HttpResponseBase:
    """Access: those who may export."""
    study = study_for(request, slug, Permission.EXPORT)
    sets = LabelSet.objects.of(study).select_related("study", "question")
    row = get_object_or_404(sets, version=version)
    if form not in FORMS:
        raise Http404(f"There is no form {form}.")
    content_type, write = FORMS[form]
    try:
        response = StreamingHttpResponse(write(row), content_type=content_type)
    except StudyUnfit as unfit:
        messages.error(request, str(unfit), extra_tags=unfit.code)
        return redirect("console:labels", slug)
    what = "qrels" if form == "txt" else "labels"
    name = f"{study.slug}-{what}-{version}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    record_export(request, study, name)
    return response
