"""Reports on a collection: requested, shown, downloaded."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.roles import Permission
from console.access import may, person
from results.models import Result
from results.pages import choose_version, find_job, name_download
from retrieval.models import ResultType
from retrieval.pages.collection import collection_for, collection_page
from retrieval.result_kinds.report import WRITE_REPORT, read_sections, request_report

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
    version = choose_version(request, versions)
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
        "job": find_job(collection, WRITE_REPORT),
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
    page = render_to_string("retrieval/report_file.html", context)
    response = HttpResponse(page, content_type="text/html; charset=utf-8")
    name = f"report-{number}.html"
    name_download(request, response, collection, f"{slug}-{name}", file=name)
    return response
