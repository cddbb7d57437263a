from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.roles import Permission
from annotation.pages.downloads import job_of
from annotation.pages.stages import study_for, study_page
from annotation.study_facts import SCORES
from metrics.models import Score
from metrics.result_kinds.scores import ScoresKind, main_metric
from results.models import Result
from results.pages import draw_chart, find_result
from results.shown import ShownResult


@require_safe
def scores(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may view systems."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    context: dict[str, Any] = {"slug": slug, "table_address": "console:study-table"}
    if Score.objects.filter(run__study=study).exists():
        context["job"] = job_of(request, study, SCORES)
        if (result := ScoresKind().list_results(study).defer(None).first()) is not None:
            context |= _shown(request, result)
    return study_page(request, study, "metrics/scores", context)


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: those who may view systems. A chart, as specification, data or file."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    charts = {one.name: one for one in ShownResult(find_result(request, study, SCORES)).charts}
    return draw_chart(request, charts.get(chart), name=f"{slug}-{chart}", form=form)


def _shown(request: HttpRequest, result: Result) -> dict[str, Any]:
    """The charts of two metrics, and the bars of the one that the address names."""
    view, names = ShownResult(result), result.record["names"]
    chosen = request.GET.get("metric")
    at = names.index(chosen if chosen in names else main_metric(names))
    shown = [one for one in view.charts if one.name.startswith((f"bars-{at}-", "points-"))]
    return {"view": view, "names": names, "chosen": names[at], "charts": shown}
