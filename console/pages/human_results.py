"""What people's judgments say by themselves: the Results page, which needs no metric."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.roles import Permission
from annotation.assignment_prices import assignment_price
from annotation.models import Study
from annotation.pages.job_progress import job_of
from annotation.pages.stages import stage_facts
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.simulated_answers import simulation_notice
from annotation.study_results import RESULTS
from console.access import may
from console.human_results_view import HumanResultsView
from validation.human_results import current_human_results
from validation.models import HumanResults


@require_safe
def results(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may view systems."""
    study = study_for(request, slug, Permission.VIEW_SYSTEMS)
    context: dict[str, Any] = {}
    if study.n_judgments:
        current = current_human_results(study)
        if current is None:
            context["job"] = job_of(request, study, RESULTS)
            # Computed at once, where there was no job to wait for.
            current = None if context["job"] else current_human_results(study)
        # Until the new ones are there, those of the judgments before.
        version = current or HumanResults.objects.of(study).last()
        context |= {"view": _view(study, request, version), "is_stale": current is None}
        context["simulated"] = simulation_notice(study)
        facts = stage_facts(study)
        context["has_scores"] = facts["has_scores"]
        context |= _to_launch(context["view"], facts["n_items_without_hit"])
    return study_page(request, study, "results", context)


def _view(
    study: Study, request: HttpRequest, version: HumanResults | None
) -> HumanResultsView | None:
    if version is None:
        return None
    version.study = study
    price = assignment_price(study) if may(request, Permission.VIEW_MONEY) else None
    try:
        return HumanResultsView.from_query(version, request.GET, price)
    except KeyError as missing:
        raise Http404(f"There is no question {missing.args[0]}.") from missing


def _to_launch(view: HumanResultsView | None, n_unlaunched: int) -> dict[str, int]:
    """Of the items that would tell systems apart, those that the study has to launch, and those
    that somebody would have to add first."""
    n_more = view.verdict.n_more_items if view and view.verdict else 0
    n_to_launch = min(n_more, n_unlaunched)
    return {"n_to_launch": n_to_launch, "n_to_add": n_more - n_to_launch}
