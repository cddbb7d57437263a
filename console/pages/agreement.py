"""How well annotators agree: coefficients, pictures, and who and what pulls them down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from console.agreement_parts import AGREEMENT, Content
from console.agreement_view import AgreementView
from console.charts import CHARTS
from console.pages.pictures import FORMS, picture_in
from console.pages.study import study_for, study_page
from console.pages.waiting import result_or_job
from console.results import loaded_fingerprint, stored
from console.tables import page_of, sort_key, sorted_rows
from console.units import UNIT_COLUMNS, order_of, units_of
from presentation.spreadsheets import frame_csv

if TYPE_CHECKING:
    from console.sizes import CountedStudy

ANNOTATOR_COLUMNS = ["annotator", "agreement", "n_judgments", "seconds", "alpha_change"]


@require_safe
def agreement(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    shown = study_for(request, slug)
    context: dict[str, Any] = {}
    if shown.n_judgments:
        result, context["job"] = result_or_job(request, shown, AGREEMENT)
        if result is not None and result["rounds"][0]["questions"]:
            view = _view(result, request)
            charts = [(chart, chart.words(view)) for chart in CHARTS.values()]
            context |= {"view": view, "charts": charts}
    return study_page(request, shown, "agreement", context)


@require_safe
def annotators(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    shown, view = _study_and_view(request, slug)
    key = sort_key(request, ANNOTATOR_COLUMNS, "-alpha_change")
    page = page_of(request, sorted_rows(view.question_content["annotators"], key))
    context = {"view": view, "page": page, "sort": key, "section": AGREEMENT}
    return study_page(request, shown, "annotators", context)


@require_safe
def disagreement(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    shown, view = _study_and_view(request, slug)
    words = request.GET.get("q", "").strip()
    key = sort_key(request, [*UNIT_COLUMNS], "agreement")
    rows = units_of(shown, view, words).order_by(*order_of(key))
    page = page_of(request, rows)
    context = {"view": view, "page": page, "sort": key, "words": words, "section": AGREEMENT}
    return study_page(request, shown, "disagreement", context)


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: whoever has a role in the study. A chart as specification, data or file."""
    shown, view = _study_and_view(request, slug)
    if chart not in CHARTS or form not in FORMS:
        raise Http404(f"There is no chart {chart}.{form}.")
    drawn = CHARTS[chart]
    return picture_in(
        form,
        request,
        name=f"{shown.slug}-{slugify(view.question)}-{chart}",
        draw=lambda: drawn.draw(view),
        data=lambda: frame_csv(drawn.rows(view)),
    )


def _study_and_view(request: HttpRequest, slug: str) -> tuple[CountedStudy, AgreementView]:
    """The study and the view of its stored agreement, or 404 while there is none."""
    shown = study_for(request, slug)
    result = stored(shown, AGREEMENT, loaded_fingerprint(shown, AGREEMENT))
    if result is None or not result["rounds"][0]["questions"]:
        raise Http404("Agreement is not computed yet; its page does that.")
    return shown, _view(result, request)


def _view(result: Content, request: HttpRequest) -> AgreementView:
    try:
        return AgreementView.from_query(result, request.GET)
    except KeyError as missing:
        raise Http404(f"There is no round or question {missing}.") from missing
