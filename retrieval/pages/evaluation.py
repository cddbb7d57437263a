"""Runs evaluated: requested, shown, downloaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.roles import Permission
from console.access import may, person
from presentation.latex import table_latex
from presentation.plain import table_csv
from presentation.row_files import FORMS as ROW_FORMS
from results.computing import sign_result
from results.forms import ResultForm
from results.models import Result
from results.pages import (
    begin_form,
    choose_version,
    draw_chart,
    failed_arguments,
    find_job,
    name_download,
    request_by_form,
)
from retrieval.answers.evaluation import (
    TOPICS,
    EvaluationView,
    means_table,
    pairs_table,
    weighted_table,
)
from retrieval.evaluation_rows import StoredEvaluation
from retrieval.models import ResultType
from retrieval.pages.collection import collection_for, collection_page
from retrieval.result_kinds.evaluation import EVALUATE, EvaluationKind

KIND = ResultType.EVALUATION
JSON, TEX, CSV = "application/json", "application/x-tex", "text/csv; charset=utf-8"


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def evaluation(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse request."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.ANALYSE if is_post else Permission.VIEW)
    form = ResultForm(EvaluationKind(), collection, request.POST if is_post else None)
    if is_post and request_by_form(form, person(request)):
        messages.success(request, _("Evaluating in the background; this page follows it."))
        return redirect("console:collection-evaluation", slug)
    job = find_job(collection, EVALUATE)
    versions = Result.objects.of(collection, KIND)
    version = choose_version(request, versions)
    if not is_post:
        begin_form(form, version, failed_arguments(job))
    context = {
        "form": form if may(request, Permission.ANALYSE) else None,
        "problem": "" if version else form.problem_when_empty,
        "view": EvaluationView(StoredEvaluation(version), request.GET) if version else None,
        "versions": versions,
        "job": job,
    }
    status = 422 if form.errors else 200
    return collection_page(request, collection, "evaluation", context, status=status)


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. The chart of two runs, topic by
    topic, as specification, data or file."""
    collection = collection_for(request, slug)
    version = choose_version(request, Result.objects.of(collection, KIND))
    view = EvaluationView(StoredEvaluation(version), request.GET) if version else None
    figure = view.chart if view and chart == TOPICS else None
    return draw_chart(request, figure, name=f"{slug}-{chart}", form=form)


def _topics(form: str) -> Callable[[StoredEvaluation], Iterator[str] | Iterator[bytes]]:
    write = ROW_FORMS[form][1]
    return lambda rows: write(rows.topic_rows())


def _json(rows: StoredEvaluation) -> Iterator[str]:
    identity = {"version": rows.version.number, "signature": sign_result(rows.version)}
    yield json.dumps(rows.record() | identity, indent=1)


DOWNLOADS: dict[str, tuple[str, Callable[[StoredEvaluation], Any]]] = {
    "evaluation.json": (JSON, _json),
    "means.csv": (CSV, lambda rows: [table_csv(means_table(rows))]),
    "means.tex": (TEX, lambda rows: [table_latex(means_table(rows))]),
    "comparisons.csv": (CSV, lambda rows: [table_csv(pairs_table(rows, rows.measures))]),
    "comparisons.tex": (TEX, lambda rows: [table_latex(pairs_table(rows, rows.measures))]),
    "weighted.csv": (CSV, lambda rows: [table_csv(weighted_table(rows, rows.measures))]),
    "weighted.tex": (TEX, lambda rows: [table_latex(weighted_table(rows, rows.measures))]),
    **{f"topics.{form}": (kind, _topics(form)) for form, (kind, _write) in ROW_FORMS.items()},
}


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> StreamingHttpResponse:
    """Access: those who may export."""
    collection = collection_for(request, slug, Permission.EXPORT)
    version = choose_version(request, Result.objects.of(collection, KIND))
    rows = StoredEvaluation(version) if version else None
    is_weighted = name.startswith("weighted.")
    if (
        version is None
        or rows is None
        or name not in DOWNLOADS
        or (is_weighted and not rows.weights)
    ):
        raise Http404(f"There is no download {name}.")
    content_type, write = DOWNLOADS[name]
    response = StreamingHttpResponse(write(rows), content_type=content_type)
    file = f"{slug}-{version.number}-{name}"
    name_download(request, response, collection, file, file=name, version=version.number)
    return response
