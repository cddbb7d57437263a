"""What the pages of a collection's computed results share: the version shown, and its job."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest

from results.models import Result, ResultQuerySet
from retrieval.file_readings import subject_of
from retrieval.models import Collection
from work.models import Job


def version_for(request: HttpRequest, versions: ResultQuerySet) -> Result | None:
    """The version that the address names, or the newest; 404 where there is none of that number."""
    number = request.GET.get("version")
    if number is None:
        return next(iter(versions), None)
    version = next((one for one in versions if str(one.number) == number), None)
    if version is None:
        raise Http404(f"There is no result {number}.")
    return version


def failed_arguments(job: Job | None) -> dict[str, Any]:
    """What a job that failed was asked for, for its form to offer again; empty of any other."""
    return dict(job.arguments) if job is not None and job.state == Job.State.FAILED else {}


def job_of(collection: Collection, kind: str) -> Job | None:
    """The last job of that kind, unless it is done: its result is displayed then."""
    job = Job.objects.about(subject_of(collection)).of_kind(kind).first()
    return None if job is None or job.state == Job.State.DONE else job
