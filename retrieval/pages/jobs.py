"""Background jobs on a collection: how far they are, stopping them, and resuming them."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.access import may_of
from console.job_permissions import needed_to_control
from retrieval.deletion import DELETE_COLLECTION
from retrieval.file_readings import subject_of
from retrieval.models import Collection
from retrieval.pages.collection import collection_for
from retrieval.pool_studies import STUDY_OF_POOL
from retrieval.result_kinds.audit import AUDIT
from retrieval.result_kinds.comparison import COMPARE
from retrieval.result_kinds.evaluation import EVALUATE
from retrieval.result_kinds.machine import COMPARE_MACHINE
from retrieval.result_kinds.pool import MAKE_POOL
from retrieval.result_kinds.report import WRITE_REPORT
from retrieval.result_kinds.reuse import ESTIMATE_REUSE
from retrieval.result_kinds.targets import SAMPLE_TARGETS
from retrieval.stored_vectors import MAKE_VECTORS
from retrieval.study_qrels import STUDY_QRELS
from work.models import Job
from work.request import resume_job, stop_job

# The page that shows a job; others are on the page of files.
PAGES = {
    EVALUATE: "collection-evaluation",
    **dict.fromkeys((MAKE_POOL, STUDY_OF_POOL, MAKE_VECTORS), "collection-pools"),
    SAMPLE_TARGETS: "collection-targets",
    WRITE_REPORT: "collection-report",
    STUDY_QRELS: "collection-judgments",
    COMPARE: "collection-trust",
    COMPARE_MACHINE: "collection-machine",
    ESTIMATE_REUSE: "collection-reuse",
    AUDIT: "collection-audit",
    DELETE_COLLECTION: "collection-delete",
}


@require_safe
@never_cache
def job(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. Polled by the page; reloads it at
    the end."""
    try:
        collection = collection_for(request, slug)
    except Http404:
        if not request.headers.get("HX-Request"):
            raise
        # The job deleted it, and the page that follows the job goes on to the others; so it does
        # where the collection is somebody else's, or the answer would say that there is one.
        return HttpResponse(headers={"HX-Redirect": reverse("console:collections")})
    row = get_object_or_404(Job.objects.about(subject_of(collection)), pk=job_id)
    if not row.is_unfinished and request.headers.get("HX-Request"):
        return HttpResponse(headers={"HX-Refresh": "true"})
    context = {"job": row, "collection": collection, "may": may_of(request)}
    return render(request, "retrieval/_job.html", context)


def controlled_job(
    request: HttpRequest, slug: str, job_id: int, *, resumes: bool = False
) -> tuple[Collection, Job]:
    """A job of the collection, for those who may control it."""
    collection = collection_for(request, slug)
    row = get_object_or_404(Job.objects.about(subject_of(collection)), pk=job_id)
    for permission in needed_to_control(row, resumes=resumes):
        collection = collection_for(request, slug, permission)
    return collection, row


@require_POST
def stop(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: those who may request such a job."""
    _collection, row = controlled_job(request, slug, job_id)
    stop_job(job=row)
    return redirect(f"console:{PAGES.get(row.kind, 'collection-files')}", slug)


@require_POST
def resume(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: those who may request such a job."""
    _collection, row = controlled_job(request, slug, job_id, resumes=True)
    resume_job(job=row)
    return redirect(f"console:{PAGES.get(row.kind, 'collection-files')}", slug)
