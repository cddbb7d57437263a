"""Studies of recorded dialogues: a new one, and what it says of simulated users."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from console.dialogues.forms import NewDialogueStudyForm, report_form
from console.dialogues.rows import StoredReport
from console.dialogues.tables import tables_of
from console.dialogues.view import ReportView
from console.pages.pictures import FORMS as PICTURE_FORMS
from console.pages.pictures import picture_in
from presentation.latex import table_latex
from presentation.plain import table_csv
from presentation.row_files import FORMS as ROW_FORMS
from presentation.spreadsheets import frame_csv
from simulation.exceptions import SimulationError
from simulation.models import DialogueReport, DialogueStudy
from simulation.stored_dialogue_reports import REPORT_DIALOGUES, request_report
from simulation.stored_dialogues import MAKE_DIALOGUES, request_dialogue_study
from work.models import Job

if TYPE_CHECKING:
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
    return render(request, "console/dialogues/new.html", {"form": form}, status=status)


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
    reports = list(row.reports.order_by("-number"))
    report = report_in(request, row, reports)
    form = None
    if row.made_at is not None and may(request, Permission.ANALYSE):
        form = report_form(row, report, request.POST if is_post else None)
    if is_post and form is not None and form.is_valid():
        made = request_report(dialogues=row, rules=form.rules, actor=person(request))
        number = f"?report={made.number}" if isinstance(made, DialogueReport) else ""
        return redirect(f"{request.path}{number}")
    context = _context(study, row, reports, report) | {"form": form}
    response = study_page(request, study, "dialogues", context)
    response.status_code = 422 if form is not None and form.errors else 200
    return response


def _context(
    study: CountedStudy,
    row: DialogueStudy,
    reports: list[DialogueReport],
    report: DialogueReport | None,
) -> dict[str, Any]:
    is_current = report is None or report.judgments_version == study.judgments_version
    return {
        "dialogues": row,
        "job": _job(study),
        "reports": reports,
        "report": report,
        "is_current": is_current,
        "view": ReportView(StoredReport(report)) if report else None,
        "row_forms": list(ROW_FORMS),
        "simulated": simulation_notice(study),
    }


def _job(study: CountedStudy) -> Job | None:
    """The last job that made items or a report, unless it is done."""
    jobs = jobs_of(study).filter(kind__in=(MAKE_DIALOGUES, REPORT_DIALOGUES))
    last = jobs.order_by("-pk").first()
    return None if last is None or last.state == Job.State.DONE else last


def report_in(
    request: HttpRequest, row: DialogueStudy, reports: list[DialogueReport]
) -> DialogueReport | None:
    """The report that the address names, or the newest; 404 where there is none of the number."""
    number = request.GET.get("report")
    report = reports[0] if reports else None
    if number is not None:
        report = next((one for one in reports if str(one.number) == number), None)
        if report is None:
            raise Http404(f"There is no report {number}.")
    if report is not None:
        report.dialogues = row
    return report


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: whoever has a role in the study, but for who adjudicates blind. A chart as
    specification, data or file."""
    _study, row = dialogues_for(request, slug)
    report = report_in(request, row, list(row.reports.order_by("-number")))
    figure = ReportView(StoredReport(report)).figures.get(chart) if report else None
    if figure is None or form not in PICTURE_FORMS:
        raise Http404(f"There is no chart {chart}.{form}.")
    return picture_in(
        form,
        request,
        name=f"{slug}-{chart}",
        draw=figure.draw,
        data=lambda: frame_csv(figure.frame),
    )


def _content(name: str, report: StoredReport) -> tuple[str, Any] | None:
    """The type of a download and its parts; None where there is none of that name."""
    base, _dot, form = name.partition(".")
    if name == REPORT_JSON:
        return JSON, _all(report)
    if base == ESTIMATES and form in ROW_FORMS:
        content_type, write = ROW_FORMS[form]
        return content_type, write(report.rows)
    table = tables_of(report).get(base) if form in ("csv", "tex") else None
    if table is None:
        return None
    return (CSV, [table_csv(table)]) if form == "csv" else (TEX, [table_latex(table)])


def _all(report: StoredReport) -> Iterator[str]:
    yield json.dumps(report.record(), indent=1, ensure_ascii=False)


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> StreamingHttpResponse:
    """Access: those who may export, but for who adjudicates blind."""
    study, row = dialogues_for(request, slug, Permission.EXPORT)
    report = report_in(request, row, list(row.reports.order_by("-number")))
    written = None if report is None else _content(name, StoredReport(report))
    if report is None or written is None:
        raise Http404(f"There is no download {name}.")
    content_type, parts = written
    response = StreamingHttpResponse(parts, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{slug}-{report.number}-{name}"'
    if request.method == "GET":
        details = {"file": name, "report": report.number}
        record_in(study, actor=person(request), action="export", details=details)
    return response
