"""What the pages of a collection's computed results share: the version shown, and its job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest

from accounts.models import User
from results.computing import request_result
from results.forms import ResultForm
from results.models import Result, ResultQuerySet
from retrieval.file_readings import subject_of
from retrieval.models import Collection, CollectionFile, ResultType
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


def request_by_form(form: ResultForm, actor: User) -> bool:
    """Request the result that a form asks for; whether it was requested, or has errors."""
    if not form.is_valid():
        return False
    kind, settings = form.kind, form.settings
    try:
        request_result(
            kind=kind, subject=form.subject, chosen=form.chosen, settings=settings, actor=actor
        )
    except kind.refusals as refused:
        form.add_error(None, ValidationError(str(refused), code=getattr(refused, "code", "")))
    return not form.errors


def begin_form(form: ResultForm, result: Result | None, failed: Mapping[str, Any]) -> None:
    """Offer what was chosen last; of a first result, the qrels that were evaluated."""
    if failed:
        form.begin_with(failed)
    elif result is not None:
        files = result.files.values_list("file", flat=True)
        form.begin_with_result(result, [key for key in files if key is not None])
    elif evaluated := Result.objects.of(form.subject, ResultType.EVALUATION).first():
        qrels = evaluated.files.filter(kind=CollectionFile.Kind.QRELS)
        form.prefer("qrels", list(qrels.values_list("file", flat=True)))
