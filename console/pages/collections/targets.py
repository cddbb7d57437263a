"""Targets of a collection, drawn at random from strata of a predictor or of a column."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.roles import Permission
from console.collections.sample_view import sentence_of, strata_of
from console.collections.target_forms import TargetsForm
from console.pages.collections.collection import collection_for, collection_page
from console.pages.collections.results import failed_arguments
from console.pages.study import may, person
from presentation.spreadsheets import csv_parts
from results.models import Result
from retrieval.exceptions import RetrievalError
from retrieval.file_readings import subject_of
from retrieval.models import Collection, ResultType, SampledTarget
from retrieval.pools.target_samples import COLUMNS
from retrieval.result_kinds.targets import SAMPLE_TARGETS, SOURCES, request_sample
from work.models import Job

TARGETS = ResultType.TARGETS
MOST_SAMPLES = 20


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def targets(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may edit draw."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.EDIT if is_post else Permission.VIEW)
    sources = list(collection.files.usable().filter(kind__in=SOURCES).order_by("kind", "name"))
    form = TargetsForm(sources, *((request.POST, request.FILES) if is_post else ()))
    if is_post and form.is_valid():
        try:
            request_sample(
                collection=collection,
                files=form.chosen_files,
                rules=form.rules,
                actor=person(request),
            )
        except RetrievalError as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            return redirect("console:collection-targets", slug)
    return _page(request, collection, form)


def _page(request: HttpRequest, collection: Collection, form: TargetsForm) -> HttpResponse:
    versions = list(Result.objects.of(collection, TARGETS)[:MOST_SAMPLES])
    number = request.GET.get("sample", "")
    requested = next((one for one in versions if str(one.number) == number), None)
    version = requested or (versions[0] if versions else None)
    job = Job.objects.about(subject_of(collection)).of_kind(SAMPLE_TARGETS).first()
    if not form.is_bound and (arguments := failed_arguments(job)):
        form.begin_with(arguments)
    context = {
        "form": form if may(request, Permission.EDIT) else None,
        "versions": versions,
        "version": version,
        "answer": sentence_of(version) if version else "",
        "strata": strata_of(version) if version else [],
        "notes": version.notes if version else [],
        "job": job,
    }
    status = 422 if form.errors else 200
    return collection_page(request, collection, "targets", context, status=status)


@require_safe
def sample_file(request: HttpRequest, slug: str, number: int) -> StreamingHttpResponse:
    """Access: those who may export. The targets, as pool_candidates reads them."""
    collection = collection_for(request, slug, Permission.EXPORT)
    version = get_object_or_404(Result.objects.of(collection, TARGETS), number=number)
    rows = SampledTarget.objects.filter(version=version)
    values = rows.values_list("topic", "docno", "stratum", "value", "inclusion")
    response = StreamingHttpResponse(csv_parts(COLUMNS, values), content_type="text/csv")
    response["Content-Disposition"] = f'attachment; filename="{slug}-targets-{number}.csv"'
    return response
