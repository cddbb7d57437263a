"""Jobs of a study, and the files that wait for them: its tables, its dataset, and its labels."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.access import record_in
from annotation.agreement import rounds_of
from annotation.dataset import LICENSES, UNKNOWN_LICENSE, dataset_zip
from annotation.exceptions import LicenseUnknown, StudyUnfit, require
from annotation.exports import label_set_rows, labels_csv, labels_json
from annotation.label_sets import METHODS_AT_LEVEL
from annotation.models import LabelSet, Picture, Question, Study
from annotation.pages.stages import (
    study_for,
    study_page,
)
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import (
    LABEL,
    jobs_of,
    request_study_job,
)
from annotation.study_files import (
    DATASET,
    Download,
    file_names,
    is_of_judgments,
    study_download,
)
from console.access import (
    may_of,
    page_permissions,
    person,
)
from console.glossary import code_name
from console.pages.pictures import as_picture
from console.pages.progress import progress_page
from console.registrations import job_access, load_registrations, needed_to_control
from console.tables import page_of
from presentation.row_files import JSON_LINES, PARQUET, row_jsonl, row_parquet
from results.kinds import result_kind
from work.models import Job
from work.tasks import resume_job, stop_job


def job_of(request: HttpRequest, study: Study, page: str) -> Job | None:
    """The job that computes the result of that page; None where the result is there.

    A job that failed on what there is now is displayed, and not requested again by itself.
    """
    kind = find_study_kind(page)
    if kind.is_stored(study):
        return None
    same = {"arguments__kind": kind.name, "basis": kind.fingerprint(study)}
    last = jobs_of(study).of_kind(kind.job).filter(**same).first()
    if last:
        return last
    job = kind.request(study, person(request))
    return None if not job.is_unfinished and kind.is_stored(study) else job


def job_page(job: Job) -> str:
    kind = job.arguments.get("kind")
    page = getattr(result_kind(kind), "page", "") if kind else ""
    return job_access(job.kind).page or page or "study"


def controlled_job(
    request: HttpRequest, slug: str, job_id: int, *, resumes: bool = False
) -> tuple[Study, Job]:
    study = study_for(request, slug)
    job = get_object_or_404(jobs_of(study), pk=job_id)
    for permission in needed_to_control(job, resumes=resumes):
        study = study_for(request, slug, permission)
    return study, job


@require_safe
@never_cache
def job(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: whoever has a role in the study. Polled by the page; reloads it at the end."""
    study = study_for(request, slug)
    row = get_object_or_404(jobs_of(study), pk=job_id)
    return progress_page(
        request,
        "console/_job.html",
        {"job": row, "study": study, "may": may_of(request)},
        is_over=not row.is_unfinished,
    )


@require_POST
def stop(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: those who may request such a job."""
    study, current = controlled_job(request, slug, job_id)
    stop_job(job=current)
    return redirect(reverse(f"console:{job_page(current)}", args=[study.slug]))


@require_POST
def resume(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: those who may request such a job; one that asks a judge, those who may spend."""
    study, current = controlled_job(request, slug, job_id, resumes=True)
    resume_job(job=current)
    return redirect(reverse(f"console:{job_page(current)}", args=[study.slug]))


@require_safe
def downloads(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug, Permission.EXPORT)
    tables: dict[str, list[tuple[str, str, Download, bool]]] = {}
    for name in file_names_for(request, study):
        file = study_download(name)
        base, _, form = name.partition(".")
        is_there = bool(study.n_judgments) or not is_of_judgments(name)
        is_there = is_there and (not file.result or find_study_kind(file.result).is_stored(study))
        tables.setdefault(base, []).append((name, form, file, is_there))
    dataset = tables.pop("dataset", [])
    return study_page(
        request,
        study,
        "annotation/downloads",
        {"tables": list(tables.items()), "dataset": dataset, "licenses": LICENSES},
    )


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> HttpResponseBase:
    study = study_for(request, slug, Permission.EXPORT)
    require(name in file_names_for(request, study), Http404(f"There is no download {name}."))
    file = study_download(name)
    if file.result and (job := job_of(request, study, file.result)):
        return _not_computed(job)
    try:
        return streamed(request, study, name)
    except (StudyUnfit, LicenseUnknown) as unfit:
        messages.error(request, str(unfit), extra_tags=unfit.code)
        return redirect("console:downloads", slug)


def streamed(request: HttpRequest, study: Study, name: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(
        _content(request, study, name), content_type=study_download(name).content_type
    )
    response["Content-Disposition"] = f'attachment; filename="{study.slug}-{name}"'
    record_export(request, study, name)
    return response


def _content(request: HttpRequest, study: Study, name: str) -> Iterator[str] | Iterator[bytes]:
    if name == DATASET:
        return dataset_zip(study, request.GET.get("license") or UNKNOWN_LICENSE)
    return study_download(name).write(study)


def _not_computed(job: Job) -> HttpResponse:
    state: dict[str, Any] = {"state": job.state, "detail": job.message}
    if not job.is_unfinished:
        return JsonResponse(state, status=HTTPStatus.INTERNAL_SERVER_ERROR)
    state |= {"detail": "Being computed; fetch it again in a moment."}
    state |= {"n_done": job.n_done, "n_total": job.n_total}
    return JsonResponse(state, status=HTTPStatus.ACCEPTED, headers={"Retry-After": "2"})


def file_names_for(request: HttpRequest, study: Study) -> list[str]:
    permissions = page_permissions(request)
    return [name for name in file_names(study) if study_download(name).permission in permissions]


def record_export(request: HttpRequest, study: Study, name: str) -> None:
    if request.method == "GET":
        record_in(study, actor=person(request), action="export", details={"file": name})


@login_not_required
@require_safe
@cache_control(public=True, max_age=31_536_000, immutable=True)
def picture(request: HttpRequest, sha256: str) -> HttpResponse:
    """Access: anyone who knows the content's hash, since workers' frames have no session."""
    row = get_object_or_404(Picture, sha256=sha256)
    response = as_picture(row.media_type, bytes(row.content))
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


@require_safe
def labels(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug)
    sets = LabelSet.objects.of(study).select_related("question", "created_by")
    return study_page(
        request,
        study,
        "annotation/labels",
        {
            "page": page_of(request, sets.order_by("-version")),
            "form": LabelSetForm(study, rounds_of(study)) if study.n_judgments else None,
            "job": jobs_of(study).of_kind(LABEL).first(),
            "has_qrels": bool((qrels := label_file("txt")) and qrels.is_offered(study)),
        },
    )


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
    row = get_object_or_404(
        LabelSet.objects.of(study).select_related("study", "question"), version=version
    )
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
