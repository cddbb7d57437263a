from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.agreement import rounds_of
from annotation.exceptions import StudyUnfit
from annotation.exports import label_set_rows, labels_csv, labels_json
from annotation.label_sets import METHODS_AT_LEVEL
from annotation.models import LabelSet, Question, Study
from annotation.pages.jobs import record_export
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.study_jobs import LABEL, jobs_of, request_study_job
from console.access import person
from console.glossary import code_name
from console.registrations import load_registrations
from console.tables import page_of
from presentation.row_files import JSON_LINES, PARQUET, row_jsonl, row_parquet


@require_safe
def labels(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug)
    sets = LabelSet.objects.of(study).select_related("question", "created_by")
    context = {
        "page": page_of(request, sets.order_by("-version")),
        "form": LabelSetForm(study, rounds_of(study)) if study.n_judgments else None,
        "job": jobs_of(study).of_kind(LABEL).first(),
        "has_qrels": bool((qrels := label_file("txt")) and qrels.is_offered(study)),
    }
    return study_page(request, study, "annotation/labels", context)


@require_POST
def label(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug, Permission.ANALYSE)
    form = LabelSetForm(study, rounds_of(study), request.POST)
    if form.is_valid():
        request_study_job(
            study=study,
            kind=LABEL,
            names=[form.arguments["question"], form.arguments["method"]],
            arguments={"rule": form.arguments},
            requested_by=person(request),
        )
    else:
        messages.error(
            request,
            _("No labels were made: choose a question and a method it allows."),
            extra_tags="no_labels",
        )
    return redirect("console:labels", slug)


@require_safe
def label_set(request: HttpRequest, slug: str, version: int, form: str) -> HttpResponseBase:
    study = study_for(request, slug, Permission.EXPORT)
    sets = LabelSet.objects.of(study).select_related("study", "question")
    row = get_object_or_404(sets, version=version)
    if (file := label_file(form)) is None:
        raise Http404(f"There is no form {form}.")
    try:
        response = StreamingHttpResponse(file.write(row), content_type=file.content_type)
    except StudyUnfit as unfit:
        messages.error(request, str(unfit), extra_tags=unfit.code)
        return redirect("console:labels", slug)
    name = f"{study.slug}-{file.word}-{version}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    record_export(request, study, name)
    return response


@dataclass(frozen=True)
class LabelFile:
    content_type: str
    write: Callable[[LabelSet], Iterator[str] | Iterator[bytes]]
    word: str = "labels"
    is_offered: Callable[[Study], bool] = lambda study: True


_files = {
    "csv": LabelFile("text/csv; charset=utf-8", labels_csv),
    "json": LabelFile("application/json", labels_json),
    "jsonl": LabelFile(JSON_LINES, lambda labels: row_jsonl(label_set_rows(labels))),
    "parquet": LabelFile(PARQUET, lambda labels: row_parquet(label_set_rows(labels))),
}


def register_label_file(form: str, file: LabelFile) -> None:
    _files[form] = file


def label_file(form: str) -> LabelFile | None:
    load_registrations()
    return _files.get(form)


class LabelSetForm(forms.Form):
    rule = forms.ChoiceField(
        label=gettext_lazy("Question and method"),
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    round = forms.TypedChoiceField(
        label=gettext_lazy("Round"), coerce=int, widget=forms.Select(attrs={"class": "form-select"})
    )
    with_flagged = forms.BooleanField(
        label=gettext_lazy("Count flagged submissions"),
        required=False,
        initial=True,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )
    with_adjudications = forms.BooleanField(
        label=gettext_lazy("Decisions replace judgments"),
        required=False,
        initial=True,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )

    def __init__(self, study: Study, rounds: list[int], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"label_suffix": ""})
        self.questions = {question.name: question for question in study.questions.all()}
        self.fields["rule"].choices = [  # type: ignore[attr-defined]
            (question.name, _methods(question)) for question in self.questions.values()
        ]
        self.fields["round"].choices = [(n, n) for n in rounds or [1]]  # type: ignore[attr-defined]

    @property
    def arguments(self) -> dict[str, Any]:
        data = self.cleaned_data
        method, _, question = data["rule"].partition(":")
        rest = {name: data[name] for name in ("round", "with_flagged", "with_adjudications")}
        return {"question": question, "method": method, **rest}


def _methods(question: Question) -> list[tuple[str, str]]:
    return [
        (f"{method}:{question.name}", f"{question.name}: {code_name(method)}")
        for method in METHODS_AT_LEVEL[Question.Level(question.level)]
    ]
