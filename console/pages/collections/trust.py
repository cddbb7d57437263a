"""How far to trust an evaluation: runs under several qrels, and each left out of its pool."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.audit import record
from accounts.models import User
from accounts.roles import Permission
from console.collections.evaluation_form import EvaluationForm
from console.collections.result_forms import ComparisonForm, MachineForm, ReuseForm
from console.pages.collections.collection import collection_for, collection_page
from console.pages.collections.results import failed_arguments, job_of, version_for
from console.pages.pictures import FORMS as PICTURE_FORMS
from console.pages.pictures import picture_in
from console.pages.study import may, person
from presentation.latex import table_latex
from presentation.plain import table_csv
from presentation.spreadsheets import frame_csv
from results.models import Result
from results.shown import ShownResult
from retrieval.exceptions import RetrievalError
from retrieval.models import Collection, ResultType
from retrieval.result_kinds.comparison import COMPARE, request_comparison
from retrieval.result_kinds.machine import COMPARE_MACHINE, request_machine
from retrieval.result_kinds.reuse import ESTIMATE_REUSE, request_reuse

Kind = ResultType
CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "tex": "application/x-tex",
    "json": "application/json",
}


@dataclass(frozen=True)
class ResultPage:
    """A page of results: its form, what it requests, how it is shown."""

    name: str
    kind: str
    job_kind: str
    title: str | Promise
    form: type[EvaluationForm]
    request: Callable[[Collection, EvaluationForm, User], object]

    @property
    def picture(self) -> str:
        """The name of the address of its charts."""
        return f"console:{self.name}-picture"


def _request_comparison(collection: Collection, form: EvaluationForm, actor: User) -> object:
    assert isinstance(form, ComparisonForm)
    return request_comparison(
        collection=collection,
        qrels=form.qrels_files,
        assessors=form.assessors_file,
        runs=form.run_files,
        rules=form.rules,
        actor=actor,
    )


def _request_reuse(collection: Collection, form: EvaluationForm, actor: User) -> object:
    return request_reuse(
        collection=collection,
        qrels=form.qrels_file,
        runs=form.run_files,
        rules=form.rules,
        actor=actor,
    )


def _request_machine(collection: Collection, form: EvaluationForm, actor: User) -> object:
    assert isinstance(form, MachineForm)
    return request_machine(
        collection=collection,
        qrels=form.qrels_file,
        machine=form.machine_file,
        runs=form.run_files,
        rules=form.rules,
        actor=actor,
    )


TRUST = ResultPage(
    "collection-trust",
    Kind.COMPARISON,
    COMPARE,
    gettext_lazy("How far to trust it"),
    ComparisonForm,
    _request_comparison,
)
REUSE = ResultPage(
    "collection-reuse",
    Kind.REUSE,
    ESTIMATE_REUSE,
    gettext_lazy("Reuse for other systems"),
    ReuseForm,
    _request_reuse,
)
MACHINE = ResultPage(
    "collection-machine",
    Kind.MACHINE,
    COMPARE_MACHINE,
    gettext_lazy("A machine's labels"),
    MachineForm,
    _request_machine,
)
SHOWN = (Kind.COMPARISON, Kind.REUSE, Kind.AUDIT, Kind.MACHINE)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def trust(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse request."""
    return _page(request, slug, TRUST)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def reuse(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse request."""
    return _page(request, slug, REUSE)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def machine(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse request."""
    return _page(request, slug, MACHINE)


def _page(request: HttpRequest, slug: str, page: ResultPage) -> HttpResponse:
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.ANALYSE if is_post else Permission.VIEW)
    form = page.form(collection, request.POST if is_post else None)
    if is_post and form.is_valid():
        try:
            page.request(collection, form, person(request))
        except RetrievalError as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            messages.success(request, _("Computing in the background; this page follows it."))
            return redirect(f"console:{page.name}", slug)
    job = job_of(collection, page.job_kind)
    versions = Result.objects.of(collection, page.kind)
    version = version_for(request, versions)
    if not is_post:
        _begin(form, collection, version, failed_arguments(job))
    context = {
        "page": page,
        "form": form if may(request, Permission.ANALYSE) else None,
        "problem": "" if version else form.problem_when_empty,
        "view": ShownResult(version) if version else None,
        "versions": versions,
        "job": job,
    }
    status = 422 if form.errors else 200
    return collection_page(request, collection, "result", context, stage=page.name, status=status)


def _begin(
    form: EvaluationForm,
    collection: Collection,
    version: Result | None,
    failed: Mapping[str, Any],
) -> None:
    """Offer what was chosen last; of a first result, the qrels that were evaluated."""
    evaluated = Result.objects.of(collection, Kind.EVALUATION).first()
    if failed:
        form.begin_with(failed)
    elif version is not None:
        form.begin_with_result(version)
    elif evaluated is not None:
        form.begin_with_qrels(evaluated)


@require_safe
def picture(request: HttpRequest, slug: str, kind: str, chart: str, form: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. A chart of a result, as
    specification, data or file."""
    collection = collection_for(request, slug)
    version = version_for(request, Result.objects.of(collection, kind))
    charts = {one.name: one for one in ShownResult(version).charts} if version else {}
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
    if kind not in SHOWN or form not in CONTENT_TYPES:
        raise Http404(f"There is no table {name}.{form}.")
    version = version_for(request, Result.objects.of(collection, kind))
    if version is None:
        raise Http404(f"There is no result of {kind} yet.")
    content = "".join(_content(ShownResult(version), name, form))
    response = HttpResponse(content, content_type=CONTENT_TYPES[form])
    file_name = f"{slug}-{kind}-{version.number}-{name}.{form}"
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
