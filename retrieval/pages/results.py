import json
from collections.abc import Callable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.utils.text import format_lazy
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.roles import Permission
from console.access import may, person
from console.forms import offer_choices
from presentation.documents import Table
from presentation.row_files import FORMS as ROW_FORMS
from presentation.writers import write_table
from results.computing import sign_result
from results.models import Result
from results.pages import (
    ResultForm,
    choose_version,
    draw_chart,
    find_job,
    name_download,
    page_context,
    request_by_form,
)
from results.shown import ShownResult
from retrieval.answers.audit import claims_table, list_files
from retrieval.answers.evaluation import (
    TOPICS,
    EvaluationView,
    means_table,
    pairs_table,
    weighted_table,
)
from retrieval.audit.records import Claims, read_claims
from retrieval.exceptions import RetrievalError
from retrieval.models import Collection, CollectionFile, ResultType
from retrieval.pages.collections import collection_for, collection_page
from retrieval.pages.files import SeveralFilesField
from retrieval.result_kinds.audit import AUDIT, request_audit_of_uploads
from retrieval.result_kinds.evaluation import EvaluationKind, StoredEvaluation
from retrieval.result_kinds.report import WRITE_REPORT, read_sections, request_report

KIND = ResultType.EVALUATION


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
    version, context = page_context(request, form)
    context["view"] = EvaluationView(StoredEvaluation(version), request.GET) if version else None
    return collection_page(request, collection, "evaluation", context)


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. The chart of two runs, topic by
    topic, as specification, data or file."""
    version = choose_version(request, Result.objects.of(collection_for(request, slug), KIND))
    view = EvaluationView(StoredEvaluation(version), request.GET) if version else None
    figure = view.chart if view and chart == TOPICS else None
    return draw_chart(request, figure, name=f"{slug}-{chart}", form=form)


TABLES: dict[str, Callable[[StoredEvaluation], Table]] = {
    "means": means_table,
    "comparisons": lambda rows: pairs_table(rows, rows.measures),
    "weighted": lambda rows: weighted_table(rows.weighted or {}, rows.measures),
}


def _write_file(rows: StoredEvaluation, name: str) -> tuple[str, Any]:
    base, _dot, form = name.partition(".")
    if name == "evaluation.json":
        identity = {"version": rows.version.number, "signature": sign_result(rows.version)}
        return "application/json", [json.dumps(rows.record() | identity, indent=1)]
    if base == "topics" and form in ROW_FORMS:
        content_type, write = ROW_FORMS[form]
        return content_type, write(rows.topic_rows())
    is_known = base in TABLES and (base != "weighted" or rows.weighted)
    if not is_known or (file := write_table(TABLES[base](rows), form)) is None:
        raise Http404(f"There is no download {name}.")
    return file


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> StreamingHttpResponse:
    """Access: those who may export."""
    collection = collection_for(request, slug, Permission.EXPORT)
    version = choose_version(request, Result.objects.of(collection, KIND))
    if version is None:
        raise Http404("There is no evaluation yet.")
    content_type, content = _write_file(StoredEvaluation(version), name)
    response = StreamingHttpResponse(content, content_type=content_type)
    name_download(
        request,
        response,
        collection,
        f"{slug}-{version.number}-{name}",
        file=name,
        version=version.number,
    )
    return response


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


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def audit(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse request."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.ANALYSE if is_post else Permission.VIEW)
    form = AuditForm(collection, *((request.POST, request.FILES) if is_post else ()))
    if is_post and form.is_valid() and _request(request, collection, form):
        messages.success(request, _("Auditing in the background; this page follows it."))
        return redirect("console:collection-audit", slug)
    versions = Result.objects.of(collection, ResultType.AUDIT)
    version = choose_version(request, versions)
    context = {
        "form": form if may(request, Permission.ANALYSE) else None,
        "view": ShownResult(version) if version else None,
        "files": list_files(version) if version else [],
        "claims": claims_table(version) if version else None,
        "versions": versions,
        "job": find_job(collection, AUDIT),
    }
    return collection_page(request, collection, "audit", context)


class AuditForm(forms.Form):
    uploads = SeveralFilesField(
        label=gettext_lazy("Files"),
        required=False,
        help_text=format_lazy(
            gettext_lazy(
                "All files of a folder at once, up to {n}: Mechanical Turk batches, CSV files of "
                "alternatives and dialogue starts, qrels, runs. They are read, and not kept."
            ),
            n=settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        ),
        allow_empty_file=True,
    )
    stored = forms.MultipleChoiceField(
        label=gettext_lazy("Files of this collection"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    claims = forms.CharField(
        label=gettext_lazy("Published numbers (optional)"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "What a paper says of a file of judged pools, a line each, as "
            "batch.csv:mean_relevant=3.5, with its decimals as printed. Names: assessed (topics), "
            "with_relevant (topics with a relevant document), mean_relevant (relevant documents a "
            "topic), judged_per_topic, prevalence."
        ),
    )

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        rows = collection.files.usable().defer("faults").order_by("kind", "name")
        self.stored_files = {str(row.pk): row for row in rows}
        offer_choices(self, stored=[(key, row.name) for key, row in self.stored_files.items()])

    def clean_claims(self) -> dict[str, Claims]:
        claims: dict[str, dict[str, str]] = {}
        for number, line in enumerate(self.cleaned_data["claims"].splitlines(), 1):
            try:
                for file, numbers in read_claims([line] if line.strip() else []).items():
                    claims.setdefault(file, {}).update(numbers)
            except ValueError as error:
                text = _("Line {number}: {problem}.").format(number=number, problem=error)
                self.add_error("claims", ValidationError(text, code="not_a_claim"))
        return dict(claims)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        stored = (self.stored_files[key].file_name for key in data.get("stored", []))
        names = {*stored, *(file.name for file in data.get("uploads") or [])}
        if strangers := [name for name in data.get("claims") or {} if name not in names]:
            self.add_error(
                "claims",
                ValidationError(
                    _("{name} is none of the files to audit.").format(name=strangers[0]),
                    code="unknown_file",
                ),
            )
        return data

    @property
    def chosen_files(self) -> list[CollectionFile]:
        return [self.stored_files[key] for key in self.cleaned_data["stored"]]


def _request(request: HttpRequest, collection: Collection, form: AuditForm) -> bool:
    data = form.cleaned_data
    try:
        request_audit_of_uploads(
            collection=collection,
            uploads=data["uploads"],
            files=form.chosen_files,
            claims=data["claims"],
            actor=person(request),
        )
    except RetrievalError as refused:
        form.add_error("uploads", ValidationError(str(refused), code=refused.code))
        return False
    return True
