"""Collecting: what came back, and what could not be read."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.access import record_in
from annotation.models import Study
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.study_jobs import ANSWER_BY_CROWD, COLLECT, jobs_of, request_study_job
from console.access import (
    may,
    person,
)
from console.tables import page_of
from hits.models import Batch
from hits.pages.progress import progress_of
from hits.progress import is_offered_here, unreadable_assignments
from hits.recruited_batches import batches_without_study


@require_safe
def answers(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study = study_for(request, slug)
    unreadable = unreadable_assignments(study).select_related("worker", "hit__item")
    page = page_of(request, unreadable)
    _record_view(request, study, len(page))
    batches = Batch.objects.of(study).select_related("connection").progressing()
    context = {
        "progress": progress_of(study),
        "page": page,
        "batches": batches,
        "is_offered_here": is_offered_here(batches),
        "undrafted": batches_without_study(batches),
        "job": jobs_of(study).of_kind(COLLECT, ANSWER_BY_CROWD).first(),
    }
    return study_page(request, study, "hits/answers", context)


def _record_view(request: HttpRequest, study: Study, n_workers: int) -> None:
    """Say in the team's audit log who was shown which workers did something."""
    if n_workers and may(request, Permission.VIEW_WORKERS) and request.method == "GET":
        details = {"page": "answers", "n_workers": n_workers}
        record_in(study, actor=person(request), action="worker.view", details=details)


@require_POST
def collect(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit."""
    study = study_for(request, slug, Permission.EDIT)
    request_study_job(study=study, kind=COLLECT, requested_by=person(request))
    messages.success(request, _("Collecting in the background; this page follows it."))
    return redirect("console:answers", slug)
