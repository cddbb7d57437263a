"""Which metric agrees with people: scoring, correlations, pictures, and the report's files."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from annotation.models import Study
from annotation.study_jobs import SCORE, jobs_of, request_study_job
from console.agreement_parts import Content
from console.pages.pictures import FORMS, picture_in
from console.pages.study import person, shown_study, study_page
from console.pages.waiting import result_or_job
from console.report_files import ABOUT, file_of
from console.results import (
    REPORT,
    SCATTERS,
    VALIDATION,
    conditions_of,
    correlation_table,
    fingerprint,
    stored,
)
from console.validation_view import ValidationView
from metrics.models import ScoringRun, ValidationRecord
from metrics.scorers.registry import Description, available
from validation.analysis import EVERY_CONDITION
from validation.documents.plain import records_csv
from validation.study_report import content_of
from validation.study_validation import COEFFICIENTS, LEVELS


@require_safe
def validation(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: the study's owner, or a superuser."""
    shown = shown_study(request, slug)
    runs = ScoringRun.objects.of(shown).counted()
    context: dict[str, Any] = {
        "runs": runs,
        "metrics": _offered(),
        "scoring": jobs_of(shown).of_kind(SCORE).first(),
        "has_judgments_and_scores": bool(shown.n_judgments and runs),
    }
    if context["has_judgments_and_scores"]:
        result, context["job"] = result_or_job(request, shown, VALIDATION)
        context |= {} if result is None else _correlations(request, shown, result)
    return study_page(request, shown, "validation", context)


def _offered() -> list[Description]:
    """The metrics a page may start: none that asks an endpoint, which may cost money."""
    return [metric for metric in available() if "endpoint" not in metric.requires]


def _correlations(request: HttpRequest, shown: Study, result: Content) -> dict[str, Any]:
    """The table of one level and condition, as the address names them."""
    level = request.GET.get("level", "item")
    condition = request.GET.get("condition", "")
    conditions = conditions_of(result["rows"])
    if level not in LEVELS or condition not in (EVERY_CONDITION, *conditions):
        raise Http404(f"There is no level {level} or no condition {condition}.")
    return {
        "result": result,
        "view": _view(shown, result, request) if result["rows"] else None,
        "level": level,
        "levels": LEVELS,
        "coefficients": COEFFICIENTS,
        "condition": condition,
        "conditions": conditions,
        "correlations": correlation_table(result["rows"], level, condition),
    }


def _view(shown: Study, result: Content, request: HttpRequest) -> ValidationView:
    record = ValidationRecord.objects.of(shown).numbered(result["report"])
    scatters = stored(shown, SCATTERS, result["input"]) or {"scatters": []}
    try:
        return ValidationView.asked(content_of(record), scatters["scatters"], request.GET)
    except KeyError as missing:
        raise Http404(f"There is no {missing.args[0]}.") from missing


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: the study's owner, or a superuser. A chart as specification, data or file."""
    shown = shown_study(request, slug)
    result = stored(shown, VALIDATION, fingerprint(shown))
    if result is None or not result["rows"]:
        raise Http404("Correlations are not computed yet; their page does that.")
    figure = _view(shown, result, request).figure(chart)
    if figure is None or form not in FORMS:
        raise Http404(f"There is no chart {chart}.{form}.")
    return picture_in(
        form,
        request,
        name=f"{shown.slug}-{figure.name}",
        draw=lambda: figure.chart,
        data=lambda: records_csv(list(figure.rows)),
    )


@require_safe
def report(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: the study's owner, or a superuser. The report's files, made in the background."""
    shown = shown_study(request, slug)
    context: dict[str, Any] = {"section": "validation"}
    if shown.n_judgments:
        result, context["job"] = result_or_job(request, shown, REPORT)
        files = {} if result is None else result["files"]
        context |= {"result": result, "files": [(name, ABOUT[name]) for name in files]}
    return study_page(request, shown, "report", context)


@require_safe
def report_file(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Access: the study's owner, or a superuser."""
    shown = shown_study(request, slug)
    result = stored(shown, REPORT, fingerprint(shown))
    if result is None or name not in result["files"]:
        raise Http404(f"There is no file {name}; the report's page makes it.")
    content, content_type = file_of(name, result["files"][name])
    response = HttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{shown.slug}-{name}"'
    return response


@require_POST
def score(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: the study's owner, or a superuser."""
    shown = shown_study(request, slug)
    known = {metric.name for metric in _offered()}
    chosen = [name for name in request.POST.getlist("metric") if name in known]
    if chosen:
        request_study_job(study=shown, kind=SCORE, names=chosen, requested_by=person(request))
        messages.success(request, f"Scoring in the background: {', '.join(chosen)}.")
    else:
        messages.error(request, "Nothing was scored: choose at least one metric.")
    return redirect("console:validation", slug)
