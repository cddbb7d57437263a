from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

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
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.access import record_in
from annotation.dataset import LICENSES, UNKNOWN_LICENSE, dataset_zip
from annotation.exceptions import LicenseUnknown, StudyUnfit
from annotation.models import Picture, Study
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.study_facts import is_stored, loaded_fingerprint
from annotation.study_files import (
    DATASET,
    Download,
    file_names,
    is_of_judgments,
    study_download,
)
from annotation.study_jobs import RESULT, jobs_of, request_study_job
from console.access import (
    may_of,
    page_permissions,
    person,
)
from console.pages.pictures import as_picture
from console.registrations import job_access, needed_to_control
from work.models import Job
from work.tasks import resume_job, stop_job


def job_of(request: HttpRequest, study: Study, name: str) -> Job | None:
    """The job that makes the result of that name; None where the result is there.

    A job that failed on what there is now is displayed, and not requested again by itself.
    """
    if is_stored(study, name):
        return None
    basis = loaded_fingerprint(study, name)
    last = jobs_of(study).of_kind(RESULT).filter(arguments__names=[name], basis=basis).first()
    if last:
        return last
    job = request_study_job(
        study=study, kind=RESULT, names=[name], requested_by=person(request), basis=basis
    )
    is_there = not job.is_unfinished and is_stored(study, name)
    return None if is_there else job


def page_of(job: Job) -> str:
    names = job.arguments.get("names")
    return job_access(job.kind).page or (str(names[0]) if names else "study")


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
    if not row.is_unfinished and request.headers.get("HX-Request"):
        return HttpResponse(headers={"HX-Refresh": "true"})
    context = {"job": row, "study": study, "may": may_of(request)}
    return render(request, "console/_job.html", context)


@require_POST
def stop(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: those who may request such a job."""
    study, current = controlled_job(request, slug, job_id)
    stop_job(job=current)
    return redirect(reverse(f"console:{page_of(current)}", args=[study.slug]))


@require_POST
def resume(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: those who may request such a job; one that asks a judge, those who may spend."""
    study, current = controlled_job(request, slug, job_id, resumes=True)
    resume_job(job=current)
    return redirect(reverse(f"console:{page_of(current)}", args=[study.slug]))


@require_safe
def downloads(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug, Permission.EXPORT)
    tables: dict[str, list[tuple[str, str, Download, bool]]] = {}
    for name in file_names_for(request, study):
        file = study_download(name)
        base, _, form = name.partition(".")
        is_there = bool(study.n_judgments) or not is_of_judgments(name)
        is_there = is_there and (not file.result or is_stored(study, file.result))
        tables.setdefault(base, []).append((name, form, file, is_there))
    dataset = tables.pop("dataset", [])
    context = {"tables": list(tables.items()), "dataset": dataset, "licenses": LICENSES}
    return study_page(request, study, "annotation/downloads", context)


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> HttpResponseBase:
    study = study_for(request, slug, Permission.EXPORT)
    if name not in file_names_for(request, study):
        raise Http404(f"There is no download {name}.")
    file = study_download(name)
    if file.result and (job := job_of(request, study, file.result)):
        return _not_computed(job)
    try:
        return streamed(request, study, name)
    except (StudyUnfit, LicenseUnknown) as unfit:
        messages.error(request, str(unfit), extra_tags=unfit.code)
        return redirect("console:downloads", slug)


def streamed(request: HttpRequest, study: Study, name: str) -> StreamingHttpResponse:
    content = _content(request, study, name)
    response = StreamingHttpResponse(content, content_type=study_download(name).content_type)
    response["Content-Disposition"] = f'attachment; filename="{study.slug}-{name}"'
    record_export(request, study, name)
    return response


def _content(request: HttpRequest, study: Study, name: str) -> Iterator[str] | Iterator[bytes]:
    if name == DATASET:
        return dataset_zip(study, request.GET.get("license") or UNKNOWN_LICENSE)
    return study_download(name).write(study)


def _not_computed(job: Job) -> HttpResponse:
    """What a program reads until the file is there: how far it is, or why it will not come."""
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
