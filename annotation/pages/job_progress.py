"""Background jobs on a page: how far they are, stopping them, and resuming them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from annotation.models import Study
from annotation.pages.study import study_for
from annotation.study_jobs import RESULT, jobs_of, request_study_job
from annotation.study_results import (
    is_stored,
    loaded_fingerprint,
)
from console.access import (
    may_of,
    person,
)
from console.job_permissions import job_access, needed_to_control
from work.models import Job
from work.request import resume_job, stop_job


def job_of(request: HttpRequest, study: Study, name: str) -> Job | None:
    """The job that makes the result of that name; None where the result is there.

    A job that failed on what there is now is displayed, and not requested again by itself.
    """
    if is_stored(study, name):
        return None
    basis = loaded_fingerprint(study, name)
    jobs = jobs_of(study).of_kind(RESULT)
    last = jobs.filter(arguments__names=[name], basis=basis).first()
    if last:
        return last
    job = request_study_job(
        study=study, kind=RESULT, names=[name], requested_by=person(request), basis=basis
    )
    is_there = not job.is_unfinished and is_stored(study, name)
    return None if is_there else job


def page_of(job: Job) -> str:
    """The name of the page that shows the job; of one that has none, the study's first."""
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
