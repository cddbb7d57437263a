"""Studies of recorded dialogues: a new one, and what it says of simulated users."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.roles import Permission
from annotation.audit import record_in
from annotation.exceptions import AnnotationError
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.simulated_answers import simulation_notice
from annotation.study_jobs import jobs_of
from console.access import (
    may,
    person,
)
from presentation.latex import table_latex
from presentation.plain import table_csv
from presentation.row_files import FORMS as ROW_FORMS
from results.computing import find_computed, request_result
from results.forms import ResultForm
from results.kinds import result_kind
from results.models import Result
from results.pages import draw_chart
from results.shown import ShownResult
from simulation.exceptions import SimulationError
from simulation.models import DialogueStudy
from simulation.pages.dialogue_forms import NewDialogueStudyForm
from simulation.recorded_dialogues import origin_of
from simulation.result_kinds.dialogues import DialogueKind
from simulation.stored_dialogues import MAKE_DIALOGUES, request_dialogue_study
from work.models import Job

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.study_sizes import CountedStudy

JSON, TEX, CSV = "application/json", "application/x-tex", "text/csv; charset=utf-8"
REPORT_JSON, ESTIMATES = "report.json", "estimates"


@require_http_methods(["GET", "HEAD", "POST"])
def new_dialogue_study(request: HttpRequest) -> HttpResponse:
    """Access: signed in; for a team, those who may edit its studies and see its experiments."""
    data = (request.POST, request.FILES) if request.method == "POST" else ()
    form = NewDialogueStudyForm(person(request), *data, initial=_chosen(request))
    if request.method == "POST" and form.is_valid():
        try:
            made = request_dialogue_study(actor=person(request), **form.request)
        except (SimulationError, AnnotationError) as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            messages.success(request, _("“{title}” is made.").format(title=made.study.title))
            return redirect("console:dialogues", made.study.slug)
    status = 422 if form.errors else 200
    return render(request, "simulation/new_dialogue_study.html", {"form": form}, status=status)


def _chosen(request: HttpRequest) -> dict[str, str]:
    """The result that a link meant."""
    version = request.GET.get("version", "")
    return {"dialogues": f"version:{version}"} if version.isdecimal() else {}


def dialogues_for(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW_SYSTEMS
) -> tuple[CountedStudy, DialogueStudy]:
    """The study and where it comes from, which names recommenders: 403 for users who may not view
    systems; 404 where it is of no dialogues."""
    study = study_for(request, slug, permission)
    rows = DialogueStudy.objects.select_related("experiment", "version")
    dialogues = get_object_or_404(rows, study=study.pk)
    dialogues.study = study
    return study, dialogues


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def dialogues(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may view systems; those who may analyse have a report computed."""
    is_post = request.method == "POST"
    study, row = dialogues_for(
        request, slug, Permission.ANALYSE if is_post else Permission.VIEW_SYSTEMS
    )
    kind = result_kind(row.kind)
    reports = list(Result.objects.of(study, kind.name))
    report = report_in(request, study, reports)
    form = None
    if row.made_at is not None and may(request, Permission.ANALYSE):
        form = ResultForm(kind, study, request.POST if is_post else None)
        if report is not None:
            form.begin_with_result(report, ())
    if is_post and form is not None and form.is_valid():
        return redirect(f"{request.path}{_request_report(study, form, person(request))}")
    shown = ShownResult(report) if report else None
    context = {
        "dialogues": row,
        "job": _job(study, kind.job),
        "reports": reports,
        "report": report,
        "is_current": report is None
        or report.facts["judgments_version"] == study.judgments_version,
        "view": shown,
        "query": f"report={report.number}" if report else "",
        "row_forms": list(ROW_FORMS),
        "simulated": simulation_notice(study),
        "form": form,
    }
    response = study_page(request, study, "simulation/dialogues", context)
    response.status_code = 422 if form is not None and form.errors else 200
    return response


def _request_report(study: CountedStudy, form: ResultForm, actor: User) -> str:
    """Have a report computed; the query of its address if it was computed before."""
    if same := find_computed(form.kind, study, (), form.settings):
        return f"?report={same.number}"
    request_result(kind=form.kind, subject=study, chosen={}, settings=form.settings, actor=actor)
    return ""


def _job(study: CountedStudy, report: str) -> Job | None:
    """The last job that made items or a report, unless it is done."""
    last = jobs_of(study).filter(kind__in=(MAKE_DIALOGUES, report)).order_by("-pk").first()
    return None if last is None or last.state == Job.State.DONE else last


def report_in(request: HttpRequest, study: CountedStudy, reports: list[Result]) -> Result | None:
    """The report that the address names, or the newest; 404 where there is none of the number."""
    number = request.GET.get("report")
    report = reports[0] if reports else None
    if number is not None:
        report = next((one for one in reports if str(one.number) == number), None)
        if report is None:
            raise Http404(f"There is no report {number}.")
    if report is not None:
        report.subject = study
    return report


def _find_report(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW_SYSTEMS
) -> tuple[CountedStudy, DialogueStudy, ShownResult]:
    """The report that an address of a file is about; 404 if there is none."""
    study, row = dialogues_for(request, slug, permission)
    report = report_in(request, study, list(Result.objects.of(study, row.kind)))
    if report is None:
        raise Http404("There is no report yet.")
    return study, row, ShownResult(report)


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: whoever has a role in the study, but for who adjudicates blind. A chart as
    specification, data or file."""
    _study, _row, shown = _find_report(request, slug)
    figure = next((one for one in shown.charts if one.name == chart), None)
    return draw_chart(request, figure, name=f"{slug}-{chart}", form=form)


def _content(name: str, row: DialogueStudy, shown: ShownResult) -> tuple[str, Any] | None:
    """The type of a download and its parts; None where there is none of that name."""
    base, _dot, form = name.partition(".")
    if name == REPORT_JSON:
        return JSON, [json.dumps(_record(row, shown.result), indent=1, ensure_ascii=False)]
    if base == ESTIMATES and form in ROW_FORMS:
        content_type, write = ROW_FORMS[form]
        return content_type, write(_kind(shown.result).write_estimates(shown.result))
    table = shown.tables.get(base) if form in ("csv", "tex") else None
    if table is None:
        return None
    return (CSV, [table_csv(table)]) if form == "csv" else (TEX, [table_latex(table)])


def _record(row: DialogueStudy, result: Result) -> dict[str, Any]:
    """What made the numbers, and they, for programs."""
    return {
        "study": row.study.slug,
        "report": result.number,
        "kind": row.kind,
        "fingerprint": result.fingerprint,
        "origin": origin_of(row),
        "rules": result.settings
        | {"users": result.facts["users"], "confidence": result.record["confidence"]},
        **{name: result.facts[name] for name in ("n_answers", "n_annotators", "n_targets")},
        "estimates": list(_kind(result).list_estimates(result.record)),
    }


def _kind(result: Result) -> DialogueKind:
    kind = result_kind(result.kind)
    assert isinstance(kind, DialogueKind)
    return kind


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> StreamingHttpResponse:
    """Access: those who may export, but for who adjudicates blind."""
    study, row, shown = _find_report(request, slug, Permission.EXPORT)
    written = _content(name, row, shown)
    if written is None:
        raise Http404(f"There is no download {name}.")
    content_type, parts = written
    number = shown.result.number
    response = StreamingHttpResponse(parts, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{slug}-{number}-{name}"'
    if request.method == "GET":
        details = {"file": name, "report": number}
        record_in(study, actor=person(request), action="export", details=details)
    return response
