"""How well annotators agree: coefficients, pictures, and who and what pulls them down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from accounts.roles import Permission
from annotation.access import record_in
from annotation.agreement_versions import current_agreement
from annotation.assignment_facts import DeskWork, annotator_work
from annotation.pages.agreement_charts import CHARTS
from annotation.pages.agreement_view import AgreementView
from annotation.pages.disagreement_units import (
    UNIT_COLUMNS,
    order_of,
    units_of,
)
from annotation.pages.job_progress import job_of
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.study_results import AGREEMENT
from console.access import (
    may,
    page_permissions,
    person,
)
from console.pages.pictures import FORMS, picture_in
from console.sections import of_version
from console.tables import page_of, search_words, sort_key
from presentation.spreadsheets import frame_csv

if TYPE_CHECKING:
    from annotation.study_sizes import CountedStudy

# Labels from elsewhere may have no times to draw it of.
SPEED = "speed"
ANNOTATOR_COLUMNS = ["annotator", "agreement", "n_judgments", "seconds", "alpha_change"]


@require_safe
def agreement(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study = study_for(request, slug)
    context: dict[str, Any] = {}
    if study.n_judgments:
        context["job"] = job_of(request, study, AGREEMENT)
        if context["job"] is None and (view := _view(study, request)):
            charts = [
                (chart, chart.words(view))
                for name, chart in CHARTS.items()
                if name != SPEED or view.has_times
            ]
            context |= {"view": view, "charts": charts}
    return study_page(request, study, "annotation/agreement", context)


@require_safe
def annotators(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; the way to an annotator's work is for those who may
    review, and whose it is for those who may view workers."""
    study, view = _study_and_view(request, slug)
    key = sort_key(request, ANNOTATOR_COLUMNS, "-alpha_change")
    page = page_of(request, view.annotator_rows(key))
    work: dict[str, Sequence[DeskWork]] = {}
    if may(request, Permission.REVIEW):
        work = annotator_work(study, [row.annotator for row in page])
        if work and may(request, Permission.VIEW_WORKERS):
            details = {"page": "annotators", "n_workers": len(work)}
            record_in(study, actor=person(request), action="worker.view", details=details)
    context = {
        "view": view,
        "page": page,
        "rows": [
            (row, work.get(row.annotator, ()), view.annotator_positions.get(row.annotator))
            for row in page
        ],
        "has_work": bool(work),
        "sort": key,
        "section": AGREEMENT,
    }
    return study_page(request, study, "annotation/annotators", context)


@require_safe
def disagreement(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study, view = _study_and_view(request, slug)
    words = search_words(request)
    key = sort_key(request, [*UNIT_COLUMNS], "agreement")
    permissions = page_permissions(request)
    units = units_of(view, words, permissions=permissions)
    page = page_of(request, units.order_by(*order_of(key, permissions)))
    context = {"view": view, "page": page, "sort": key, "words": words, "section": AGREEMENT}
    return study_page(request, study, "annotation/disagreement", context)


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: whoever has a role in the study. A chart as specification, data or file."""
    study, view = _study_and_view(request, slug)
    if chart not in CHARTS or form not in FORMS:
        raise Http404(f"There is no chart {chart}.{form}.")
    chart_of = CHARTS[chart]

    def draw() -> HttpResponse:
        return picture_in(
            form,
            request,
            name=f"{study.slug}-{slugify(view.question)}-{chart}",
            draw=lambda: chart_of.draw(view),
            data=lambda: frame_csv(chart_of.rows(view)),
        )

    return of_version(request, view.version, f"{chart}.{form}", draw)


def _study_and_view(request: HttpRequest, slug: str) -> tuple[CountedStudy, AgreementView]:
    """The study and the view of its agreement, or 404 while there is none."""
    study = study_for(request, slug)
    if (view := _view(study, request)) is None:
        raise Http404("Agreement is not computed yet; its page does that.")
    return study, view


def _view(study: CountedStudy, request: HttpRequest) -> AgreementView | None:
    """What the address names of the agreement; None where it is not computed, or asks nothing."""
    version = current_agreement(study)
    if version is None:
        return None
    questions = list(version.questions.select_related("question"))
    if not questions:
        return None
    try:
        return AgreementView.from_query(version, questions, request.GET)
    except KeyError as missing:
        raise Http404(f"There is no round or question {missing}.") from missing
