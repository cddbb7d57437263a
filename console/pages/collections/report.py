"""The report of a collection: what may be concluded, on a page and as a file."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.audit import record
from accounts.roles import Permission
from console.collections.reports import WRITE_REPORT, read_sections, request_report
from console.pages.collections.collection import collection_for, collection_page
from console.pages.collections.results import job_of, version_for
from console.pages.study import may, person
from results.models import Result
from retrieval.models import ResultType

REPORT = ResultType.REPORT
MOST_REPORTS = 20


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def report(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse write."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.ANALYSE if is_post else Permission.VIEW)
    if is_post:
        request_report(collection=collection, actor=person(request))
        return redirect("console:collection-report", slug)
    versions = Result.objects.of(collection, REPORT)[:MOST_REPORTS]
    version = version_for(request, versions)
    results = (
        Result.objects.filter(collection=collection)
        .exclude(kind=REPORT)
        .order_by("-created_at")
        .first()
    )
    context = {
        "version": version,
        "versions": versions,
        "sections": read_sections(version) if version else [],
        "is_stale": version and results and results.created_at > version.created_at,
        "may_write": may(request, Permission.ANALYSE),
        "job": job_of(collection, WRITE_REPORT),
    }
    return collection_page(request, collection, "report", context)


@require_safe
def report_file(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Access: those who may export. One page that needs no network."""
    collection = collection_for(request, slug, Permission.EXPORT)
    version = get_object_or_404(Result.objects.of(collection, REPORT), number=number)
    sections = read_sections(version)
    if not sections:
        raise Http404("The report has no sentences.")
    context = {"collection": collection, "version": version, "sections": sections}
    page = render_to_string("console/collections/report_file.html", context)
    response = HttpResponse(page, content_type="text/html; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slug}-report-{number}.html"'
    if request.method == "GET":
        name = f"report-{number}.html"
        record(
            team=collection.team,
            actor=person(request),
            action="export",
            subject=slug,
            details={"file": name},
        )
    return response
