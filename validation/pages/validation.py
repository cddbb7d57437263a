from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.models import Study
from annotation.pages.downloads import job_of
from annotation.pages.stages import (
    study_for,
    study_page,
)
from annotation.study_facts import (
    REPORT,
    SCORE,
    VALIDATION,
    jobs_of,
    request_study_job,
    simulation_notice,
)
from console.access import (
    may,
    person,
)
from console.pages.pictures import FORMS, of_version, picture_in
from metrics.exceptions import ValidationUnknown
from metrics.models import Score, ScoringRun
from metrics.pages.scoring import has_references, lacking_models, metrics_on_offer
from presentation.writers import records_csv
from results.models import Result, ResultPart
from validation.analysis.records import (
    CeilingRecord,
    ComparisonRecord,
    CorrelationRecord,
    EstimatedMeanRecord,
    SystemRecord,
)
from validation.heds import (
    DATASHEETS,
    datasheet_file,
)
from validation.pages.metric_agreement import TABLES, ValidationView, protocol_validations
from validation.result_kinds.report import ReportKind
from validation.result_kinds.validation import ValidationKind
from validation.study_report import ABOUT, type_of
from validation.versions import StoredResults, find_validation

# The tables of a validation that its page shows.
SHOWN = (CorrelationRecord, CeilingRecord, ComparisonRecord, EstimatedMeanRecord, SystemRecord)


@require_safe
def validation(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may view systems."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    runs = ScoringRun.objects.of(study).counted()
    context: dict[str, Any] = {
        "runs": runs,
        "metrics": metrics_on_offer(),
        "lacking": lacking_models(),
        "scoring": jobs_of(study).of_kind(SCORE).first(),
        "has_references": has_references(study),
        "has_judgments_and_scores": bool(study.n_judgments and runs),
    }
    if context["has_judgments_and_scores"]:
        context["simulated"] = simulation_notice(study)
        outcome = ValidationKind().find_current(study)
        context["job"] = None if outcome else job_of(request, study, VALIDATION)
        if context["job"] is None:
            # Computed at once, where it was not there.
            outcome = outcome or ValidationKind().find_current(study)
            view = _view(study, request, outcome, SHOWN)
            by_protocol = protocol_validations(study, view) if view else None
            context |= {"outcome": outcome, "view": view, "by_protocol": by_protocol}
    return study_page(request, study, "validation/validation", context)


def _view(
    study: Study,
    request: HttpRequest,
    outcome: Result | None,
    tables: Sequence[type[Any]] = (),
) -> ValidationView | None:
    """The version in the address, or the current one; None if there is none, or nothing was
    correlated. `tables` are read with one query."""
    version = _version(study, request.GET.get("report"), outcome)
    if version is None:
        return None
    results = StoredResults(version, with_variants=bool(request.GET.get("variants")))
    if not results.measures:
        return None
    if tables:
        results.load(*tables)
    try:
        return ValidationView.from_query(results, request.GET)
    except KeyError as missing:
        raise Http404(f"There is no {missing.args[0]}.") from missing


def _version(study: Study, number: str | None, outcome: Result | None) -> Result | None:
    if number is None:
        return None if outcome is None or "reason" in outcome.facts else outcome
    try:
        return find_validation(study, int(number))
    except (ValueError, ValidationUnknown) as unknown:
        raise Http404(f"There is no report {number}.") from unknown


def _section(study: Study, request: HttpRequest) -> ValidationView:
    """404 if nothing is computed yet."""
    outcome = None if "report" in request.GET else ValidationKind().find_current(study)
    if (view := _view(study, request, outcome)) is None:
        raise Http404("Correlations are not computed yet; their page does that.")
    return view


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: those who may view systems. A chart as specification, data or file."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    view = _section(study, request)

    def draw() -> HttpResponse:
        figure = view.figure(chart)
        if figure is None or form not in FORMS:
            raise Http404(f"There is no chart {chart}.{form}.")
        return picture_in(
            form,
            request,
            name=f"{study.slug}-{figure.name}",
            draw=lambda: figure.chart,
            data=lambda: records_csv(list(figure.rows)),
        )

    return of_version(request, view.results.version, f"{chart}.{form}", draw)


@require_safe
def table(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Access: those who may view systems. A table of the page, as a part or by itself."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    view = _section(study, request)
    if name not in TABLES:
        raise Http404(f"There is no table {name}.")
    if not request.headers.get("HX-Request"):
        context = {"section": "validation", "view": view, "table": view.table(name)}
        return study_page(request, study, "validation/validation_table", context)
    return of_version(
        request,
        view.results.version,
        name,
        lambda: render(request, "presentation/_table.html", {"table": view.table(name)}),
    )


@require_safe
def report(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may view systems. The report's files, made in the background."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    context: dict[str, Any] = {"section": "validation", "datasheets": list(DATASHEETS.items())}
    if study.n_judgments or Score.objects.filter(run__study=study).exists():
        context["job"] = job_of(request, study, REPORT)
        outcome = None if context["job"] else ReportKind().find_current(study)
        files = _files(outcome).values_list("name", flat=True)
        context |= {"outcome": outcome, "files": [(name, ABOUT[name]) for name in files]}
    return study_page(request, study, "validation/report", context)


@require_safe
def report_file(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Access: those who may view systems."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    if name in DATASHEETS:
        content = datasheet_file(study, name, with_money=may(request, Permission.VIEW_MONEY))
        return _attached(study, name, content)
    file = _files(ReportKind().find_current(study)).filter(name=name).first()
    if file is None:
        raise Http404(f"There is no file {name}; the report's page makes it.")
    return _attached(study, name, bytes(file.content))


def _attached(study: Study, name: str, content: bytes) -> HttpResponse:
    response = HttpResponse(content, content_type=type_of(name))
    response["Content-Disposition"] = f'attachment; filename="{study.slug}-{name}"'
    return response


def _files(report: Result | None) -> QuerySet[ResultPart]:
    return ResultPart.objects.none() if report is None else report.parts.all()


@require_POST
def score(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may analyse."""
    study = study_for(request, slug, Permission.ANALYSE)
    names = {metric.name for metric in metrics_on_offer()} - {*lacking_models()}
    metrics = [name for name in request.POST.getlist("metric") if name in names]
    if metrics:
        request_study_job(study=study, kind=SCORE, names=metrics, requested_by=person(request))
        messages.success(
            request, _("Scoring in the background: %(metrics)s.") % {"metrics": ", ".join(metrics)}
        )
    else:
        messages.error(
            request, _("Nothing was scored: choose at least one metric."), extra_tags="no_metric"
        )
    return redirect("console:validation", slug)
