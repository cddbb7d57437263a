"""Pages of a collection's results that are shown as declared: form, answer, charts and tables."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.audit import record
from accounts.roles import Permission
from console.pages.collections.collection import collection_for, collection_page
from console.pages.collections.results import (
    begin_form,
    failed_arguments,
    job_of,
    request_by_form,
    version_for,
)
from console.pages.pictures import FORMS as PICTURE_FORMS
from console.pages.pictures import picture_in
from console.pages.study import may, person
from presentation.latex import table_latex
from presentation.plain import table_csv
from presentation.spreadsheets import frame_csv
from results.forms import ResultForm
from results.kinds import ResultKind, result_kinds
from results.models import Result
from results.shown import ShownResult
from retrieval.models import Collection

CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "tex": "application/x-tex",
    "json": "application/json",
}


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def result_page(request: HttpRequest, slug: str, kind: str, page: str = "result") -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse request."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.ANALYSE if is_post else Permission.VIEW)
    declared = find_kind(kind)
    form = ResultForm(declared, collection, request.POST if is_post else None)
    if is_post and request_by_form(form, person(request)):
        messages.success(request, _("Computing in the background; this page follows it."))
        return redirect(request.path)
    job = job_of(collection, declared.job)
    results = Result.objects.of(collection, declared.name)
    result = version_for(request, results)
    if not is_post:
        begin_form(form, result, failed_arguments(job))
    context = {
        "page": {"title": declared.title},
        "form": form if may(request, Permission.ANALYSE) else None,
        "problem": "" if result else form.problem_when_empty,
        "view": ShownResult(result) if result else None,
        "versions": results,
        "job": job,
    }
    status = 422 if form.errors else 200
    stage = f"collection-{page}"
    return collection_page(request, collection, "result", context, stage=stage, status=status)


def find_kind(name: str) -> ResultKind[Collection]:
    """The declared kind of that name; 404 if there is none that pages show."""
    kind = result_kinds().get(name)
    if kind is None or not kind.tables:
        raise Http404(f"There are no results called {name}.")
    return kind


def find_result(request: HttpRequest, collection: Collection, kind: str) -> Result:
    """The result of a kind that the address names, or the newest; 404 if there is none."""
    result = version_for(request, Result.objects.of(collection, find_kind(kind).name))
    if result is None:
        raise Http404(f"There is no result of {kind} yet.")
    return result


@require_safe
def picture(request: HttpRequest, slug: str, kind: str, chart: str, form: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. A chart of a result, as
    specification, data or file."""
    collection = collection_for(request, slug)
    charts = {one.name: one for one in ShownResult(find_result(request, collection, kind)).charts}
    if chart not in charts or form not in PICTURE_FORMS:
        raise Http404(f"There is no chart {chart}.{form}.")
    figure = charts[chart]
    return picture_in(
        form,
        request,
        name=f"{slug}-{chart}",
        draw=figure.draw,
        data=lambda: frame_csv(figure.frame),
    )


@require_safe
def table(request: HttpRequest, slug: str, kind: str, name: str, form: str) -> HttpResponse:
    """Access: those who may export. A table of a result, or all of them as JSON."""
    collection = collection_for(request, slug, Permission.EXPORT)
    if form not in CONTENT_TYPES:
        raise Http404(f"There is no table {name}.{form}.")
    result = find_result(request, collection, kind)
    content = "".join(_content(ShownResult(result), name, form))
    response = HttpResponse(content, content_type=CONTENT_TYPES[form])
    file_name = f"{slug}-{kind}-{result.number}-{name}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{file_name}"'
    if request.method == "GET":
        details = {"file": file_name}
        actor, team = person(request), collection.team
        record(team=team, actor=actor, action="export", subject=slug, details=details)
    return response


def _content(shown: ShownResult, name: str, form: str) -> Iterator[str]:
    if form == "json" and name == "all":
        yield json.dumps(shown.export(), indent=1)
    elif name not in shown.tables:
        raise Http404(f"There is no table {name}.")
    elif form == "json":
        yield json.dumps(shown.rows[name.replace("-", "_")], indent=1)
    else:
        yield (table_csv if form == "csv" else table_latex)(shown.tables[name])
